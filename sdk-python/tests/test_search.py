"""Finding the host."""

from __future__ import annotations

import time
from itertools import islice
from unittest.mock import Mock

import pytest

from kandev_plugin import Code, Error
from kandev_plugin.goplugin import DialError
from kandev_plugin.search import Search, pauses


def test_the_pause_between_attempts_doubles_up_to_two_seconds() -> None:
    assert list(islice(pauses(), 7)) == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_attempts_are_repeated_until_one_succeeds() -> None:
    dial = Mock(side_effect=[DialError("no"), DialError("no"), channel := Mock()])
    search = Search(dial, 20)
    search.begin()
    assert search.channel(10) is channel
    assert dial.call_count == 3


def test_a_call_waits_for_its_limit_while_the_host_is_looked_for() -> None:
    with pytest.raises(Error) as refused:
        Search(Mock(), 20).channel(0.01)
    assert (refused.value.code, refused.value.from_host) == (Code.UNAVAILABLE, True)
    assert str(refused.value) == "the host has not announced its service yet; try again"


def test_a_host_that_was_given_up_fails_every_call_at_once() -> None:
    search = Search(Mock(side_effect=DialError("no")), 0.05)
    search.begin()
    with pytest.raises(Error, match="did not announce"):
        search.channel(10)
    began = time.monotonic()
    with pytest.raises(Error, match="did not announce"):
        search.channel(10)
    assert time.monotonic() - began < 1
