"""Every call of the host: what is sent, and what is made of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from support.fake_host import SERVICE, FakeHost

from kandev_plugin import (
    AgentProfile,
    Code,
    Error,
    ExecutorProfile,
    Host,
    MessageFilter,
    NewTask,
    Repository,
    Secret,
    SentMessage,
    Session,
    SessionCodeStats,
    SessionFilter,
    Settings,
    StateEntry,
    Task,
    TaskFilter,
    TaskUpdate,
    TreeError,
    Workflow,
    WorkflowStep,
    Workspace,
)
from kandev_plugin import Message as PlatformMessage
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.proto import status_pb2

PAGE = pb.Page(limit=200)


def struct(message: Message, field: str, **values: Any) -> Any:
    part = getattr(message, field)
    part.SetInParent()
    part.update(values)
    return message


# RPC, the call, what the host must be asked, what it answers, and what the call gives.
CALLS: list[tuple[str, Callable[[Host], Any], Message, Message, Any]] = [
    (
        "GetState",
        lambda host: host.state("s").of("i").get("k"),
        pb.GetStateRequest(scope="s", scope_id="i", key="k"),
        struct(pb.GetStateResponse(found=True), "value", n=1),
        {"n": 1},
    ),
    (
        "SetState",
        lambda host: host.state("s").set("k", {"n": 1}),
        struct(pb.SetStateRequest(scope="s", key="k"), "value", n=1),
        pb.SetStateResponse(),
        None,
    ),
    (
        "DeleteState",
        lambda host: host.state("s").delete("k"),
        pb.DeleteStateRequest(scope="s", key="k"),
        pb.DeleteStateResponse(),
        None,
    ),
    (
        "ListState",
        lambda host: host.state("s").list(),
        pb.ListStateRequest(scope="s"),
        pb.ListStateResponse(entries=[struct(pb.StateEntry(key="k", updated_at="t"), "value", n=1)]),
        [StateEntry(key="k", value={"n": 1}, updated_at="t")],
    ),
    (
        "RevealSecret",
        lambda host: host.reveal_secret("r"),
        pb.RevealSecretRequest(ref="r"),
        pb.RevealSecretResponse(value="x"),
        Secret("x"),
    ),
    (
        "EmitEvent",
        lambda host: host.emit("done", {"n": 1}),
        struct(pb.EmitEventRequest(event_name="done"), "payload", n=1),
        pb.EmitEventResponse(),
        None,
    ),
    (
        "GetConfig",
        lambda host: dict(host.config().values),
        pb.GetConfigRequest(),
        struct(pb.GetConfigResponse(), "config", n=1),
        {"n": 1},
    ),
    (
        "GetSecret",
        lambda host: host.secret("k"),
        pb.GetSecretRequest(key="k"),
        pb.GetSecretResponse(found=True, value="x"),
        Secret("x"),
    ),
    (
        "SetSecret",
        lambda host: host.set_secret("k", Secret("x")),
        pb.SetSecretRequest(key="k", value="x"),
        pb.SetSecretResponse(),
        None,
    ),
    (
        "DeleteSecret",
        lambda host: host.delete_secret("k"),
        pb.DeleteSecretRequest(key="k"),
        pb.DeleteSecretResponse(),
        None,
    ),
    (
        "ListTasks",
        lambda host: host.tasks(TaskFilter(states=["TODO"], parent_id="")).all(),
        pb.ListTasksRequest(filter=pb.TaskFilter(states=["TODO"], parent_id=""), page=PAGE),
        pb.ListTasksResponse(tasks=[pb.Task(id="t")]),
        [Task(id="t")],
    ),
    (
        "GetTask",
        lambda host: host.task("t"),
        pb.GetTaskRequest(id="t"),
        pb.GetTaskResponse(task=pb.Task(id="t")),
        Task(id="t"),
    ),
    (
        "ListWorkspaces",
        lambda host: host.workspaces().all(),
        pb.ListWorkspacesRequest(page=PAGE),
        pb.ListWorkspacesResponse(workspaces=[pb.Workspace(id="w")]),
        [Workspace(id="w")],
    ),
    (
        "ListWorkflows",
        lambda host: host.workflows("w").all(),
        pb.ListWorkflowsRequest(workspace_id="w", page=PAGE),
        pb.ListWorkflowsResponse(workflows=[pb.Workflow(id="f", description="")]),
        [Workflow(id="f", description="")],
    ),
    (
        "ListWorkflowSteps",
        lambda host: host.workflow_steps("f"),
        pb.ListWorkflowStepsRequest(workflow_id="f"),
        pb.ListWorkflowStepsResponse(steps=[pb.WorkflowStep(id="s", position=1)]),
        [WorkflowStep(id="s", position=1)],
    ),
    (
        "ListAgentProfiles",
        lambda host: host.agent_profiles().all(),
        pb.ListAgentProfilesRequest(page=PAGE),
        pb.ListAgentProfilesResponse(profiles=[pb.AgentProfile(id="a")]),
        [AgentProfile(id="a")],
    ),
    (
        "ListExecutorProfiles",
        lambda host: host.executor_profiles().all(),
        pb.ListExecutorProfilesRequest(page=PAGE),
        pb.ListExecutorProfilesResponse(profiles=[pb.ExecutorProfile(id="e")]),
        [ExecutorProfile(id="e")],
    ),
    (
        "ListRepositories",
        lambda host: host.repositories("w").all(),
        pb.ListRepositoriesRequest(workspace_id="w", page=PAGE),
        pb.ListRepositoriesResponse(repositories=[pb.Repository(id="r")]),
        [Repository(id="r")],
    ),
    (
        "ListSessions",
        lambda host: host.sessions(SessionFilter(task_ids=["t"])).all(),
        pb.ListSessionsRequest(filter=pb.SessionFilter(task_ids=["t"]), page=PAGE),
        pb.ListSessionsResponse(sessions=[pb.Session(id="s")]),
        [Session(id="s")],
    ),
    (
        "ListSessionCodeStats",
        lambda host: host.session_code_stats().all(),
        pb.ListSessionCodeStatsRequest(filter=pb.SessionFilter(), page=PAGE),
        pb.ListSessionCodeStatsResponse(stats=[pb.SessionCodeStats(session_id="s", lines_added_committed=2**40)]),
        [SessionCodeStats(session_id="s", lines_added_committed=2**40)],
    ),
    (
        "ListMessages",
        lambda host: host.messages(MessageFilter(since="2026-01-01T00:00:00Z")).all(),
        pb.ListMessagesRequest(filter=pb.MessageFilter(since="2026-01-01T00:00:00Z"), page=PAGE),
        pb.ListMessagesResponse(messages=[pb.Message(id="m", type="message")]),
        [PlatformMessage(id="m", kind="message")],
    ),
    (
        "InvokeUtilityAgent",
        lambda host: host.ask_agent("p"),
        pb.InvokeUtilityAgentRequest(prompt="p"),
        pb.InvokeUtilityAgentResponse(text="a"),
        "a",
    ),
    (
        "CreateTask",
        lambda host: host.create_task(NewTask(title="x", workspace_id="w")),
        struct(pb.CreateTaskRequest(title="x", workspace_id="w"), "metadata"),
        pb.CreateTaskResponse(task=pb.Task(id="t")),
        Task(id="t"),
    ),
    (
        "UpdateTask",
        lambda host: host.update_task(TaskUpdate(id="t", title="")),
        pb.UpdateTaskRequest(id="t", title=""),
        pb.UpdateTaskResponse(task=pb.Task(id="t")),
        Task(id="t"),
    ),
    (
        "SendMessage",
        lambda host: host.send_message("t", "hi", session_id="s"),
        pb.SendMessageRequest(task_id="t", session_id="s", text="hi"),
        pb.SendMessageResponse(session_id="s", status="queued"),
        SentMessage(session_id="s", status="queued"),
    ),
    (
        "PreviewPluginOwnedTaskTree",
        lambda host: host.preview_task_tree("t"),
        pb.PreviewPluginOwnedTaskTreeRequest(root_task_id="t"),
        pb.PreviewPluginOwnedTaskTreeResponse(tasks=[pb.Task(id="t")]),
        [Task(id="t")],
    ),
    (
        "DeletePluginOwnedTaskTree",
        lambda host: host.delete_task_tree("t"),
        pb.DeletePluginOwnedTaskTreeRequest(root_task_id="t"),
        pb.DeletePluginOwnedTaskTreeResponse(deleted_task_ids=["t", "u"]),
        ["t", "u"],
    ),
]


@pytest.mark.parametrize(("rpc", "call", "request_", "answer", "expected"), CALLS, ids=[call[0] for call in CALLS])
def test_a_call_asks_the_host_and_gives_its_answer(
    host: Host,
    fake: FakeHost,
    rpc: str,
    call: Callable[[Host], Any],
    request_: Message,
    answer: Message,
    expected: Any,
) -> None:
    fake.answers[rpc] = answer
    assert call(host) == expected
    assert fake.asked == [(rpc, request_)]


def test_every_call_of_the_contract_is_among_them() -> None:
    assert {call[0] for call in CALLS} == {method.name for method in SERVICE.methods}


@pytest.mark.parametrize("answer", [pb.GetStateResponse(), pb.GetStateResponse(found=True)])
def test_a_state_that_is_absent_or_null_is_none(host: Host, fake: FakeHost, answer: Message) -> None:
    fake.answers["GetState"] = answer
    assert host.state("s").get("k") is None


def test_a_state_set_to_null_is_sent_without_a_value(host: Host, fake: FakeHost) -> None:
    host.state("s").set("k", None)
    assert fake.asked == [("SetState", pb.SetStateRequest(scope="s", key="k"))]


def test_a_secret_that_was_never_set_is_none(host: Host) -> None:
    assert host.secret("k") is None


def test_a_list_is_walked_page_by_page(host: Host, fake: FakeHost) -> None:
    def pages(request: pb.ListTasksRequest, _: object) -> pb.ListTasksResponse:
        if not request.page.cursor:
            info = pb.PageInfo(next_cursor="c", has_more=True)
            return pb.ListTasksResponse(tasks=[pb.Task(id="1")], page_info=info)
        return pb.ListTasksResponse(tasks=[pb.Task(id="2")])

    fake.answers["ListTasks"] = pages
    assert [task.id for task in host.tasks()] == ["1", "2"]
    cursors = [request.page.cursor for _, request in fake.asked if isinstance(request, pb.ListTasksRequest)]
    assert cursors == ["", "c"]


def test_an_idempotency_key_travels_as_metadata(host: Host, fake: FakeHost) -> None:
    fake.answers["CreateTask"] = pb.CreateTaskResponse(task=pb.Task(id="t"))
    host.create_task_once("event-1", NewTask(title="x"))
    assert fake.metadata[0]["kandev-idempotency-key"] == "event-1"


def test_a_refusal_of_the_host_keeps_code_and_text(host: Host, fake: FakeHost) -> None:
    def refuse(_: object, context: grpc.ServicerContext) -> Message:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "capability 'state' not declared")
        raise AssertionError

    fake.answers["GetState"] = refuse
    with pytest.raises(Error) as refused:
        host.state("s").get("k")
    told = (refused.value.code, str(refused.value), refused.value.from_host)
    assert told == (Code.PERMISSION_DENIED, "capability 'state' not declared", True)


def test_an_answer_without_its_task_is_the_hosts_fault(host: Host) -> None:
    with pytest.raises(Error) as failed:
        host.task("t")
    assert (failed.value.code, str(failed.value)) == (Code.INTERNAL, "the host's answer holds no task")


def test_a_call_ends_at_its_limit(fake: FakeHost, serve_here: Callable[..., grpc.Channel]) -> None:
    def never(_: object, context: grpc.ServicerContext) -> Message:
        while context.is_active():
            pass
        return pb.GetConfigResponse()

    fake.answers["GetConfig"] = never
    host = Host.from_channel(serve_here(fake.handler()), Settings(call_timeout_s=0.2))
    with pytest.raises(Error) as late:
        host.config()
    assert (late.value.code, str(late.value)) == (Code.DEADLINE_EXCEEDED, "the host did not answer within 0.2 s")


@pytest.mark.parametrize(
    ("details", "deleted"),
    [(True, ["a", "b"]), (False, []), (b"\xff\xff", [])],
    ids=["told", "not told", "damaged"],
)
def test_what_was_deleted_before_a_failure_is_read_from_its_details(
    host: Host, fake: FakeHost, details: bool | bytes, deleted: list[str]
) -> None:
    def fail(_: object, context: grpc.ServicerContext) -> Message:
        if details:
            status = status_pb2.Status(code=2, message="failed")
            status.details.add().Pack(pb.DeletePluginOwnedTaskTreeProgress(deleted_task_ids=["a", "b"]))
            value = details if isinstance(details, bytes) else status.SerializeToString()
            context.set_trailing_metadata((("grpc-status-details-bin", value),))
        context.abort(grpc.StatusCode.UNKNOWN, "failed")
        raise AssertionError

    fake.answers["DeletePluginOwnedTaskTree"] = fail
    with pytest.raises(TreeError, match="failed") as partial:
        host.delete_task_tree("t")
    assert partial.value.deleted == deleted
