"""The plugin's state in the host's store. Capability `state`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kandev_plugin.data import StateEntry
from kandev_plugin.host.base import Caller
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.values import Object, to_object, to_struct


class States(Caller):
    """GetState, SetState, DeleteState, ListState."""

    def state(self, scope: str) -> State:
        """The part of the plugin's state named `scope`. It outlives restarts and upgrades; removing the plugin removes
        it.

        state = host.state("sync")
        cursor = state.get("cursor") or {"page": 0}
        state.set("cursor", {"page": cursor["page"] + 1})
        """
        return State(self, scope)


@dataclass(frozen=True, slots=True)
class State:
    """Keys and values of one scope. Values are JSON objects; whole numbers beyond 2^53 lose precision."""

    _host: Caller
    scope: str
    id: str = ""

    def of(self, id: str) -> State:  # noqa: A002 what the contract calls it
        """The same scope for one thing: `host.state("task").of(task_id)`."""
        return State(self._host, self.scope, id)

    def get(self, key: str) -> Object | None:
        """The value of a key; `None` when there is none, or null. `GetState`."""
        request = pb.GetStateRequest(scope=self.scope, scope_id=self.id, key=key)
        answer = self._host._call("GetState", request, pb.GetStateResponse)
        return to_object(answer.value) if answer.found and answer.HasField("value") else None

    def set(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Stores a value, an object or null. The last write wins. `SetState`."""
        wire = to_struct("a state value", value)
        request = pb.SetStateRequest(scope=self.scope, scope_id=self.id, key=key, value=wire)
        self._host._call("SetState", request, pb.SetStateResponse)

    def delete(self, key: str) -> None:
        """Removes a key; no error when there is none. `DeleteState`."""
        request = pb.DeleteStateRequest(scope=self.scope, scope_id=self.id, key=key)
        self._host._call("DeleteState", request, pb.DeleteStateResponse)

    def list(self) -> list[StateEntry]:
        """Every key of the scope, with its value. `ListState`."""
        request = pb.ListStateRequest(scope=self.scope, scope_id=self.id)
        answer = self._host._call("ListState", request, pb.ListStateResponse)
        return [StateEntry.from_wire(entry) for entry in answer.entries]
