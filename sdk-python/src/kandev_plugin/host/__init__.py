"""The host, as the plugin sees it: one method for every RPC of the Host service."""

from kandev_plugin.host.handle import Host
from kandev_plugin.host.state import State
from kandev_plugin.host.write import TreeError

__all__ = ["Host", "State", "TreeError"]
