"""Codes on the wire and in HTTP, and the bound on texts."""

from __future__ import annotations

import pytest

from kandev_plugin import Code, Error
from kandev_plugin.errors import MAX_MESSAGE_BYTES, cut


@pytest.mark.parametrize("code", Code)
def test_every_code_survives_the_wire(code: Code) -> None:
    assert Code.from_grpc(code.to_grpc()) is code


def test_only_failures_that_concern_the_caller_have_an_http_status() -> None:
    expected = [400, 401, 403, 404, 409, 409, 429, 504, 503, None, None, None]
    assert [code.http_status for code in Code] == expected


def test_a_failure_of_the_host_has_no_http_status() -> None:
    assert Error(Code.NOT_FOUND, "x").http_status == 404
    assert Error(Code.NOT_FOUND, "x", from_host=True).http_status is None


@pytest.mark.parametrize("text", ["", "short", "ä" * 3000, "x" * 2048, "x" * 2049, "\udcff" * 10, "𝄞" * 600])
def test_any_text_is_cut_to_the_bound_between_two_characters(text: str) -> None:
    sent = cut(text)
    assert len(sent.encode()) <= MAX_MESSAGE_BYTES
    clean = text.encode(errors="replace").decode()
    assert clean == sent or (sent.endswith("…") and clean.startswith(sent[:-1]))
