"""What an author may tune."""

from __future__ import annotations

import logging
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The defaults suit most plugins. Times are in seconds."""

    log_level: int = logging.INFO
    """Log lines below are not written."""
    workers: int = 128
    """Calls of the plugin at once, each in a thread; further ones wait. Threads are made when they are needed."""
    host_search_s: float = 30
    """How long the host is looked for after the start. When it passes, every call of the host fails, for good."""
    host_wait_s: float = 5
    """How long a call of the host waits for it to be found; then it fails as unavailable. Below the host's own deadline
    for an event (10 s)."""
    call_timeout_s: float = 35
    """How long the host may take to answer a call; then it fails with a deadline exceeded. Longer than a host takes by
    itself (30 s): whoever gives up first does not learn what became of the call."""
    agent_timeout_s: float = 600
    """The same for `Host.ask_agent`."""
    stop_limit_s: float = 1.2
    """How long `Plugin.on_stop` may take; then the process ends without it. A host kills a plugin 2 s after asking it
    to stop, and Python itself takes a moment to end."""
