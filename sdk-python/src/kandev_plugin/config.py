"""The operator's settings of the plugin, as `config_schema` of the manifest shapes them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from kandev_plugin.errors import Code, Error
from kandev_plugin.secret import Secret

T = TypeVar("T")


class Config:
    """The settings. Secrets are in clear in them, so printing shows the names only."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    @property
    def values(self) -> Mapping[str, Any]:
        """All of them, as JSON. When secrets are among them, do not log it."""
        return MappingProxyType(self._values)

    def get(self, name: str, kind: type[T]) -> T | None:
        """A setting of this type (`str`, `int`, `float`, `bool`, `list`, `dict`); `None` when it is absent or null, and
        `FAILED_PRECONDITION` when it is of another.
        """
        value = self._values.get(name)
        if value is None:
            return None
        if kind is float and type(value) is int:
            value = float(value)
        # A boolean is an int to Python, not to whoever set it.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            # The value may be a secret: an error must not quote it.
            raise Error(Code.FAILED_PRECONDITION, f'the setting "{name}" does not fit {kind.__name__}; change it')
        return value

    def require(self, name: str, kind: type[T]) -> T:
        """A setting that must be there."""
        value = self.get(name, kind)
        if value is None:
            raise Error(Code.FAILED_PRECONDITION, f'the setting "{name}" is missing; set it')
        return value

    def secret(self, name: str) -> Secret:
        """A secret that must be there and not be empty."""
        value = self.require(name, str)
        if not value:
            raise Error(Code.FAILED_PRECONDITION, f'the setting "{name}" is empty; set it')
        return Secret(value)

    def __repr__(self) -> str:
        return f"Config({list(self._values)})"
