"""The platform's data as the host sends it. Times are RFC 3339 text in UTC, ids opaque text. A newer host may send
more, which is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kandev_plugin.values import Object
from kandev_plugin.wire import Received


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRepository(Received):
    """A repository that a task works on."""

    id: str = ""
    """The attachment's id."""
    repository_id: str = ""
    base_branch: str = ""
    """The branch that work begins from."""
    position: int = 0
    """The order among the task's repositories."""
    checkout_branch: str = ""
    """The branch that is checked out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Received):
    """A task."""

    id: str = ""
    workspace_id: str = ""
    workflow_id: str = ""
    title: str = ""
    description: str = ""
    state: str = ""
    """Such as `TODO` or `IN_PROGRESS`."""
    priority: str = ""
    """`critical`, `high`, `medium` or `low`."""
    created_by: str = ""
    """Its origin: `manual`, `agent_created`, `routine`, …."""
    created_at: str = ""
    updated_at: str = ""
    started_at: str | None = None
    """When work began; older hosts do not say."""
    completed_at: str | None = None
    """When it was done; older hosts do not say."""
    parent_id: str | None = None
    """The task it is part of; `None` for a root."""
    identifier: str = ""
    """The short name such as `KAN-7`; empty when it has none."""
    is_ephemeral: bool = False
    """Whether it is a quick chat."""
    repositories: list[TaskRepository] = field(default_factory=list, metadata={"of": TaskRepository})
    """The repositories it works on."""
    metadata: Object = field(default_factory=dict)
    """Whatever was put there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace(Received):
    """A workspace."""

    id: str = ""
    name: str = ""
    description: str | None = None
    owner_id: str = ""
    """The user who owns it."""
    default_executor_id: str | None = None
    """Where its tasks run."""
    default_agent_profile_id: str | None = None
    """Who does its tasks."""
    created_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow(Received):
    """A workflow of a workspace."""

    id: str = ""
    workspace_id: str = ""
    name: str = ""
    description: str | None = None
    sort_order: int = 0
    """The order among the workspace's workflows."""
    created_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStep(Received):
    """A step of a workflow."""

    id: str = ""
    workflow_id: str = ""
    name: str = ""
    position: int = 0
    """The order among the workflow's steps."""
    stage_type: str = ""
    """`work`, `review`, `approval` or `custom`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile(Received):
    """A way to run an agent."""

    id: str = ""
    agent_id: str = ""
    display_name: str = ""
    """The agent's name."""
    name: str = ""
    """The profile's name."""
    model: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorProfile(Received):
    """A place where agents run."""

    id: str = ""
    display_name: str = ""
    executor_type: str = ""
    """What kind of place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository(Received):
    """A repository of a workspace."""

    id: str = ""
    workspace_id: str = ""
    name: str = ""
    default_branch: str | None = None
    source_type: str = ""
    """Where it comes from."""
    provider_id: str = ""
    provider_repository_id: str = ""
    """Its id at the provider."""
    provider_host: str = ""
    """The provider's server."""
    owner_or_project: str = ""
    """The owner or project at the provider."""
    provider_name: str = ""
    remote_url: str = ""
    """Where it is cloned from, without user information."""
    provider_scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(Received):
    """A run of an agent on a task."""

    id: str = ""
    task_id: str = ""
    agent_profile_id: str = ""
    agent_display_name: str = ""
    """The agent's name."""
    model: str = ""
    acp_session_id: str = ""
    """The agent's own id of it; empty when there is none."""
    state: str = ""
    started_at: str = ""
    ended_at: str | None = None
    """When it ended; `None` while it runs."""
    agent_profile_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCodeStats(Received):
    """How many lines a session wrote."""

    session_id: str = ""
    lines_added_committed: int = 0
    lines_deleted_committed: int = 0
    lines_added_peak_pending: int = 0
    """The most lines that were added and not yet committed."""
    lines_deleted_peak_pending: int = 0
    """The most lines that were deleted and not yet committed."""
    committed_lines_available: bool = False
    """Whether the numbers of committed lines are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Received):
    """A message of a session."""

    id: str = ""
    session_id: str = ""
    task_id: str = ""
    turn_id: str = ""
    author_type: str = ""
    """`user` or `agent`."""
    content: str = ""
    """The text, without what is hidden from people."""
    kind: str = field(default="", metadata={"wire": "type"})
    """Its type, such as `message`."""
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntry(Received):
    """A key of the plugin's state and what it holds."""

    key: str = ""
    value: Object | None = None
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage(Received):
    """Where a message to an agent went."""

    session_id: str = ""
    status: str = ""
    """`queued`, `sent` or `started`."""
