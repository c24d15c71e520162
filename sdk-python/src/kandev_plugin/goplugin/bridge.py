"""Carries bytes between two unix sockets, with TLS on one of them.

A thread of its own with an event loop, for the process's life. Knows nothing of what is carried. A connection that
fails ends both of its sides, which is all that its ends need to know.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from kandev_plugin.goplugin.identity import NAME

# How long a peer may take for its TLS handshake, in seconds.
_HANDSHAKE_S = 10.0

# The most bytes that wait in one direction of a connection; at the bound its sender waits.
_BUFFER_BYTES = 1 << 20

T = TypeVar("T")


class Bridge:
    """Accepts connections and makes one for each, whose peer with TLS must show the certificate `peer_der`."""

    def __init__(self, peer_der: bytes) -> None:
        self._peer_der = peer_der
        self._loop = asyncio.new_event_loop()
        # What nothing else holds on to.
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.AbstractServer] = []
        threading.Thread(target=self._loop.run_forever, name="plugin-tls", daemon=True).start()

    def carry(
        self, listen: str, target: str, accept: ssl.SSLContext | None = None, connect: ssl.SSLContext | None = None
    ) -> None:
        """Listens at the path `listen` from now on and carries each connection to `target`; TLS is spoken with who
        connects (`accept`) or with the target (`connect`). `OSError` when the path cannot be bound.
        """

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            if task is not None:
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            await self._join(reader, writer, target, connect)

        async def begin() -> None:
            limit = _HANDSHAKE_S if accept else None
            server = await asyncio.start_unix_server(
                connected, listen, ssl=accept, ssl_handshake_timeout=limit, limit=_BUFFER_BYTES
            )
            self._servers.append(server)

        self._run(begin())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _join(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target: str,
        connect: ssl.SSLContext | None,
    ) -> None:
        try:
            name, limit = (NAME, _HANDSHAKE_S) if connect else (None, None)
            there, back = await asyncio.open_unix_connection(
                target, ssl=connect, server_hostname=name, ssl_handshake_timeout=limit, limit=_BUFFER_BYTES
            )
        except (OSError, ssl.SSLError):
            writer.close()
            return
        if self._is_peer(back if connect else writer):
            directions = {asyncio.ensure_future(_copy(reader, back)), asyncio.ensure_future(_copy(there, writer))}
            _, pending = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in pending:
                direction.cancel()
        for side in (writer, back):
            side.close()

    def _is_peer(self, secured: asyncio.StreamWriter) -> bool:
        session: ssl.SSLObject | None = secured.get_extra_info("ssl_object")
        return session is not None and session.getpeercert(binary_form=True) == self._peer_der


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(_BUFFER_BYTES):
            sink.write(chunk)
            await sink.drain()
    except (OSError, ssl.SSLError):
        pass
