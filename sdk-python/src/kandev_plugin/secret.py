"""A text that is not printed by accident."""

from __future__ import annotations

import hmac


class Secret:
    """A secret: printing and formatting show stars, `reveal` the text.

    >>> secret = Secret("s3cr3t")
    >>> f"{secret} {secret!r}", secret.reveal()
    ('******** Secret(********)', 's3cr3t')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def equals(self, text: str) -> bool:
        """Whether it is this text, in a time that does not depend on where they differ."""
        return hmac.compare_digest(self._text.encode(), text.encode(errors="replace"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.equals(other._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return "********"

    def __repr__(self) -> str:
        return "Secret(********)"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")
