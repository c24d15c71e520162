"""Changing the platform's data: tasks, messages, and the trees of tasks that the plugin itself made."""

from __future__ import annotations

import grpc
from google.protobuf.message import DecodeError

from kandev_plugin.data import SentMessage, Task
from kandev_plugin.errors import Error
from kandev_plugin.host.base import Caller
from kandev_plugin.host.read import task_of
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.proto import status_pb2
from kandev_plugin.requests import NewTask, TaskUpdate

# Metadata of a call with the key under which it is done once.
_IDEMPOTENCY_KEY = "kandev-idempotency-key"

# Where gRPC puts a status with its details.
_STATUS_DETAILS = "grpc-status-details-bin"


class TreeError(Error):
    """A tree that was not deleted, or only in part."""

    def __init__(self, error: Error, deleted: list[str]) -> None:
        super().__init__(error.code, str(error), from_host=error.from_host)
        self.deleted = deleted
        """The tasks that are gone all the same."""


class Writes(Caller):
    """The calls that change the platform's data."""

    def create_task(self, task: NewTask) -> Task:
        """Creates a task, and tells `task.created`. Made twice it is there twice. `CreateTask`; capability
        `api_write: [tasks]`.
        """
        return task_of(self._call("CreateTask", task.to_wire(pb.CreateTaskRequest()), pb.CreateTaskResponse))

    def create_task_once(self, key: str, task: NewTask) -> Task:
        """The same with an idempotency key, 1 to 128 visible ASCII characters: called again with the same key and the
        same task within 24 hours, it answers the task that was created the first time. An event's id is a good key for
        the task that follows from the event. A host that knows no keys creates another one.
        """
        request, metadata = task.to_wire(pb.CreateTaskRequest()), ((_IDEMPOTENCY_KEY, key),)
        return task_of(self._call("CreateTask", request, pb.CreateTaskResponse, metadata=metadata))

    def update_task(self, update: TaskUpdate) -> Task:
        """Changes a task and answers it as it is then. `UpdateTask`; capability `api_write: [tasks]`."""
        return task_of(self._call("UpdateTask", update.to_wire(pb.UpdateTaskRequest()), pb.UpdateTaskResponse))

    def send_message(self, task_id: str, text: str, session_id: str | None = None) -> SentMessage:
        """Sends a text to a task's agent, in the task's primary session unless one is named; a host without agents does
        not serve it. `SendMessage`; capability `api_write: [messages]`.
        """
        request = pb.SendMessageRequest(task_id=task_id, session_id=session_id or "", text=text)
        return SentMessage.from_wire(self._call("SendMessage", request, pb.SendMessageResponse))

    def preview_task_tree(self, root_task_id: str) -> list[Task]:
        """What `delete_task_tree` would delete. `PreviewPluginOwnedTaskTree`; capability `api_write: [tasks]`."""
        request = pb.PreviewPluginOwnedTaskTreeRequest(root_task_id=root_task_id)
        answer = self._call("PreviewPluginOwnedTaskTree", request, pb.PreviewPluginOwnedTaskTreeResponse)
        return [Task.from_wire(task) for task in answer.tasks]

    def delete_task_tree(self, root_task_id: str) -> list[str]:
        """Deletes a task that this plugin created, with everything below it; answers the ids.
        `DeletePluginOwnedTaskTree`; capability `api_write: [tasks]`. Fails with `TreeError`, which has what is gone
        already.
        """
        request = pb.DeletePluginOwnedTaskTreeRequest(root_task_id=root_task_id)
        try:
            answer = self._call("DeletePluginOwnedTaskTree", request, pb.DeletePluginOwnedTaskTreeResponse)
        except Error as error:
            raise TreeError(error, _deleted_before(error.__cause__)) from error
        return list(answer.deleted_task_ids)


def _deleted_before(cause: BaseException | None) -> list[str]:
    """The progress in a status' details; empty when there is none."""
    progress = pb.DeletePluginOwnedTaskTreeProgress()
    if isinstance(cause, grpc.Call):
        for name, value in cause.trailing_metadata() or ():
            if name == _STATUS_DETAILS and isinstance(value, bytes):
                try:
                    for detail in status_pb2.Status.FromString(value).details:
                        if detail.Unpack(progress):
                            return list(progress.deleted_task_ids)
                except DecodeError:
                    return []
    return []
