"""What is printed faster than it is sent. The stream itself is in test_process.py."""

from __future__ import annotations

from kandev_plugin.goplugin.stdio import Printed


def taken(printed: Printed) -> list[bytes | None]:
    chunks = []
    while not printed._chunks.empty():
        chunks.append(printed._chunks.get_nowait())
    return chunks


def test_what_is_dropped_is_told_in_a_line_of_its_own_once_there_is_room() -> None:
    printed = Printed(max_chunks=2, patience_s=0.01)
    for chunk in (b"a", b"b", b"dropped", b"too"):
        printed.put(chunk)
    assert taken(printed) == [b"a", b"b"]
    printed.put(b"later")
    notice = b"\n10 bytes of output were left out: the plugin prints faster than the host is sent\n"
    assert taken(printed) == [notice, b"later"]


def test_what_is_dropped_is_told_at_the_end_too() -> None:
    printed = Printed(max_chunks=2, patience_s=0.01)
    for chunk in (b"a", b"b", b"dropped"):
        printed.put(chunk)
    assert taken(printed) == [b"a", b"b"]
    printed.end()
    notice = b"\n7 bytes of output were left out: the plugin prints faster than the host is sent\n"
    assert taken(printed) == [notice, None]
    assert printed.wait_end(0)
