"""Lists that come in pages."""

from __future__ import annotations

import pytest

from kandev_plugin import Code, Error, Items
from kandev_plugin.items import PAGE_ITEMS
from kandev_plugin.proto import plugin_pb2 as pb


def numbers(total: int, page_size: int) -> Items[int]:
    """A list of numbers as a host serves it: the cursor is the offset."""

    def fetch(page: pb.Page) -> tuple[list[int], pb.PageInfo]:
        assert page.limit == PAGE_ITEMS
        begin = int(page.cursor or "0")
        end = min(begin + page_size, total)
        more = end < total
        return list(range(begin, end)), pb.PageInfo(next_cursor=str(end) if more else "", has_more=more)

    return Items(fetch)


@pytest.mark.parametrize("total", [0, 1, 59, 60, 61, 500])
@pytest.mark.parametrize("page_size", [1, 7, 60])
def test_every_item_comes_once_and_in_order(total: int, page_size: int) -> None:
    assert numbers(total, page_size).all() == list(range(total))


def test_nothing_is_fetched_before_it_is_asked_for() -> None:
    fetched = []

    def fetch(page: pb.Page) -> tuple[list[int], pb.PageInfo]:
        fetched.append(page.cursor)
        return [1, 2], pb.PageInfo(next_cursor=f"{len(fetched)}", has_more=True)

    items = Items(fetch)
    assert fetched == []
    assert [next(items), next(items)] == [1, 2]
    assert fetched == [""]
    next(items)
    assert fetched == ["", "1"]


def test_an_empty_page_that_is_not_the_last_is_passed_over() -> None:
    pages = iter([([], pb.PageInfo(next_cursor="1", has_more=True)), ([7], pb.PageInfo())])
    assert Items[int](lambda _: next(pages)).all() == [7]


def test_a_cursor_that_does_not_move_is_an_error_and_then_the_end() -> None:
    items = Items(lambda _: ([1], pb.PageInfo(next_cursor="7", has_more=True)))
    assert next(items) == 1
    with pytest.raises(Error, match="does not go on") as failed:
        next(items)
    assert (failed.value.code, failed.value.from_host) == (Code.INTERNAL, True)
    assert items.all() == []


def test_an_error_ends_the_list() -> None:
    def fetch(_: pb.Page) -> tuple[list[int], pb.PageInfo]:
        raise Error(Code.UNAVAILABLE, "down")

    items = Items(fetch)
    with pytest.raises(Error, match="down"):
        next(items)
    assert items.all() == []
