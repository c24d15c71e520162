"""The service around a plugin: default answers, own answers, and what becomes of exceptions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kandev_plugin import (
    ActionContext,
    ActionRequest,
    ActionResponse,
    Authorization,
    Code,
    Error,
    Event,
    GitCredential,
    GitRequest,
    Host,
    Plugin,
    ReferenceCandidate,
    ReferenceSearch,
    ReferenceUse,
    Secret,
    ToolContext,
    ToolRequest,
    ToolResponse,
    WebhookRequest,
    WebhookResponse,
    current_call,
)
from kandev_plugin.goplugin import Health
from kandev_plugin.proto import health_pb2 as health
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.service import Service

SERVICE = pb.DESCRIPTOR.services_by_name["Plugin"]

Serve = Callable[..., grpc.Channel]


def struct(message: Message, field: str, **values: Any) -> Any:
    part = getattr(message, field)
    part.SetInParent()
    part.update(values)
    return message


def call(channel: grpc.Channel, rpc: str, request: Message | None = None, timeout: float = 5) -> Any:
    method = SERVICE.methods_by_name[rpc]
    make = channel.unary_unary(
        f"/{SERVICE.full_name}/{rpc}",
        request_serializer=GetMessageClass(method.input_type).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    return make(request or GetMessageClass(method.input_type)(), timeout=timeout)


def failure(channel: grpc.Channel, rpc: str, request: Message | None = None) -> tuple[grpc.StatusCode, str | None]:
    with pytest.raises(grpc.RpcError) as failed:
        call(channel, rpc, request)
    return failed.value.code(), failed.value.details()


@pytest.fixture
def serve(serve_here: Serve, host: Host) -> Callable[..., grpc.Channel]:
    return lambda plugin, workers=4: serve_here(Service(plugin, host, workers).handler())


def test_by_default_events_are_acknowledged_and_webhooks_not_found(serve: Callable[..., grpc.Channel]) -> None:
    channel = serve(Plugin())
    assert call(channel, "DeliverEvent") == pb.EventAck()
    assert call(channel, "HandleWebhook") == pb.WebhookResponse(status=404)


@pytest.mark.parametrize(
    ("rpc", "what"),
    [
        ("HandleAction", "action handler"),
        ("SearchEntityReferences", "entity reference searcher"),
        ("AuthorizeEntityReference", "entity reference authorizer"),
        ("ResolveGitCredential", "git credential resolver"),
        ("GetGitCredentialBinding", "git credential binder"),
        ("InvokeAgentTool", "agent tool invocation"),
    ],
)
def test_an_extension_that_was_not_written_is_unimplemented_with_the_contracts_text(
    serve: Callable[..., grpc.Channel], rpc: str, what: str
) -> None:
    expected = (grpc.StatusCode.UNIMPLEMENTED, f"pluginsdk: plugin does not implement {what}")
    assert failure(serve(Plugin()), rpc) == expected


class Every(Plugin):
    """Answers every call and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def on_event(self, host: Host, event: Event) -> None:
        self.asked.append(event)

    def handle_webhook(self, host: Host, request: WebhookRequest) -> WebhookResponse:
        self.asked.append(request)
        return WebhookResponse(418, {"X-A": "b"}, b"\x00\xff")

    def handle_action(self, host: Host, request: ActionRequest) -> ActionResponse:
        self.asked.append(request)
        return ActionResponse({"a": 1}, 202, {"X-A": "b"})

    def search_references(self, host: Host, search: ReferenceSearch) -> list[ReferenceCandidate]:
        self.asked.append(search)
        return [ReferenceCandidate(provider_local_id="i", title="t", url="u", attributes={"n": 1})]

    def authorize_reference(self, host: Host, request: ReferenceUse) -> Authorization:
        self.asked.append(request)
        return Authorization.deny("no")

    def resolve_git_credential(self, host: Host, request: GitRequest) -> GitCredential:
        self.asked.append(request)
        return GitCredential(username="u", secret=Secret("s"))

    def git_credential_binding(self, host: Host, request: GitRequest) -> str | None:
        self.asked.append(request)
        return None

    def invoke_tool(self, host: Host, request: ToolRequest) -> ToolResponse:
        self.asked.append(request)
        return ToolResponse("t", {"n": 1}, is_error=True)


GIT = {
    "provider_id": "p",
    "workspace_id": "w",
    "task_id": "t",
    "session_id": "s",
    "repository_id": "r",
    "host": "h",
    "path": "a",
}
CONTEXT = {
    "actor_id": "a",
    "workspace_id": "w",
    "task_id": "t",
    "repository_id": "r",
    "session_id": "s",
    "head_branch": "b",
}

CALLS: list[tuple[str, Message, object, Message]] = [
    (
        "DeliverEvent",
        struct(pb.Event(event_id="e", event_type="task.created", occurred_at="o", workspace_id="w"), "payload", n=1),
        Event(id="e", kind="task.created", occurred_at="o", workspace_id="w", payload={"n": 1}),
        pb.EventAck(),
    ),
    ("DeliverEvent", pb.Event(event_type="x"), Event(kind="x"), pb.EventAck()),
    (
        "HandleWebhook",
        pb.WebhookRequest(webhook_key="k", method="GET", path="/p", query="q", headers={"A": "b"}, body=b"\xff"),
        WebhookRequest(key="k", method="GET", path="/p", query="q", headers={"A": "b"}, body=b"\xff"),
        pb.WebhookResponse(status=418, headers={"X-A": "b"}, body=b"\x00\xff"),
    ),
    (
        "HandleAction",
        pb.PluginActionRequest(action_key="k", context=pb.VerifiedActionContext(**CONTEXT), body=b"{}"),
        ActionRequest(key="k", context=ActionContext(**CONTEXT), body=b"{}"),
        pb.PluginActionResponse(status=202, headers={"X-A": "b"}, body=b'{"a":1}'),
    ),
    (
        "SearchEntityReferences",
        pb.SearchEntityReferencesRequest(source="s", workspace_id="w", query="q", limit=-1),
        ReferenceSearch(source="s", workspace_id="w", query="q", limit=0),
        pb.SearchEntityReferencesResponse(
            candidates=[
                struct(pb.EntityReferenceCandidate(provider_local_id="i", title="t", url="u"), "attributes", n=1)
            ]
        ),
    ),
    (
        "AuthorizeEntityReference",
        struct(pb.AuthorizeEntityReferenceRequest(source="s", workspace_id="w", purpose="search"), "reference", id="i"),
        ReferenceUse(source="s", workspace_id="w", purpose="search", reference={"id": "i"}),
        pb.AuthorizeEntityReferenceResponse(allowed=False, reason="no"),
    ),
    (
        "ResolveGitCredential",
        pb.ResolveGitCredentialRequest(**GIT),
        GitRequest(**GIT),
        pb.ResolveGitCredentialResponse(username="u", secret="s"),
    ),
    (
        "GetGitCredentialBinding",
        pb.GitCredentialBindingRequest(**GIT),
        GitRequest(**GIT),
        pb.GitCredentialBindingResponse(),
    ),
    (
        "InvokeAgentTool",
        struct(
            pb.AgentToolRequest(
                invocation_id="i", name="n", context=pb.AgentToolContext(task_id="t", surface="kanban-task")
            ),
            "arguments",
            a=[1],
        ),
        ToolRequest(
            invocation_id="i",
            name="n",
            arguments={"a": [1]},
            context=ToolContext(task_id="t", surface="kanban-task"),
        ),
        struct(pb.AgentToolResponse(text="t", is_error=True), "structured_content", n=1),
    ),
]


@pytest.mark.parametrize(("rpc", "request_", "seen", "answer"), CALLS)
def test_a_call_reaches_its_method_whole_and_the_answer_goes_back_whole(
    serve: Callable[..., grpc.Channel], rpc: str, request_: Message, seen: object, answer: Message
) -> None:
    plugin = Every()
    assert call(serve(plugin), rpc, request_) == answer
    assert plugin.asked == [seen]


def test_every_call_of_the_contract_is_among_them() -> None:
    assert {call[0] for call in CALLS} == {method.name for method in SERVICE.methods}


class Failing(Plugin):
    """Fails with what it is given."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def on_event(self, host: Host, event: Event) -> None:
        raise self._failure

    def handle_action(self, host: Host, request: ActionRequest) -> ActionResponse:
        raise self._failure


def test_an_error_keeps_its_code_and_its_bounded_text(serve: Callable[..., grpc.Channel]) -> None:
    channel = serve(Failing(Error(Code.CONFLICT, "ä" * 2000)))
    code, text = failure(channel, "DeliverEvent")
    assert code is grpc.StatusCode.ALREADY_EXISTS
    assert text == "ä" * 1022 + "…"


def test_an_error_of_an_action_is_an_http_answer(serve: Callable[..., grpc.Channel]) -> None:
    answer = call(serve(Failing(Error(Code.NOT_FOUND, "no board"))), "HandleAction")
    assert answer == pb.PluginActionResponse(status=404, body=b'{"error":"no board"}')


@pytest.mark.parametrize("rpc", ["DeliverEvent", "HandleAction"])
def test_any_other_exception_is_a_bug_with_a_fixed_text_and_a_line_in_the_log(
    serve: Callable[..., grpc.Channel], rpc: str, caplog: pytest.LogCaptureFixture
) -> None:
    code, text = failure(serve(Failing(KeyError("hunter2"))), rpc)
    assert (code, text) == (grpc.StatusCode.INTERNAL, "the plugin's handler raised KeyError; its log says where")
    (record,) = [record for record in caplog.records if record.name == "kandev_plugin"]
    assert (record.levelno, record.__dict__["call"], record.exc_info is not None) == (logging.ERROR, rpc, True)


def test_an_answer_that_is_none_is_a_bug(serve: Callable[..., grpc.Channel]) -> None:
    class Forgetful(Plugin):
        def handle_webhook(self, host: Host, request: WebhookRequest) -> WebhookResponse:
            return None  # type: ignore[return-value]

    assert failure(serve(Forgetful()), "HandleWebhook")[0] is grpc.StatusCode.INTERNAL


class Waiting(Plugin):
    """Waits until nobody waits for it."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.left = threading.Event()
        self.remaining: float | None = None

    def on_event(self, host: Host, event: Event) -> None:
        current = current_call()
        self.remaining = current.remaining
        assert not current.cancelled
        self.began.set()
        if current.wait_cancelled(20) and current.cancelled:
            self.left.set()


def test_a_handler_learns_that_its_caller_is_gone(serve: Callable[..., grpc.Channel]) -> None:
    plugin = Waiting()
    method: Any = serve(plugin).unary_unary(f"/{SERVICE.full_name}/DeliverEvent")
    waiting = method.future(b"", timeout=60)
    assert plugin.began.wait(20)
    assert plugin.remaining is not None
    # The deadline is rounded up on its way.
    assert 0 < plugin.remaining < 90
    waiting.cancel()
    assert plugin.left.wait(20)


def test_outside_of_a_call_there_is_no_current_one() -> None:
    with pytest.raises(LookupError):
        current_call()


def test_handlers_that_hang_keep_no_ping_waiting(serve_here: Serve, host: Host) -> None:
    plugin = Waiting()
    service = Service(plugin, host, workers=2)
    channel = serve_here(service.handler(), Health().handler())
    # More calls than workers, and than the server has threads.
    method: Any = channel.unary_unary(f"/{SERVICE.full_name}/DeliverEvent")
    hanging = [method.future(b"", timeout=10) for _ in range(12)]
    assert plugin.began.wait(5)
    assert service.running <= 2
    ping: Any = channel.unary_unary(
        "/grpc.health.v1.Health/Check", response_deserializer=health.HealthCheckResponse.FromString
    )
    assert ping(b"", timeout=5).status == health.HealthCheckResponse.SERVING
    for waiting in hanging:
        waiting.cancel()
