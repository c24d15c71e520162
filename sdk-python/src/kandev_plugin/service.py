"""The gRPC service around a `Plugin`: own types in, own types out, exceptions caught.

What a call means is the author's; what an error means on the wire is `errors.py` and `action.py`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kandev_plugin.action import ActionRequest, ActionResponse
from kandev_plugin.errors import Code, Error, cut
from kandev_plugin.event import Event
from kandev_plugin.git import GitRequest
from kandev_plugin.goplugin.call import Call, entered
from kandev_plugin.host import Host
from kandev_plugin.plugin import Plugin
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.reference import ReferenceSearch, ReferenceUse
from kandev_plugin.tool import ToolRequest
from kandev_plugin.webhook import WebhookRequest

_SERVICE = pb.DESCRIPTOR.services_by_name["Plugin"]

T = TypeVar("T")

log = logging.getLogger("kandev_plugin")


class Service:
    """Serves `plugin`, at most `workers` calls at once; further ones wait. go-plugin's own services, pings among them,
    have threads of their own and wait for none of these.
    """

    def __init__(self, plugin: Plugin, host: Host, workers: int) -> None:
        self._plugin = plugin
        self._host = host
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="plugin-call")
        self._running = 0
        self._lock = threading.Lock()

    @property
    def running(self) -> int:
        """Calls whose handlers have not returned, whether or not somebody still waits for them."""
        return self._running

    def handler(self) -> grpc.GenericRpcHandler:
        """The service `kandev.plugin.v1.Plugin`."""
        calls: dict[str, Callable[[Any], Message]] = {
            "DeliverEvent": self._deliver_event,
            "HandleWebhook": self._handle_webhook,
            "HandleAction": self._handle_action,
            "SearchEntityReferences": self._search_references,
            "AuthorizeEntityReference": self._authorize_reference,
            "ResolveGitCredential": self._resolve_git_credential,
            "GetGitCredentialBinding": self._git_credential_binding,
            "InvokeAgentTool": self._invoke_tool,
        }
        handlers = {method.name: self._method(method.name, calls[method.name]) for method in _SERVICE.methods}
        return grpc.method_handlers_generic_handler(_SERVICE.full_name, handlers)

    def _method(self, name: str, answer: Callable[[Any], Message]) -> grpc.RpcMethodHandler[Any, Any]:
        method = _SERVICE.methods_by_name[name]

        def behavior(request: Message, context: grpc.ServicerContext) -> Message:
            with self._counted(), entered(Call(context)):
                try:
                    return guarded(name, lambda: answer(request))
                except Error as error:
                    _fail(context, error)

        # gRPC runs a handler in the pool that it names, else in the server's.
        behavior.experimental_thread_pool = self._threads  # type: ignore[attr-defined]
        return grpc.unary_unary_rpc_method_handler(
            behavior,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )

    @contextmanager
    def _counted(self) -> Generator[None, None, None]:
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def _deliver_event(self, wire: pb.Event) -> Message:
        self._plugin.on_event(self._host, Event.from_wire(wire))
        return pb.EventAck()

    def _handle_webhook(self, wire: pb.WebhookRequest) -> Message:
        return self._plugin.handle_webhook(self._host, WebhookRequest.from_wire(wire)).to_wire()

    def _handle_action(self, wire: pb.PluginActionRequest) -> Message:
        try:
            return self._plugin.handle_action(self._host, ActionRequest.from_wire(wire)).to_wire()
        except Error as error:
            return ActionResponse.of_error(error).to_wire()

    def _search_references(self, wire: pb.SearchEntityReferencesRequest) -> Message:
        found = self._plugin.search_references(self._host, ReferenceSearch.from_wire(wire))
        return pb.SearchEntityReferencesResponse(candidates=[candidate.to_wire() for candidate in found])

    def _authorize_reference(self, wire: pb.AuthorizeEntityReferenceRequest) -> Message:
        return self._plugin.authorize_reference(self._host, ReferenceUse.from_wire(wire)).to_wire()

    def _resolve_git_credential(self, wire: pb.ResolveGitCredentialRequest) -> Message:
        return self._plugin.resolve_git_credential(self._host, GitRequest.from_wire(wire)).to_wire()

    def _git_credential_binding(self, wire: pb.GitCredentialBindingRequest) -> Message:
        binding = self._plugin.git_credential_binding(self._host, GitRequest.from_wire(wire))
        return pb.GitCredentialBindingResponse(binding=binding or "")

    def _invoke_tool(self, wire: pb.AgentToolRequest) -> Message:
        return self._plugin.invoke_tool(self._host, ToolRequest.from_wire(wire)).to_wire()


def guarded(call: str, handler: Callable[[], T]) -> T:
    """Runs a handler; an exception that is no `Error` becomes one with a fixed text, and is logged."""
    try:
        return handler()
    except Error:
        raise
    except Exception as error:
        log.exception("the plugin's handler raised an exception", extra={"call": call})
        kind = type(error).__name__
        raise Error(Code.INTERNAL, f"the plugin's handler raised {kind}; its log says where") from error


def _fail(context: grpc.ServicerContext, error: Error) -> NoReturn:
    context.abort(error.code.to_grpc(), cut(str(error)))
    raise AssertionError("abort raises")
