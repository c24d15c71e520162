"""Finding the host's service: dialling broker id 1 again and again, for a bounded time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import grpc

from kandev_plugin.errors import Code, Error
from kandev_plugin.goplugin.broker import DialError

# The broker id at which every kandev host serves its service.
HOST_BROKER_ID = 1

# The pause after the first failed attempt, in seconds; it doubles up to the last. One attempt takes up to 5 s.
_FIRST_PAUSE_S = 0.1
_LAST_PAUSE_S = 2.0

log = logging.getLogger("kandev_plugin")


class Search:
    """How the search for the host stands. It looks in a thread of its own, `limit_s` seconds at most."""

    def __init__(self, dial: Callable[[], grpc.Channel], limit_s: float) -> None:
        self._over = threading.Event()
        self._channel: grpc.Channel | None = None
        self._dial = dial
        self._limit_s = limit_s

    @staticmethod
    def found(channel: grpc.Channel) -> Search:
        """One that is over."""
        search = Search(lambda: channel, 0)
        search._finish(channel)
        return search

    def begin(self) -> None:
        """Starts looking."""
        threading.Thread(target=self._look, name="plugin-host-search", daemon=True).start()

    def channel(self, wait_s: float | None) -> grpc.Channel:
        """The way to the host. Waits while it is looked for, so long at most, and is `UNAVAILABLE` then, at once when
        the search was given up.
        """
        if not self._over.wait(wait_s):
            raise Error(Code.UNAVAILABLE, "the host has not announced its service yet; try again", from_host=True)
        if self._channel is None:
            text = "the host did not announce its service after the plugin's start"
            raise Error(Code.UNAVAILABLE, text, from_host=True)
        return self._channel

    def _look(self) -> None:
        deadline = time.monotonic() + self._limit_s
        for pause in pauses():
            try:
                self._finish(self._dial())
            except DialError as error:
                log.debug("the host was not found yet", extra={"cause": str(error)})
            else:
                return
            if time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
        extra = {"limit_s": self._limit_s}
        log.warning("the host did not announce its service; calls of it will fail", extra=extra)
        self._finish(None)

    def _finish(self, channel: grpc.Channel | None) -> None:
        self._channel = channel
        self._over.set()


def pauses() -> Iterator[float]:
    """The pauses after failed attempts, without end."""
    pause = _FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, _LAST_PAUSE_S)
