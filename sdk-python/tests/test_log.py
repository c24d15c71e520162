"""Lines of the log."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from kandev_plugin import HclogFormatter


def written(level: int = logging.WARNING, message: str = "low disk", **fields: Any) -> dict[str, Any]:
    record = logging.makeLogRecord({"name": "demo.disk", "levelno": level, "msg": message, "created": 0.0, **fields})
    text = HclogFormatter().format(record)
    assert "\n" not in text
    line: dict[str, Any] = json.loads(text)
    return line


def test_a_line_has_hclogs_keys_and_the_callers_fields() -> None:
    expected = {
        "@level": "warn",
        "@message": "low disk",
        "@module": "demo.disk",
        "@timestamp": "1970-01-01T00:00:00+00:00",
        "free": 3,
        "text": "a\nb",
        "what": "[1]",
    }
    assert written(free=3, text="a\nb", what=[1]) == expected


@pytest.mark.parametrize(
    ("level", "name"), [(50, "error"), (40, "error"), (30, "warn"), (20, "info"), (10, "debug"), (5, "trace")]
)
def test_levels_are_hclogs(level: int, name: str) -> None:
    assert written(level)["@level"] == name


def test_an_exception_is_a_field_of_the_line() -> None:
    try:
        raise ValueError("x" * 20_000)
    except ValueError:
        traceback = written(exc_info=sys.exc_info())["traceback"]
    assert traceback.endswith("xxx")
    assert len(traceback) <= 8192


def test_a_line_that_would_be_too_long_keeps_its_head_only() -> None:
    assert len(written(logging.WARNING, "m", **{f"f{n}": "x" * 8192 for n in range(32)})) == 4


def test_texts_and_the_number_of_fields_are_bounded() -> None:
    line = written(**{f"f{n:02}": n for n in range(40)}, message="m" * 10_000)
    assert (len(line), len(line["@message"].encode())) == (36, 8192)
