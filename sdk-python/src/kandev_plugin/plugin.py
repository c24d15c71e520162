"""The class that an author writes: one method for every call of the host, each with the contract's default answer. How
it is reached is `service.py`, how it starts and stops `serve.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kandev_plugin.action import ActionRequest, ActionResponse
from kandev_plugin.errors import not_implemented
from kandev_plugin.event import Event
from kandev_plugin.git import GitCredential, GitRequest
from kandev_plugin.reference import Authorization, ReferenceCandidate, ReferenceSearch, ReferenceUse
from kandev_plugin.tool import ToolRequest, ToolResponse
from kandev_plugin.webhook import WebhookRequest, WebhookResponse

if TYPE_CHECKING:
    from kandev_plugin.host import Host


class Plugin:
    """A plugin. Write the methods you need; the others answer what the contract says.

    Calls come side by side, each in a thread, except events: those come one at a time, in order. A call of `host`
    waits a while when the host has not announced itself yet. Raise `Error` to fail with a code and a text; any other
    exception is a bug to the caller (`INTERNAL`, with a fixed text) and is logged with its traceback. `current_call()`
    tells whether anybody still waits for the answer.
    """

    def on_start(self, host: Host) -> None:
        """Runs once, beside the calls, as soon as the host can be called. An exception is logged."""

    def on_stop(self, host: Host) -> None:
        """Runs once when the host stops the plugin, beside the calls still in flight; the host can still be called. It
        is given `Settings.stop_limit_s`. A plugin that is killed does not see it.
        """

    def on_event(self, host: Host, event: Event) -> None:
        """`DeliverEvent`: an event that the manifest subscribes to. To return acknowledges it; after an exception it
        comes again with the same id, four times in all. By default every event is acknowledged.
        """

    def handle_webhook(self, host: Host, request: WebhookRequest) -> WebhookResponse:
        """`HandleWebhook`: an HTTP request to a webhook of the manifest. An exception makes the host answer 502. By
        default 404 with an empty body.
        """
        return WebhookResponse(404)

    def handle_action(self, host: Host, request: ActionRequest) -> ActionResponse:
        """`HandleAction`: a user's action. An `Error` of the plugin's own becomes an HTTP answer with the status of its
        code and `{"error": text}`; a bug, or a failed call of the host, becomes 503.
        """
        raise not_implemented("action handler")

    def search_references(self, host: Host, search: ReferenceSearch) -> Sequence[ReferenceCandidate]:
        """`SearchEntityReferences`: candidates for what a user types."""
        raise not_implemented("entity reference searcher")

    def authorize_reference(self, host: Host, request: ReferenceUse) -> Authorization:
        """`AuthorizeEntityReference`: whether a reference may be used. The host waits 1.5 s; an exception counts as
        denied.
        """
        raise not_implemented("entity reference authorizer")

    def resolve_git_credential(self, host: Host, request: GitRequest) -> GitCredential:
        """`ResolveGitCredential`: user name and secret for a repository."""
        raise not_implemented("git credential resolver")

    def git_credential_binding(self, host: Host, request: GitRequest) -> str | None:
        """`GetGitCredentialBinding`: the revision of what `resolve_git_credential` would answer; a new one makes the
        host ask again, `None` says that access was revoked.
        """
        raise not_implemented("git credential binder")

    def invoke_tool(self, host: Host, request: ToolRequest) -> ToolResponse:
        """`InvokeAgentTool`: an agent calls a tool of the manifest. The host waits 30 s and does not repeat it. What
        the agent should read is `ToolResponse(text, is_error=True)`, not an exception.
        """
        raise not_implemented("agent tool invocation")
