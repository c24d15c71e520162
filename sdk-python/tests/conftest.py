"""What the tests share: a gRPC server in this process, and the fake host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
import pytest
from support.fake_host import FakeHost

from kandev_plugin import Host, Settings

Serve = Callable[..., grpc.Channel]


@pytest.fixture
def serve_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Serves handlers in this process and gives a channel to them."""
    ends: list[Callable[[], object]] = []

    def begin(*handlers: grpc.GenericRpcHandler) -> grpc.Channel:
        server = grpc.server(futures.ThreadPoolExecutor(8))
        server.add_generic_rpc_handlers(handlers)
        address = f"unix:{tmp_path_factory.mktemp('s')}/s"
        server.add_insecure_port(address)
        server.start()
        channel = grpc.insecure_channel(address)
        ends.extend([channel.close, lambda: server.stop(None).wait()])
        return channel

    yield begin
    for end in ends:
        end()


@pytest.fixture
def fake() -> FakeHost:
    """A host that answers what it is told."""
    return FakeHost()


@pytest.fixture
def host(fake: FakeHost, serve_here: Serve) -> Host:
    """The handle of `fake`."""
    return Host.from_channel(serve_here(fake.handler()), Settings(call_timeout_s=5))
