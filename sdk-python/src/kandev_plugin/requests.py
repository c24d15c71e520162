"""What a plugin asks the platform for: filters of lists, and tasks to make or change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kandev_plugin.wire import Sent


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter(Sent):
    """Which tasks. An empty list filters nothing."""

    workspace_ids: Sequence[str] = ()
    workflow_ids: Sequence[str] = ()
    states: Sequence[str] = ()
    parent_id: str | None = None
    """Parts of this task; `""` gives roots only, `None` all."""
    include_ephemeral: bool = False
    """With quick chats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter(Sent):
    """Which sessions. An empty list filters nothing."""

    task_ids: Sequence[str] = ()
    workspace_ids: Sequence[str] = ()
    states: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter(Sent):
    """Which messages. An empty list filters nothing; the lists may have 400 values together."""

    session_ids: Sequence[str] = ()
    task_ids: Sequence[str] = ()
    since: str | None = None
    """RFC 3339, inclusive."""
    until: str | None = None
    """RFC 3339, exclusive."""
    types: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRepository(Sent):
    """A repository of a provider that the plugin owns (`repository_providers` of the manifest)."""

    provider_id: str
    provider_host: str
    """Its server."""
    owner_or_project: str
    """The owner or project there."""
    provider_repository_id: str
    """The repository's id there."""
    name: str
    clone_url: str
    """HTTPS, on the provider's server, without credentials."""
    default_branch: str | None = None
    base_branch: str | None = None
    """The branch that work begins from."""
    head_branch: str | None = None
    """The branch of the work."""
    pull_request_number: int | None = None
    provider_scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTaskRepository(Sent):
    """A repository for a new task: one that the host knows, or one of a provider that the plugin owns."""

    repository_id: str | None = None
    """The one that the host knows; `None` with `remote`."""
    remote: RemoteRepository | None = None
    """The provider's; `None` with `repository_id`."""
    base_branch: str | None = None
    """The branch that work begins from."""
    checkout_branch: str | None = None
    """The branch to check out."""
    pull_request_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions(Sent):
    """How an agent begins a new task."""

    agent_profile_id: str | None = None
    """Who."""
    executor_profile_id: str | None = None
    """Where."""
    prompt: str | None = None
    """With what prompt."""
    plan_mode: str | None = None
    """`off`, `on` or `replace`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask(Sent):
    """A task to create."""

    title: str
    """60 characters at most."""
    workspace_id: str | None = None
    """The workspace; `None` when the instance has only one."""
    workflow_id: str | None = None
    """The workflow; `None` for the workspace's default."""
    workflow_step_id: str | None = None
    """The step; `None` for the workflow's start step, else its first."""
    description: str = ""
    """What the agent reads."""
    parent_id: str | None = None
    """The task it is part of."""
    start_agent: bool = False
    """Whether an agent begins at once. The task is made either way: a host that cannot start one says so in its log."""
    repositories: Sequence[NewTaskRepository] = ()
    """What it works on."""
    launch: LaunchOptions | None = None
    """How the agent begins."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Whatever you like; it is kept under the key `plugin:<id>`. The key `source` is the host's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUpdate(Sent):
    """What to change in a task; `None` leaves it."""

    id: str
    title: str | None = None
    description: str | None = None
    state: str | None = None
    workflow_step_id: str | None = None
    """The step of its workflow."""
