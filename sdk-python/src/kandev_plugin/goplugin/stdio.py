"""The plugin's stdout, redirected to the host's stdio stream.

stderr stays what it is: it is where Python prints when nothing else works any more.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import grpc

from kandev_plugin.goplugin.call import Call
from kandev_plugin.proto import goplugin_pb2 as pb

# The most that is put into one message. go-plugin itself cuts at 1 KiB; hosts put together what comes.
_CHUNK_BYTES = 16 * 1024

# Chunks that may wait for the host, 1 MiB in all. At the bound a print waits for so many seconds, and then what is
# printed is dropped until there is room again, and told of in a line of its own: no print waits for ever for a host
# that does not read.
_MAX_CHUNKS = 64
_PATIENCE_S = 1.0

_STDOUT = 1


class Redirected:
    """Descriptor 1 as a pipe, whose other end goes to the host. The original stays open: its end would tell the host
    that the plugin closed its stdout.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._original = os.dup(_STDOUT)
        reader, writer = os.pipe()
        os.dup2(writer, _STDOUT)
        os.close(writer)
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)
        self.printed = Printed()
        threading.Thread(target=self._pump, args=(reader,), name="plugin-stdout", daemon=True).start()

    def write_original(self, text: str) -> None:
        """Writes on what stdout was: the handshake line."""
        rest = text.encode()
        while rest:
            rest = rest[os.write(self._original, rest) :]

    def end(self) -> None:
        """Gives descriptor 1 its first meaning back: what was printed goes out to its end, what comes later goes to the
        host's pipe. Nothing happens the second time.
        """
        original, self._original = self._original, -1
        if original >= 0:
            sys.stdout.flush()
            os.dup2(original, _STDOUT)
            os.close(original)

    def _pump(self, reader: int) -> None:
        while chunk := os.read(reader, _CHUNK_BYTES):
            self.printed.put(chunk)
        self.printed.end()
        os.close(reader)


class Printed:
    """What was printed and not yet sent."""

    def __init__(self, max_chunks: int = _MAX_CHUNKS, patience_s: float = _PATIENCE_S) -> None:
        self._chunks: queue.Queue[bytes | None] = queue.Queue(max_chunks)
        self._patience_s = patience_s
        self._dropped = 0
        self._opened = threading.Lock()
        self._ended = threading.Event()

    def put(self, chunk: bytes) -> None:
        """Takes what was printed, or drops it."""
        if self._dropped:
            try:
                self._chunks.put_nowait(_notice(self._dropped))
                self._dropped = 0
            except queue.Full:
                self._dropped += len(chunk)
                # There is no room: whoever prints goes on, but not at full speed.
                time.sleep(0.001)
                return
        try:
            self._chunks.put(chunk, timeout=self._patience_s)
        except queue.Full:
            self._dropped += len(chunk)

    def end(self) -> None:
        """Nothing more will come."""
        try:
            if self._dropped:
                self._chunks.put(_notice(self._dropped), timeout=self._patience_s)
            self._chunks.put(None, timeout=self._patience_s)
        except queue.Full:
            pass
        self._ended.set()

    def wait_end(self, timeout: float) -> bool:
        """Waits until nothing more will come."""
        return self._ended.wait(timeout)

    def handler(self) -> grpc.GenericRpcHandler:
        """The service: what was printed, once."""
        return grpc.method_handlers_generic_handler(
            "plugin.GRPCStdio",
            {
                "StreamStdio": grpc.unary_stream_rpc_method_handler(
                    self._stream,
                    request_deserializer=pb.Empty.FromString,
                    response_serializer=pb.StdioData.SerializeToString,
                )
            },
        )

    def _stream(self, _: pb.Empty, context: grpc.ServicerContext) -> Iterator[pb.StdioData]:
        if not self._opened.acquire(blocking=False):
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the stdio stream was opened before")
        call = Call(context)
        call.on_end(self._wake)
        while (chunk := self._chunks.get()) is not None and not call.cancelled:
            yield pb.StdioData(channel=pb.StdioData.STDOUT, data=chunk)

    def _wake(self) -> None:
        with suppress(queue.Full):
            self._chunks.put_nowait(None)


def _notice(dropped: int) -> bytes:
    """A line of its own, wherever the text before it ended."""
    return b"\n%d bytes of output were left out: the plugin prints faster than the host is sent\n" % dropped
