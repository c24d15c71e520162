"""References to entities of another system (`reference_sources` of the manifest): finding them, and whether one may be
used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.values import Object, to_object, to_struct


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSearch:
    """A search in one source."""

    source: str = ""
    """The source in the manifest."""
    workspace_id: str = ""
    """The workspace that is searched from."""
    query: str = ""
    """What the user typed."""
    limit: int = 0
    """The most candidates to answer."""

    @staticmethod
    def from_wire(wire: pb.SearchEntityReferencesRequest) -> ReferenceSearch:
        """What the host sent."""
        return ReferenceSearch(
            source=wire.source, workspace_id=wire.workspace_id, query=wire.query, limit=max(wire.limit, 0)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCandidate:
    """An entity found."""

    provider_local_id: str
    """Its id in the other system."""
    title: str
    """What the user reads."""
    url: str
    """Where it is seen."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Anything else."""

    def to_wire(self) -> pb.EntityReferenceCandidate:
        """What the host is sent."""
        return pb.EntityReferenceCandidate(
            provider_local_id=self.provider_local_id,
            title=self.title,
            url=self.url,
            attributes=to_struct("a candidate's attributes", self.attributes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceUse:
    """The question whether a reference may be used."""

    source: str = ""
    """The source in the manifest."""
    workspace_id: str = ""
    """The workspace it is used from."""
    purpose: str = ""
    """`search` or `submission`."""
    reference: Object = field(default_factory=dict)
    """Keys version, ref, provider, kind, id, key, title, url, scope."""

    @staticmethod
    def from_wire(wire: pb.AuthorizeEntityReferenceRequest) -> ReferenceUse:
        """What the host sent."""
        return ReferenceUse(
            source=wire.source,
            workspace_id=wire.workspace_id,
            purpose=wire.purpose,
            reference=to_object(wire.reference),
        )


@dataclass(frozen=True, slots=True)
class Authorization:
    """Whether a reference may be used. An error, or none within 1.5 s, counts as denied."""

    allowed: bool
    reason: str = ""

    @staticmethod
    def allow() -> Authorization:
        """It may."""
        return Authorization(True)

    @staticmethod
    def deny(reason: str) -> Authorization:
        """It may not, with the reason."""
        return Authorization(False, reason)

    def to_wire(self) -> pb.AuthorizeEntityReferenceResponse:
        """What the host is sent."""
        return pb.AuthorizeEntityReferenceResponse(allowed=self.allowed, reason=self.reason)
