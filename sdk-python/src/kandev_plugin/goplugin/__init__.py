"""The plugin's side of hashicorp/go-plugin's gRPC protocol; knows nothing of kandev.

`serve` is what a plugin's main calls. Absent on purpose: serving in clear (a host that did not ask for mutual TLS is
refused), TCP, and announcing services of the plugin's own on the broker.
"""

from kandev_plugin.goplugin.broker import Broker, DialError
from kandev_plugin.goplugin.call import Call, current_call
from kandev_plugin.goplugin.health import Health
from kandev_plugin.goplugin.server import NotStartedByHostError, ServeConfig, ServeError, serve

__all__ = [
    "Broker",
    "Call",
    "DialError",
    "Health",
    "NotStartedByHostError",
    "ServeConfig",
    "ServeError",
    "current_call",
    "serve",
]
