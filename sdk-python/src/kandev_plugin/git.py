"""Credentials for a git repository of a provider that the plugin owns (`repository_providers` of the manifest)."""

from __future__ import annotations

from dataclasses import dataclass

from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class GitRequest:
    """Which repository, and who asks. Host and path count exactly, upper and lower case apart."""

    provider_id: str = ""
    """The provider in the manifest."""
    workspace_id: str = ""
    task_id: str = ""
    session_id: str = ""
    repository_id: str = ""
    host: str = ""
    """The git server."""
    path: str = ""
    """The repository's path on it."""

    @staticmethod
    def from_wire(wire: pb.ResolveGitCredentialRequest | pb.GitCredentialBindingRequest) -> GitRequest:
        """What the host sent."""
        return GitRequest(
            provider_id=wire.provider_id,
            workspace_id=wire.workspace_id,
            task_id=wire.task_id,
            session_id=wire.session_id,
            repository_id=wire.repository_id,
            host=wire.host,
            path=wire.path,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCredential:
    """User name and secret for git over HTTPS. The host neither stores nor logs them."""

    username: str
    secret: Secret
    expires_at: str | None = None
    """RFC 3339; `None` when it does not expire."""

    def to_wire(self) -> pb.ResolveGitCredentialResponse:
        """What the host is sent."""
        return pb.ResolveGitCredentialResponse(
            username=self.username, secret=self.secret.reveal(), expires_at=self.expires_at or ""
        )
