"""Alerts in, tasks out: one task for each firing of an alert, completed when the alert is resolved."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Any

from kandev_plugin import (
    Code,
    Error,
    Host,
    NewTask,
    Plugin,
    State,
    TaskUpdate,
    ToolRequest,
    ToolResponse,
    WebhookRequest,
    WebhookResponse,
)

# The longest title of a task, in characters.
MAX_TITLE = 60

log = logging.getLogger("alert-tasks")


@dataclass(frozen=True)
class Alert:
    """What is read of one alert of a notification."""

    fingerprint: str
    firing: bool
    name: str
    summary: str
    since: str
    link: str

    @staticmethod
    def parse(value: Any) -> Alert:
        """An entry of `alerts`, from outside and so untrusted."""
        if not isinstance(value, dict):
            raise Error(Code.INVALID_ARGUMENT, "an alert is not an object")
        labels, notes = _object(value, "labels"), _object(value, "annotations")
        fingerprint, status = _text(value, "fingerprint"), _text(value, "status")
        if not fingerprint or status not in ("firing", "resolved"):
            raise Error(Code.INVALID_ARGUMENT, "an alert has no fingerprint, or a status that is none")
        return Alert(
            fingerprint=fingerprint,
            firing=status == "firing",
            name=_text(labels, "alertname") or "alert",
            summary=_text(notes, "summary") or _text(notes, "description"),
            since=_text(value, "startsAt"),
            link=_text(value, "generatorURL"),
        )

    def task(self, workspace_id: str | None) -> NewTask:
        """The task that it becomes."""
        title = self.name if not self.summary else f"{self.name}: {self.summary}"
        title = title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1] + "…"
        description = "\n".join(filter(None, [self.summary, self.since and f"Firing since {self.since}", self.link]))
        return NewTask(title=title, description=description, workspace_id=workspace_id, metadata={"alert": self.name})

    def key(self) -> str:
        """The same for each notification of one firing: Alertmanager repeats them."""
        return hashlib.sha256(f"{self.fingerprint} {self.since}".encode()).hexdigest()


class AlertTasks(Plugin):
    """The plugin."""

    def handle_webhook(self, host: Host, request: WebhookRequest) -> WebhookResponse:
        """A notification. What cannot be taken is answered with its reason, so that Alertmanager's log tells it."""
        try:
            return WebhookResponse.json(self._take(host, request))
        except Error as error:
            if error.from_host:
                # Alertmanager sends it again.
                log.warning("the host did not take an alert", extra={"cause": str(error)})
            return WebhookResponse.of_error(error)

    def invoke_tool(self, host: Host, request: ToolRequest) -> ToolResponse:
        """`open_alerts`."""
        if request.name != "open_alerts":
            return super().invoke_tool(host, request)
        entries = [entry.value for entry in _open(host).list() if entry.value]
        lines = [f"{entry['name']} since {entry['since']}: task {entry['task_id']}" for entry in entries]
        return ToolResponse("\n".join(lines) or "no alert is firing", structured={"alerts": entries})

    def _take(self, host: Host, request: WebhookRequest) -> dict[str, int]:
        config = host.config()
        if not config.secret("token").equals(request.query_value("token") or ""):
            raise Error(Code.UNAUTHENTICATED, "the address has no ?token=, or a wrong one")
        body = request.json()
        entries = body.get("alerts") if isinstance(body, dict) else None
        if not isinstance(entries, list):
            raise Error(Code.INVALID_ARGUMENT, "the body has no list of alerts; send Alertmanager's notifications")
        alerts = [Alert.parse(entry) for entry in entries]
        workspace_id = config.get("workspace_id", str) or None
        done = {"created": 0, "completed": 0}
        for alert in alerts:
            if alert.firing:
                done["created"] += self._fire(host, alert, workspace_id)
            else:
                done["completed"] += self._resolve(host, alert)
        return done

    def _fire(self, host: Host, alert: Alert, workspace_id: str | None) -> bool:
        """Whether a task was made: not for an alert that has one."""
        if _open(host).get(alert.fingerprint):
            return False
        task = host.create_task_once(alert.key(), alert.task(workspace_id))
        _open(host).set(alert.fingerprint, {"name": alert.name, "task_id": task.id, "since": alert.since})
        log.info("made a task of an alert", extra={"alert": alert.name, "task": task.id})
        return True

    def _resolve(self, host: Host, alert: Alert) -> bool:
        """Whether a task was completed: not for an alert that has none, or whose task is gone."""
        entry = _open(host).get(alert.fingerprint)
        if not entry:
            return False
        try:
            host.update_task(TaskUpdate(id=entry["task_id"], state="COMPLETED"))
            completed = True
        except Error as error:
            if error.code is not Code.NOT_FOUND:
                raise
            completed = False
        _open(host).delete(alert.fingerprint)
        return completed


def _open(host: Host) -> State:
    """The alerts that are firing, by fingerprint."""
    return host.state("open")


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
