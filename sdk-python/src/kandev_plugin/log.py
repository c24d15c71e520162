"""Log lines as hclog JSON on stderr, the form that go-plugin's hosts read: `@level`, `@message`, `@module`,
`@timestamp`, and the caller's fields (`extra`) beside them.

Owns the line's form and bounds. Which lines are wanted is `Settings`.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import datetime, timezone
from typing import Any

from kandev_plugin.errors import cut

# The longest text in a line, in bytes. A host takes lines of 64 KiB; a longer one is no JSON to it any more.
_MAX_TEXT_BYTES = 8 * 1024

# The most fields in a line; the first stay.
_MAX_FIELDS = 32

# The longest line in bytes; of a longer one the fields are left out.
_MAX_LINE_BYTES = 48 * 1024

# What every record has, and so no field of the caller's.
_OF_A_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class HclogFormatter(logging.Formatter):
    """Makes a record one hclog line. `serve` installs it unless the program has set up logging by itself, which can
    hold it::

        handler = logging.StreamHandler()
        handler.setFormatter(HclogFormatter())
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        head: dict[str, Any] = {
            "@level": _level(record.levelno),
            "@message": cut(record.getMessage(), _MAX_TEXT_BYTES),
            "@module": record.name,
            "@timestamp": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
        }
        line = _line(head | self._fields(record))
        return line if len(line.encode()) <= _MAX_LINE_BYTES else _line(head)

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if record.exc_info:
            # The end of it says what and where.
            fields["traceback"] = _end(self.formatException(record.exc_info))
        for name, value in record.__dict__.items():
            # `@` names are hclog's own.
            if name not in _OF_A_RECORD and len(fields) < _MAX_FIELDS:
                fields[name.lstrip("@")] = _bounded(value)
        return fields


def install(level: int) -> None:
    """Logs by `HclogFormatter` from `level` on, and exceptions in threads too. Does nothing to a program that has set
    up logging.
    """
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(HclogFormatter())
        root.addHandler(handler)
        root.setLevel(level)
    threading.excepthook = _thread_failed


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is SystemExit or failed.exc_value is None:
        return
    exception = (failed.exc_type, failed.exc_value, failed.exc_traceback)
    thread = failed.thread.name if failed.thread else ""
    logging.getLogger("kandev_plugin").error(
        "a thread ended by an exception", exc_info=exception, extra={"in_thread": thread}
    )


def _level(number: int) -> str:
    for least, name in ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info")):
        if number >= least:
            return name
    return "debug" if number >= logging.DEBUG else "trace"


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, default=str)


def _bounded(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return cut(value if isinstance(value, str) else str(value), _MAX_TEXT_BYTES)


def _end(text: str) -> str:
    encoded = text.encode(errors="replace")
    return encoded[-_MAX_TEXT_BYTES:].decode(errors="ignore")
