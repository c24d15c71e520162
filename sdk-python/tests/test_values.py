"""JSON objects to and from the wire's."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest

from kandev_plugin import Code, Error
from kandev_plugin.values import parse_body, to_object, to_struct


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": None, "b": True, "c": False, "d": 0, "e": -1.5, "f": "", "g": "ü"},
        {"nested": {"list": [1, [], {}, [None, {"x": [2]}]]}},
        {"largest exact": 2**53, "smallest exact": -(2**53)},
    ],
)
def test_an_object_comes_back_as_it_was(value: dict[str, Any]) -> None:
    struct = to_struct("the payload", value)
    assert struct is not None
    assert to_object(struct) == value


def test_whole_numbers_come_back_as_integers_and_true_stays_true() -> None:
    struct = to_struct("x", {"n": 3.0, "t": True, "big": 1e300})
    assert struct is not None
    back = to_object(struct)
    assert [type(back[name]) for name in ("n", "t", "big")] == [int, bool, float]


def test_nothing_is_no_object() -> None:
    assert to_struct("x", None) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1], "the payload must be a JSON object, not list"),
        ({"a": math.nan}, "the payload holds a number that JSON cannot: nan"),
        ({"a": math.inf}, "the payload holds a number that JSON cannot: inf"),
        ({"a": datetime(2026, 1, 1)}, "the payload cannot be written as JSON: it holds a datetime"),
        ({"a": [{1: 2}]}, "the payload has a name that is no text: 1"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_reason(value: Any, text: str) -> None:
    with pytest.raises(Error) as refused:
        to_struct("the payload", value)
    assert (refused.value.code, str(refused.value)) == (Code.INVALID_ARGUMENT, text)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_is_an_invalid_argument(body: bytes) -> None:
    with pytest.raises(Error) as refused:
        parse_body("the body", body)
    assert refused.value.code is Code.INVALID_ARGUMENT
