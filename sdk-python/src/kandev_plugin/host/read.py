"""Reading the platform's data. Lists come as `Items`, which fetch page by page."""

from __future__ import annotations

from kandev_plugin.data import (
    AgentProfile,
    ExecutorProfile,
    Message,
    Repository,
    Session,
    SessionCodeStats,
    Task,
    Workflow,
    WorkflowStep,
    Workspace,
)
from kandev_plugin.errors import Code, Error
from kandev_plugin.host.base import Caller
from kandev_plugin.items import Items
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.requests import MessageFilter, SessionFilter, TaskFilter


class Reads(Caller):
    """The calls that change nothing."""

    def tasks(self, filter: TaskFilter | None = None) -> Items[Task]:  # noqa: A002 what the contract calls it
        """The tasks that the filter takes, newest first. `ListTasks`; capability `api_read: [tasks]`.

        for task in host.tasks(TaskFilter(states=["TODO"])):
            print(task.identifier, task.title)
        """
        wire = (filter or TaskFilter()).to_wire(pb.TaskFilter())

        def fetch(page: pb.Page) -> tuple[list[Task], pb.PageInfo]:
            answer = self._call("ListTasks", pb.ListTasksRequest(filter=wire, page=page), pb.ListTasksResponse)
            return [Task.from_wire(task) for task in answer.tasks], answer.page_info

        return Items(fetch)

    def task(self, id: str) -> Task:  # noqa: A002 what the contract calls it
        """One task; `NOT_FOUND` when there is none. `GetTask`; capability `api_read: [tasks]`."""
        return task_of(self._call("GetTask", pb.GetTaskRequest(id=id), pb.GetTaskResponse))

    def workspaces(self) -> Items[Workspace]:
        """Every workspace. `ListWorkspaces`; capability `api_read: [workspaces]`."""

        def fetch(page: pb.Page) -> tuple[list[Workspace], pb.PageInfo]:
            answer = self._call("ListWorkspaces", pb.ListWorkspacesRequest(page=page), pb.ListWorkspacesResponse)
            return [Workspace.from_wire(workspace) for workspace in answer.workspaces], answer.page_info

        return Items(fetch)

    def workflows(self, workspace_id: str = "") -> Items[Workflow]:
        """The workflows of a workspace, of all of them for `""`. `ListWorkflows`; capability `api_read:
        [workflows]`."""

        def fetch(page: pb.Page) -> tuple[list[Workflow], pb.PageInfo]:
            request = pb.ListWorkflowsRequest(workspace_id=workspace_id, page=page)
            answer = self._call("ListWorkflows", request, pb.ListWorkflowsResponse)
            return [Workflow.from_wire(workflow) for workflow in answer.workflows], answer.page_info

        return Items(fetch)

    def workflow_steps(self, workflow_id: str) -> list[WorkflowStep]:
        """The steps of a workflow, in order, in one answer. `ListWorkflowSteps`; capability `api_read: [workflows]`."""
        request = pb.ListWorkflowStepsRequest(workflow_id=workflow_id)
        answer = self._call("ListWorkflowSteps", request, pb.ListWorkflowStepsResponse)
        return [WorkflowStep.from_wire(step) for step in answer.steps]

    def agent_profiles(self) -> Items[AgentProfile]:
        """Every agent profile. `ListAgentProfiles`; capability `api_read: [agent_profiles]`."""

        def fetch(page: pb.Page) -> tuple[list[AgentProfile], pb.PageInfo]:
            answer = self._call(
                "ListAgentProfiles", pb.ListAgentProfilesRequest(page=page), pb.ListAgentProfilesResponse
            )
            return [AgentProfile.from_wire(profile) for profile in answer.profiles], answer.page_info

        return Items(fetch)

    def executor_profiles(self) -> Items[ExecutorProfile]:
        """Every executor profile. `ListExecutorProfiles`; capability `api_read: [executor_profiles]`."""

        def fetch(page: pb.Page) -> tuple[list[ExecutorProfile], pb.PageInfo]:
            request = pb.ListExecutorProfilesRequest(page=page)
            answer = self._call("ListExecutorProfiles", request, pb.ListExecutorProfilesResponse)
            return [ExecutorProfile.from_wire(profile) for profile in answer.profiles], answer.page_info

        return Items(fetch)

    def repositories(self, workspace_id: str) -> Items[Repository]:
        """The repositories of a workspace. `ListRepositories`; capability `api_read: [repositories]`."""

        def fetch(page: pb.Page) -> tuple[list[Repository], pb.PageInfo]:
            request = pb.ListRepositoriesRequest(workspace_id=workspace_id, page=page)
            answer = self._call("ListRepositories", request, pb.ListRepositoriesResponse)
            return [Repository.from_wire(repository) for repository in answer.repositories], answer.page_info

        return Items(fetch)

    def sessions(self, filter: SessionFilter | None = None) -> Items[Session]:  # noqa: A002
        """The sessions that the filter takes, newest first. `ListSessions`; capability `api_read: [sessions]`."""
        wire = (filter or SessionFilter()).to_wire(pb.SessionFilter())

        def fetch(page: pb.Page) -> tuple[list[Session], pb.PageInfo]:
            request = pb.ListSessionsRequest(filter=wire, page=page)
            answer = self._call("ListSessions", request, pb.ListSessionsResponse)
            return [Session.from_wire(session) for session in answer.sessions], answer.page_info

        return Items(fetch)

    def session_code_stats(self, filter: SessionFilter | None = None) -> Items[SessionCodeStats]:  # noqa: A002
        """How many lines each of these sessions wrote, in the order of `sessions` (older hosts: the other way round).
        `ListSessionCodeStats`; capability `api_read: [sessions]`.
        """
        wire = (filter or SessionFilter()).to_wire(pb.SessionFilter())

        def fetch(page: pb.Page) -> tuple[list[SessionCodeStats], pb.PageInfo]:
            request = pb.ListSessionCodeStatsRequest(filter=wire, page=page)
            answer = self._call("ListSessionCodeStats", request, pb.ListSessionCodeStatsResponse)
            return [SessionCodeStats.from_wire(stats) for stats in answer.stats], answer.page_info

        return Items(fetch)

    def messages(self, filter: MessageFilter | None = None) -> Items[Message]:  # noqa: A002
        """The messages that the filter takes, oldest first. `ListMessages`; capability `api_read: [messages]`."""
        wire = (filter or MessageFilter()).to_wire(pb.MessageFilter())

        def fetch(page: pb.Page) -> tuple[list[Message], pb.PageInfo]:
            request = pb.ListMessagesRequest(filter=wire, page=page)
            answer = self._call("ListMessages", request, pb.ListMessagesResponse)
            return [Message.from_wire(message) for message in answer.messages], answer.page_info

        return Items(fetch)


def task_of(answer: pb.GetTaskResponse | pb.CreateTaskResponse | pb.UpdateTaskResponse) -> Task:
    """The task of an answer; a host that sends none broke the contract."""
    if not answer.HasField("task"):
        raise Error(Code.INTERNAL, "the host's answer holds no task", from_host=True)
    return Task.from_wire(answer.task)
