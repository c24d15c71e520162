"""The moment at which serving ends."""

from __future__ import annotations

import threading
from collections.abc import Callable

_WAKE_S = 0.5


class Stop:
    """Set once, by Shutdown. Threads wait for it, and what must end with it registers how."""

    def __init__(self) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._acts: list[Callable[[], None]] = []

    def set(self) -> None:
        """Ends serving; nothing happens the second time."""
        with self._lock:
            self._set.set()
            acts, self._acts = self._acts, []
        for act in acts:
            act()

    def wait(self) -> None:
        """Returns when serving ends."""
        # Not for ever in one go: a signal that the kernel gave another thread is handled when this one wakes.
        while not self._set.wait(_WAKE_S):
            pass

    def on_set(self, act: Callable[[], None]) -> None:
        """Runs `act` when serving ends; at once when it has ended."""
        with self._lock:
            if not self._set.is_set():
                self._acts.append(act)
                return
        act()

    def forget(self, act: Callable[[], None]) -> None:
        """What was registered need not run any more."""
        with self._lock:
            if act in self._acts:
                self._acts.remove(act)
