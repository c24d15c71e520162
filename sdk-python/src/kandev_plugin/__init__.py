"""Write a kandev plugin in Python: subclass `Plugin`, call the `Host`, and let `serve` do the rest.

    import logging, sys
    from kandev_plugin import Event, Host, Plugin, serve

    log = logging.getLogger("counter")

    class Counter(Plugin):
        def on_event(self, host: Host, event: Event) -> None:
            state = host.state("counts")
            count = (state.get(event.kind) or {"n": 0})["n"] + 1
            state.set(event.kind, {"n": count})
            log.info("counted", extra={"kind": event.kind, "count": count})

    if __name__ == "__main__":
        sys.exit(serve(Counter()))

The program is started by a kandev host, from a package whose `manifest.yaml` names it; started by hand it says so and
ends. `docs/plugin-author.md` goes from an empty folder to an installed plugin.

To answer the host's calls, write methods of `Plugin`; to call the host, use the `Host` given to every method; to fail,
raise `Error` with a `Code`; to log, use `logging`: lines reach the host's log of the plugin with level and fields.

Absent on purpose: the wire's types (`kandev_plugin.proto` has them, for tests that serve a host), and anything but
Linux.
"""

from kandev_plugin.action import ActionContext, ActionRequest, ActionResponse
from kandev_plugin.config import Config
from kandev_plugin.data import (
    AgentProfile,
    ExecutorProfile,
    Message,
    Repository,
    SentMessage,
    Session,
    SessionCodeStats,
    StateEntry,
    Task,
    TaskRepository,
    Workflow,
    WorkflowStep,
    Workspace,
)
from kandev_plugin.errors import Code, Error
from kandev_plugin.event import Event
from kandev_plugin.git import GitCredential, GitRequest
from kandev_plugin.goplugin.call import Call, current_call
from kandev_plugin.host import Host, State, TreeError
from kandev_plugin.items import Items
from kandev_plugin.log import HclogFormatter
from kandev_plugin.plugin import Plugin
from kandev_plugin.reference import Authorization, ReferenceCandidate, ReferenceSearch, ReferenceUse
from kandev_plugin.requests import (
    LaunchOptions,
    MessageFilter,
    NewTask,
    NewTaskRepository,
    RemoteRepository,
    SessionFilter,
    TaskFilter,
    TaskUpdate,
)
from kandev_plugin.secret import Secret
from kandev_plugin.serve import serve
from kandev_plugin.settings import Settings
from kandev_plugin.tool import ToolContext, ToolRequest, ToolResponse
from kandev_plugin.values import Object
from kandev_plugin.webhook import WebhookRequest, WebhookResponse

__all__ = [
    "ActionContext",
    "ActionRequest",
    "ActionResponse",
    "AgentProfile",
    "Authorization",
    "Call",
    "Code",
    "Config",
    "Error",
    "Event",
    "ExecutorProfile",
    "GitCredential",
    "GitRequest",
    "HclogFormatter",
    "Host",
    "Items",
    "LaunchOptions",
    "Message",
    "MessageFilter",
    "NewTask",
    "NewTaskRepository",
    "Object",
    "Plugin",
    "ReferenceCandidate",
    "ReferenceSearch",
    "ReferenceUse",
    "RemoteRepository",
    "Repository",
    "Secret",
    "SentMessage",
    "Session",
    "SessionCodeStats",
    "SessionFilter",
    "Settings",
    "State",
    "StateEntry",
    "Task",
    "TaskFilter",
    "TaskRepository",
    "TaskUpdate",
    "ToolContext",
    "ToolRequest",
    "ToolResponse",
    "TreeError",
    "WebhookRequest",
    "WebhookResponse",
    "Workflow",
    "WorkflowStep",
    "Workspace",
    "current_call",
    "serve",
]
