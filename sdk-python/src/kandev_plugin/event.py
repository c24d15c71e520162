"""An event of the host's bus, as it is delivered to the plugin."""

from __future__ import annotations

from dataclasses import dataclass

from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.values import Object, to_object


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. An event that was not acknowledged comes again with the same id, before any later one."""

    id: str = ""
    """The same at each repetition."""
    kind: str = ""
    """The whole subject: `task.created`, `shell.output.<session id>`."""
    occurred_at: str = ""
    """RFC 3339, UTC, whole seconds: when the host published it."""
    workspace_id: str = ""
    """The workspace it belongs to; empty when it names none."""
    payload: Object | None = None
    """`None` when the event carries nothing. Whole numbers beyond 2^53 have lost precision."""

    @staticmethod
    def from_wire(wire: pb.Event) -> Event:
        """What the host sent."""
        return Event(
            id=wire.event_id,
            kind=wire.event_type,
            occurred_at=wire.occurred_at,
            workspace_id=wire.workspace_id,
            payload=to_object(wire.payload) if wire.HasField("payload") else None,
        )
