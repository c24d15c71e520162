"""Types that are written once, against the wire's descriptors."""

from __future__ import annotations

import dataclasses

import pytest
from google.protobuf.descriptor import Descriptor

from kandev_plugin import data, requests
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.wire import Received, Sent

WIRE_NAMES = {
    "NewTask": "CreateTaskRequest",
    "NewTaskRepository": "PluginTaskRepository",
    "RemoteRepository": "RemoteRepositoryDescriptor",
    "LaunchOptions": "PluginTaskLaunchOptions",
    "TaskUpdate": "UpdateTaskRequest",
    "SentMessage": "SendMessageResponse",
}

OWN = [
    kind
    for module in (data, requests)
    for kind in vars(module).values()
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind not in (Received, Sent)
]


def descriptor(own: type) -> Descriptor:
    found: Descriptor = pb.DESCRIPTOR.message_types_by_name[WIRE_NAMES.get(own.__name__, own.__name__)]
    return found


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_every_field_of_the_wire_is_a_field_here_and_optional_exactly_where_it_may_be_absent(own: type) -> None:
    fields = {field.metadata.get("wire", field.name): str(field.type) for field in dataclasses.fields(own)}
    wire = {field.name: field for field in descriptor(own).fields}
    assert fields.keys() == wire.keys()
    # A text that must not be empty on the wire may be left out by a caller.
    left_out = (
        {"workspace_id", "workflow_id", "repository_id"}
        if own in (requests.NewTask, requests.NewTaskRepository)
        else set()
    )
    for name, kind in fields.items():
        absent = wire[name].has_presence and "Struct" not in str(
            wire[name].message_type and wire[name].message_type.name
        )
        nullable_object = (own.__name__, name) == ("StateEntry", "value")
        assert ("None" in kind) == (absent or name in left_out or nullable_object), name


def test_a_received_task_has_all_that_was_sent() -> None:
    wire = pb.Task(id="t", parent_id="", title="x", repositories=[pb.TaskRepository(id="r", position=2)])
    wire.metadata.update({"a": [1, None]})
    expected = data.Task(
        id="t",
        title="x",
        parent_id="",
        repositories=[data.TaskRepository(id="r", position=2)],
        metadata={"a": [1, None]},
    )
    assert data.Task.from_wire(wire) == expected


def test_what_is_absent_is_none_and_an_absent_object_empty() -> None:
    task = data.Task.from_wire(pb.Task())
    assert (task.parent_id, task.metadata) == (None, {})
    assert data.StateEntry.from_wire(pb.StateEntry(key="k")).value is None
    assert data.Message.from_wire(pb.Message(type="message")).kind == "message"


def test_a_sent_task_has_what_was_given_and_nothing_else() -> None:
    task = requests.NewTask(
        title="x",
        parent_id="",
        launch=requests.LaunchOptions(),
        repositories=[requests.NewTaskRepository(repository_id="r", pull_request_number=7)],
        metadata={"n": 1},
    )
    expected = pb.CreateTaskRequest(
        title="x",
        parent_id="",
        launch=pb.PluginTaskLaunchOptions(),
        repositories=[pb.PluginTaskRepository(repository_id="r", pull_request_number=7)],
    )
    expected.metadata.update({"n": 1})
    sent = task.to_wire(pb.CreateTaskRequest())
    assert sent == expected
    assert (sent.HasField("launch"), sent.HasField("workflow_step_id")) == (True, False)
