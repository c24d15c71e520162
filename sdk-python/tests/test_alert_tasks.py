"""The example alert-tasks, below a fake host."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from support.fake_host import FakeHost

from kandev_plugin import Host, Plugin, ToolRequest, WebhookRequest, WebhookResponse
from kandev_plugin.proto import plugin_pb2 as pb

SOURCE = Path(__file__).parents[1] / "examples" / "alert-tasks" / "src" / "alerts.py"

FIRING = {
    "status": "firing",
    "labels": {"alertname": "DiskFull"},
    "annotations": {"summary": "db-1 is at 97 %"},
    "startsAt": "2026-11-30T10:00:00Z",
    "generatorURL": "http://prometheus/graph",
    "fingerprint": "f1",
}
RESOLVED = {**FIRING, "status": "resolved"}


@pytest.fixture
def plugin(fake: FakeHost) -> Plugin:
    spec = importlib.util.spec_from_file_location("alerts", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["alerts"] = module
    spec.loader.exec_module(module)
    state: dict[str, Any] = {}
    config = pb.GetConfigResponse()
    config.config.update({"token": "s3cr3t"})

    def get(request: pb.GetStateRequest, _: object) -> pb.GetStateResponse:
        return pb.GetStateResponse(found=request.key in state, value=state.get(request.key))

    def put(request: pb.SetStateRequest, _: object) -> pb.SetStateResponse:
        state[request.key] = request.value
        return pb.SetStateResponse()

    def delete(request: pb.DeleteStateRequest, _: object) -> pb.DeleteStateResponse:
        state.pop(request.key, None)
        return pb.DeleteStateResponse()

    def entries(_: object, __: object) -> pb.ListStateResponse:
        return pb.ListStateResponse(entries=[pb.StateEntry(key=key, value=value) for key, value in state.items()])

    fake.answers = {
        "GetConfig": config,
        "GetState": get,
        "SetState": put,
        "DeleteState": delete,
        "ListState": entries,
        "CreateTask": pb.CreateTaskResponse(task=pb.Task(id="task-1")),
        "UpdateTask": pb.UpdateTaskResponse(task=pb.Task(id="task-1")),
    }
    made: Plugin = module.AlertTasks()
    return made


def send(plugin: Plugin, host: Host, *alerts: Any, query: str = "token=s3cr3t") -> WebhookResponse:
    body = json.dumps({"version": "4", "alerts": alerts}).encode()
    return plugin.handle_webhook(host, WebhookRequest(key="alertmanager", method="POST", query=query, body=body))


def asked(fake: FakeHost, rpc: str) -> list[Message]:
    return [request for name, request in fake.asked if name == rpc]


def test_a_firing_alert_becomes_one_task_however_often_it_is_told(plugin: Plugin, host: Host, fake: FakeHost) -> None:
    assert send(plugin, host, FIRING).body == b'{"created":1,"completed":0}'
    assert send(plugin, host, FIRING).body == b'{"created":0,"completed":0}'
    expected = pb.CreateTaskRequest(
        title="DiskFull: db-1 is at 97 %",
        description="db-1 is at 97 %\nFiring since 2026-11-30T10:00:00Z\nhttp://prometheus/graph",
    )
    expected.metadata.update({"alert": "DiskFull"})
    assert asked(fake, "CreateTask") == [expected]
    assert any("kandev-idempotency-key" in metadata for metadata in fake.metadata)


def test_a_resolved_alert_completes_its_task_once(plugin: Plugin, host: Host, fake: FakeHost) -> None:
    send(plugin, host, FIRING)
    assert send(plugin, host, RESOLVED).body == b'{"created":0,"completed":1}'
    assert send(plugin, host, RESOLVED).body == b'{"created":0,"completed":0}'
    assert asked(fake, "UpdateTask") == [pb.UpdateTaskRequest(id="task-1", state="COMPLETED")]


def test_a_task_that_is_gone_is_not_missed(plugin: Plugin, host: Host, fake: FakeHost) -> None:
    def gone(_: object, context: grpc.ServicerContext) -> Message:
        context.abort(grpc.StatusCode.NOT_FOUND, 'task "task-1" not found')
        raise AssertionError

    send(plugin, host, FIRING)
    fake.answers["UpdateTask"] = gone
    assert send(plugin, host, RESOLVED).body == b'{"created":0,"completed":0}'
    assert plugin.invoke_tool(host, ToolRequest(name="open_alerts")).text == "no alert is firing"


def test_the_tool_lists_what_is_firing(plugin: Plugin, host: Host) -> None:
    send(plugin, host, FIRING)
    answer = plugin.invoke_tool(host, ToolRequest(name="open_alerts"))
    entry = {"name": "DiskFull", "task_id": "task-1", "since": "2026-11-30T10:00:00Z"}
    assert (answer.text, answer.structured) == (
        "DiskFull since 2026-11-30T10:00:00Z: task task-1",
        {"alerts": [entry]},
    )


@pytest.mark.parametrize("query", ["", "token=", "token=wrong"])
def test_without_the_token_nothing_is_taken(plugin: Plugin, host: Host, fake: FakeHost, query: str) -> None:
    answer = send(plugin, host, FIRING, query=query)
    assert (answer.status, answer.body) == (401, b"the address has no ?token=, or a wrong one")
    assert asked(fake, "CreateTask") == []


@pytest.mark.parametrize("alerts", [[1], [{}], [{**FIRING, "fingerprint": 1}], [{**FIRING, "status": "x"}]])
def test_what_is_no_notification_is_refused_whole(
    plugin: Plugin, host: Host, fake: FakeHost, alerts: list[Any]
) -> None:
    assert send(plugin, host, FIRING, *alerts).status == 400
    assert asked(fake, "CreateTask") == []


def test_a_refusal_of_the_host_makes_alertmanager_try_again(plugin: Plugin, host: Host, fake: FakeHost) -> None:
    def down(_: object, context: grpc.ServicerContext) -> Message:
        context.abort(grpc.StatusCode.UNAVAILABLE, "the database is away")
        raise AssertionError

    fake.answers["CreateTask"] = down
    assert send(plugin, host, FIRING) == WebhookResponse(500)


def test_a_title_fits_the_platform(plugin: Plugin, host: Host, fake: FakeHost) -> None:
    send(plugin, host, {**FIRING, "annotations": {"summary": "x" * 100}})
    (request,) = asked(fake, "CreateTask")
    assert isinstance(request, pb.CreateTaskRequest)
    assert request.title == "DiskFull: " + "x" * 49 + "…"
