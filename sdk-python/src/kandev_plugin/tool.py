"""Tools for agents (`agent_tools` of the manifest)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.values import Object, to_object, to_struct


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Where the agent works."""

    task_id: str = ""
    session_id: str = ""
    workspace_id: str = ""
    surface: str = ""
    """`kanban-task` or `office-task`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """An agent's call of a tool."""

    invocation_id: str = ""
    """The call's id."""
    name: str = ""
    """The tool's name in the manifest."""
    arguments: Object = field(default_factory=dict)
    """By the tool's input schema."""
    context: ToolContext = field(default_factory=ToolContext)
    """Where the agent works."""

    @staticmethod
    def from_wire(wire: pb.AgentToolRequest) -> ToolRequest:
        """What the host sent."""
        context = ToolContext(
            task_id=wire.context.task_id,
            session_id=wire.context.session_id,
            workspace_id=wire.context.workspace_id,
            surface=wire.context.surface,
        )
        return ToolRequest(
            invocation_id=wire.invocation_id, name=wire.name, arguments=to_object(wire.arguments), context=context
        )


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """A tool's answer: text for the agent and perhaps an object, 1 MiB together at most, within 30 s."""

    text: str
    """A blank one is an error to the host."""
    structured: Mapping[str, Any] | None = None
    """The host checks it against the tool's output schema."""
    is_error: bool = False
    """The tool failed, and the agent should read why."""

    def to_wire(self) -> pb.AgentToolResponse:
        """What the host is sent."""
        return pb.AgentToolResponse(
            text=self.text,
            structured_content=to_struct("the tool's structured content", self.structured),
            is_error=self.is_error,
        )
