"""An action: a button or form of the plugin's user interface, called by a user whom the host has checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kandev_plugin.errors import Error
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.values import parse_body, to_body


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionContext:
    """Who calls and on what. The host has checked that these belong together; a field is empty when it does not
    apply."""

    actor_id: str = ""
    """The user."""
    workspace_id: str = ""
    task_id: str = ""
    repository_id: str = ""
    session_id: str = ""
    head_branch: str = ""
    """The branch of the session's checkout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """An action's call."""

    key: str = ""
    """The action's key in the manifest."""
    context: ActionContext = field(default_factory=ActionContext)
    """Who and where, checked by the host."""
    body: bytes = b""
    """Raw JSON from the caller, untrusted."""

    def json(self) -> Any:
        """The body as JSON; `INVALID_ARGUMENT`, and so HTTP 400, when it is none."""
        return parse_body("the action's body", self.body)

    @staticmethod
    def from_wire(wire: pb.PluginActionRequest) -> ActionRequest:
        """What the host sent."""
        context = ActionContext(
            actor_id=wire.context.actor_id,
            workspace_id=wire.context.workspace_id,
            task_id=wire.context.task_id,
            repository_id=wire.context.repository_id,
            session_id=wire.context.session_id,
            head_branch=wire.context.head_branch,
        )
        return ActionRequest(key=wire.action_key, context=context, body=wire.body)


@dataclass(frozen=True, slots=True)
class ActionResponse:
    """The answer to an action: JSON, at most 1 MiB, with a status of 200 to 599.

    >>> ActionResponse({"queued": True}, 202).to_wire().body
    b'{"queued":true}'
    """

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of_error(error: Error) -> ActionResponse:
        """The answer that says `error` to the caller; raises it when it is not the caller's business: a bug, or a
        failed call of the host. The host then answers 503 itself.
        """
        status = error.http_status
        if status is None:
            raise error
        return ActionResponse({"error": str(error)}, status)

    def to_wire(self) -> pb.PluginActionResponse:
        """What the host is sent."""
        return pb.PluginActionResponse(body=to_body(self.value), headers=self.headers, status=self.status)
