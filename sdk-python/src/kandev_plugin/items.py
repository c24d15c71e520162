"""Lists that come in pages, walked to their end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from kandev_plugin.errors import Code, Error
from kandev_plugin.proto import plugin_pb2 as pb

# Items a page, the most that a host gives.
PAGE_ITEMS = 200

T = TypeVar("T")


class Items(Iterator[T], Generic[T]):
    """The items of a list, fetched page by page as they are asked for. After an error it is at its end.

    for workspace in host.workspaces():
        print(workspace.name)
    """

    def __init__(self, fetch: Callable[[pb.Page], tuple[Sequence[T], pb.PageInfo]]) -> None:
        self._fetch = fetch
        self._ready: deque[T] = deque()
        # The next page's cursor; none at the end.
        self._cursor: str | None = ""

    def __iter__(self) -> Items[T]:
        return self

    def __next__(self) -> T:
        while not self._ready:
            if self._cursor is None:
                raise StopIteration
            cursor, self._cursor = self._cursor, None
            items, info = self._fetch(pb.Page(limit=PAGE_ITEMS, cursor=cursor))
            # A host that sends the same page again would be walked for ever.
            if info.has_more and info.next_cursor == cursor:
                text = "the host's list does not go on: its next cursor is the one just used"
                raise Error(Code.INTERNAL, text, from_host=True)
            self._ready.extend(items)
            self._cursor = info.next_cursor if info.has_more else None
        return self._ready.popleft()

    def all(self) -> list[T]:
        """All that are left. They are held in memory at once: for a list that may be long, iterating is kinder."""
        return list(self)
