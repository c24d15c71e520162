"""The plugin that the process tests run: answers webhooks by key."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time

from kandev_plugin import Code, Error, Event, Host, Plugin, Settings, WebhookRequest, WebhookResponse, serve

log = logging.getLogger("guest")


class Guest(Plugin):
    """What each test needs."""

    def on_start(self, host: Host) -> None:
        host.state("guest").set("started", {"config": dict(host.config().values)})

    def on_stop(self, host: Host) -> None:
        host.state("guest").set("stopped", {})

    def on_event(self, host: Host, event: Event) -> None:
        log.info("seen", extra={"kind": event.kind})

    def handle_webhook(self, host: Host, request: WebhookRequest) -> WebhookResponse:
        match request.key:
            case "echo":
                return WebhookResponse(200, {}, request.body)
            case "print":
                print(request.body.decode())
            case "child":
                child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
                # It is nobody's to wait for.
                child.returncode = 0
                return WebhookResponse.text(str(child.pid))
            case "hang":
                time.sleep(60)
            case "state":
                return WebhookResponse.json(host.state("guest").get("k"))
            case "raise":
                raise KeyError("hunter2")
            case "refuse":
                raise Error(Code.NOT_FOUND, "no such thing")
            case "thread":
                threading.Thread(target=lambda: 1 / 0, name="mine").start()
        return WebhookResponse()


if __name__ == "__main__":
    sys.exit(serve(Guest(), Settings(host_wait_s=2)))
