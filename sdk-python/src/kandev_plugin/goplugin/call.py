"""One call of the host, as whoever answers it sees it: whether somebody still waits for the answer."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import grpc


class Call:
    """A call in progress. The host gives up a call at its deadline, and when its own caller is gone."""

    def __init__(self, context: grpc.ServicerContext) -> None:
        self._context = context
        self._over = threading.Event()
        self.on_end(self._over.set)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: work for it can stop."""
        return self._over.is_set()

    @property
    def remaining(self) -> float | None:
        """Seconds until the host's deadline; `None` when it has none."""
        remaining = self._context.time_remaining()
        return remaining if remaining is None or remaining < _FOR_EVER_S else None

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Waits until nobody waits for the answer, `timeout` seconds at most. Whether that is so."""
        return self._over.wait(timeout)

    def on_end(self, act: Callable[[], None]) -> None:
        """Runs `act` when the call is over, however it ends; at once when it is over already."""
        if not self._context.add_callback(act):
            act()


# gRPC tells of a call without a deadline that it has hundreds of years.
_FOR_EVER_S = 10.0 * 365 * 86400

_current: contextvars.ContextVar[Call] = contextvars.ContextVar("kandev_plugin_call")


def current_call() -> Call:
    """The call that this thread is answering. `LookupError` where there is none, in a thread of your own for
    instance."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("no call of the host is being answered in this thread") from None


@contextmanager
def entered(call: Call) -> Generator[Call, None, None]:
    """Makes `call` the current one."""
    token = _current.set(call)
    try:
        yield call
    finally:
        _current.reset(token)
