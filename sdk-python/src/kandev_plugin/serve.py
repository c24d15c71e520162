"""Serving a `Plugin`: the constants of every kandev plugin, the search for the host beside it, and the order of start
and stop.
"""

from __future__ import annotations

import logging
import os
import sys
import threading

import grpc

from kandev_plugin import goplugin
from kandev_plugin.errors import Error
from kandev_plugin.host import Host
from kandev_plugin.log import install
from kandev_plugin.plugin import Plugin
from kandev_plugin.search import HOST_BROKER_ID, Search
from kandev_plugin.service import Service, guarded
from kandev_plugin.settings import Settings

# The variable by which the program knows that it was started as a plugin.
COOKIE = ("KANDEV_PLUGIN", "kandev-plugin-v1")

PROTOCOL_VERSION = 1

# A webhook body of 16 MiB, the most a manifest can ask for, and some headroom.
MAX_MESSAGE_BYTES = 17 << 20

log = logging.getLogger("kandev_plugin")


def serve(plugin: Plugin, settings: Settings | None = None) -> int:
    """Serves the plugin until the host stops it. What the program should exit with: 1 when it was not started by a
    host, or cannot serve; the reason is on stderr then.

        if __name__ == "__main__":
            sys.exit(serve(MyPlugin()))

    Handlers that have not returned half a second after the stop are left: the process ends without them.
    """
    settings = settings or Settings()
    install(settings.log_level)
    served = _Served(plugin, settings)
    config = goplugin.ServeConfig(
        cookie=COOKIE,
        protocol_version=PROTOCOL_VERSION,
        max_message_bytes=MAX_MESSAGE_BYTES,
        threads=settings.workers,
    )
    try:
        goplugin.serve(config, served.build, served.goodbye)
    except goplugin.NotStartedByHostError:
        # The person at the terminal has a text already.
        return 1
    except goplugin.ServeError as error:
        log.error("the plugin cannot serve", extra={"cause": str(error)})
        return 1
    if served.busy:
        # Python would wait for their threads, without end.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
    return 0


class _Served:
    """A plugin, and what is made for it once it serves."""

    def __init__(self, plugin: Plugin, settings: Settings) -> None:
        self._plugin = plugin
        self._settings = settings
        self._host: Host | None = None
        self._service: Service | None = None
        self._parting: threading.Thread | None = None

    def build(self, broker: goplugin.Broker, _: goplugin.Health) -> list[grpc.GenericRpcHandler]:
        search = Search(lambda: broker.dial(HOST_BROKER_ID), self._settings.host_search_s)
        search.begin()
        self._host = Host(search, self._settings)
        self._service = Service(self._plugin, self._host, self._settings.workers)
        threading.Thread(target=self._start, args=(self._host,), name="plugin-start", daemon=True).start()
        return [self._service.handler()]

    def goodbye(self) -> None:
        if self._host is None:
            return
        host = self._host
        self._parting = threading.Thread(target=self._stop, args=(host,), name="plugin-stop", daemon=True)
        self._parting.start()
        self._parting.join(self._settings.stop_limit_s)
        if self._parting.is_alive():
            extra = {"limit_s": self._settings.stop_limit_s}
            log.warning("the plugin's stop hook took too long and was left", extra=extra)

    @property
    def busy(self) -> bool:
        """Whether threads of the author's are still at work."""
        return self._service is not None and self._service.running > 0

    def _start(self, host: Host) -> None:
        try:
            host.wait_found()
        except Error as error:
            log.warning("the plugin runs without its host", extra={"cause": str(error)})
            return
        try:
            guarded("on_start", lambda: self._plugin.on_start(host))
        except Error as error:
            log.warning("the plugin's start hook failed", extra={"cause": str(error)})

    def _stop(self, host: Host) -> None:
        try:
            guarded("on_stop", lambda: self._plugin.on_stop(host))
        except Error as error:
            log.warning("the plugin's stop hook failed", extra={"cause": str(error)})
