"""A webhook's request and answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from kandev_plugin.errors import Error
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.values import parse_body, to_body


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """An HTTP request that the host relays. The host neither checks the method against the manifest nor any
    signature."""

    key: str = ""
    """The webhook's key in the manifest."""
    method: str = ""
    """`GET` or `POST`."""
    path: str = ""
    """What follows the key in the address, with its leading slash; empty when nothing follows."""
    query: str = ""
    """Raw, without `?`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names as the host wrote them; `header` finds one whatever its case. Several values of one name are joined by
    `, `."""
    body: bytes = b""
    """The bytes as they came: a signature over the body can be verified."""

    def header(self, name: str) -> str | None:
        """The header's value; the name in any case."""
        name = name.lower()
        return next((value for found, value in self.headers.items() if found.lower() == name), None)

    def query_value(self, name: str) -> str | None:
        """The first value of a query parameter, decoded."""
        pairs = parse_qsl(self.query, keep_blank_values=True)
        return next((value for found, value in pairs if found == name), None)

    def json(self) -> Any:
        """The body as JSON; `INVALID_ARGUMENT` when it is none."""
        return parse_body("the webhook's body", self.body)

    @staticmethod
    def from_wire(wire: pb.WebhookRequest) -> WebhookRequest:
        """What the host sent."""
        return WebhookRequest(
            key=wire.webhook_key,
            method=wire.method,
            path=wire.path,
            query=wire.query,
            headers=dict(wire.headers),
            body=wire.body,
        )


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The answer to a webhook. The host refuses (502) a status that no HTTP answer can have.

    >>> WebhookResponse.json({"ok": True}, headers={"Cache-Control": "no-store"}).body
    b'{"ok":true}'
    >>> WebhookResponse(404).body
    b''
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @staticmethod
    def text(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> WebhookResponse:
        """Plain text."""
        return WebhookResponse(status, _typed("text/plain; charset=utf-8", headers), text.encode())

    @staticmethod
    def json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> WebhookResponse:
        """JSON."""
        return WebhookResponse(status, _typed("application/json", headers), to_body(value))

    @staticmethod
    def of_error(error: Error) -> WebhookResponse:
        """The error's text as plain text, with the HTTP status of its code: 400 for an invalid argument, 404 for what
        is not there, 500 for what is not the caller's business (without the text).
        """
        status = error.http_status
        return WebhookResponse(500) if status is None else WebhookResponse.text(str(error), status)

    def to_wire(self) -> pb.WebhookResponse:
        """What the host is sent."""
        return pb.WebhookResponse(status=self.status, headers=self.headers, body=self.body)


def _typed(content_type: str, headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers with a content type, unless they have one."""
    headers = headers or {}
    typed = any(name.lower() == "content-type" for name in headers)
    return dict(headers) if typed else {"Content-Type": content_type, **headers}
