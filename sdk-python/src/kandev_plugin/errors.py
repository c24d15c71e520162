"""The one error type of the SDK: what a handler answers, and what a call of the host fails with.

Owns the codes, their gRPC and HTTP numbers, and the bound on texts. When a call is an action, the plugin's own error
becomes an HTTP status (`action.py`).
"""

from __future__ import annotations

from enum import Enum

import grpc

# The longest error text that is sent, in bytes; what is beyond is cut. It travels in a header, which gRPC bounds.
MAX_MESSAGE_BYTES = 2048


class Code(Enum):
    """What kind of failure it is."""

    INVALID_ARGUMENT = "invalid_argument"
    """The caller sent something that can never work."""
    UNAUTHENTICATED = "unauthenticated"
    """The caller did not prove who it is."""
    PERMISSION_DENIED = "permission_denied"
    """It may not do that; from the host: a capability is not declared in the manifest."""
    NOT_FOUND = "not_found"
    """There is no such thing."""
    CONFLICT = "conflict"
    """It exists already, or somebody else changed it meanwhile."""
    FAILED_PRECONDITION = "failed_precondition"
    """The state of things does not allow it."""
    RESOURCE_EXHAUSTED = "resource_exhausted"
    """A limit was met: too large, too many, too often."""
    DEADLINE_EXCEEDED = "deadline_exceeded"
    """It took too long."""
    UNAVAILABLE = "unavailable"
    """Not now; trying again is right."""
    UNIMPLEMENTED = "unimplemented"
    """This side does not do that."""
    INTERNAL = "internal"
    """A bug, such as an unexpected exception in a handler."""
    UNKNOWN = "unknown"
    """Anything else."""

    def to_grpc(self) -> grpc.StatusCode:
        """The code on the wire."""
        return _TO_GRPC[self]

    @staticmethod
    def from_grpc(code: grpc.StatusCode) -> Code:
        """What a code on the wire says."""
        return _FROM_GRPC.get(code, Code.UNKNOWN)

    @property
    def http_status(self) -> int | None:
        """The HTTP status of an action that fails so; `None` for a failure that is not the caller's business, which the
        host answers itself (503).
        """
        return _HTTP.get(self)


_TO_GRPC = {
    Code.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    Code.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    Code.PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    Code.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Code.CONFLICT: grpc.StatusCode.ALREADY_EXISTS,
    Code.FAILED_PRECONDITION: grpc.StatusCode.FAILED_PRECONDITION,
    Code.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.DEADLINE_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
    Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Code.UNIMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
    Code.INTERNAL: grpc.StatusCode.INTERNAL,
    Code.UNKNOWN: grpc.StatusCode.UNKNOWN,
}

_FROM_GRPC = {wire: code for code, wire in _TO_GRPC.items()} | {
    grpc.StatusCode.OUT_OF_RANGE: Code.INVALID_ARGUMENT,
    grpc.StatusCode.ABORTED: Code.CONFLICT,
    grpc.StatusCode.CANCELLED: Code.DEADLINE_EXCEEDED,
    grpc.StatusCode.DATA_LOSS: Code.INTERNAL,
}

_HTTP = {
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.FAILED_PRECONDITION: 409,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.UNAVAILABLE: 503,
    Code.DEADLINE_EXCEEDED: 504,
}


class Error(Exception):
    """A failure: a code and a text for whoever called.

    >>> error = Error(Code.NOT_FOUND, 'no board named "x"; `boards` lists them')
    >>> error.code, str(error)
    (<Code.NOT_FOUND: 'not_found'>, 'no board named "x"; `boards` lists them')
    """

    def __init__(self, code: Code, message: str, *, from_host: bool = False) -> None:
        super().__init__(message)
        self._code = code
        self._from_host = from_host

    @property
    def code(self) -> Code:
        """What kind of failure it is."""
        return self._code

    @property
    def from_host(self) -> bool:
        """Whether a call of the host failed, in contrast to the plugin itself."""
        return self._from_host

    @property
    def http_status(self) -> int | None:
        """The HTTP status that tells it to a caller; `None` when it is not the caller's business."""
        return None if self._from_host else self._code.http_status


def not_implemented(what: str) -> Error:
    """An extension that the author did not write; the text is the contract's."""
    return Error(Code.UNIMPLEMENTED, f"pluginsdk: plugin does not implement {what}")


def from_rpc(error: grpc.RpcError) -> Error:
    """What the host answered."""
    if isinstance(error, grpc.Call):
        return Error(Code.from_grpc(error.code()), error.details() or "", from_host=True)
    return Error(Code.UNKNOWN, str(error), from_host=True)


def cut(text: str, limit: int = MAX_MESSAGE_BYTES) -> str:
    """The text within so many bytes, cut between two characters."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return encoded.decode()
    mark = "…"
    return encoded[: limit - len(mark.encode())].decode(errors="ignore") + mark
