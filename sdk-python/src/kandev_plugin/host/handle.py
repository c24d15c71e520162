"""The handle: settings, events and the agent; the other calls are in the files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc

from kandev_plugin.config import Config
from kandev_plugin.host.read import Reads
from kandev_plugin.host.secrets import Secrets
from kandev_plugin.host.state import States
from kandev_plugin.host.write import Writes
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.search import Search
from kandev_plugin.settings import Settings
from kandev_plugin.values import to_object, to_struct


class Host(Reads, Writes, States, Secrets):
    """The host's services, for this plugin. Its calls may be made from any thread, side by side.

    Each call needs the capability that its documentation names, declared in the plugin's manifest; without it the call
    fails with `PERMISSION_DENIED`. A call that the host does not serve fails with `UNIMPLEMENTED`. Every failed call
    raises `Error`, with `from_host` true.
    """

    @staticmethod
    def from_channel(channel: grpc.Channel, settings: Settings | None = None) -> Host:
        """A host behind a channel of your own: for a test of a plugin that serves the Host service itself."""
        return Host(Search.found(channel), settings or Settings())

    def config(self) -> Config:
        """The operator's settings of this plugin, its secrets in clear. `GetConfig`; every plugin may call it.

        config = host.config()
        token = config.secret("token")
        interval_s = config.get("interval_s", int) or 60
        """
        return Config(to_object(self._call("GetConfig", pb.GetConfigRequest(), pb.GetConfigResponse).config))

    def emit(self, name: str, payload: Mapping[str, Any] | None = None) -> None:
        """Publishes the event `plugin.<this plugin's id>.<name>`. `EmitEvent`; every plugin may call it. When this
        returns the event is in the host's log.
        """
        request = pb.EmitEventRequest(event_name=name, payload=to_struct("the event's payload", payload))
        self._call("EmitEvent", request, pb.EmitEventResponse)

    def ask_agent(self, prompt: str) -> str:
        """Has the operator's utility agent answer a prompt. `InvokeUtilityAgent`; capability `agent_invoke`. It may
        take minutes: its deadline is `Settings.agent_timeout_s`.
        """
        request = pb.InvokeUtilityAgentRequest(prompt=prompt)
        limit = self._settings.agent_timeout_s
        return self._call("InvokeUtilityAgent", request, pb.InvokeUtilityAgentResponse, timeout_s=limit).text

    def wait_found(self) -> None:
        """Returns when the host is there; `UNAVAILABLE` when the search was given up."""
        self._search.channel(None)
