"""A real kandev-host with a home of its own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any


class KandevHost:
    """Runs until `end`."""

    def __init__(self, program: str, folder: Path) -> None:
        self.home = folder / "home"
        self._program = program
        self._token = secrets.token_hex(16)
        self._variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KANDEV_HOME": str(self.home),
            "KANDEV_LISTEN": "127.0.0.1:0",
            "KANDEV_ADMIN_TOKEN": self._token,
            "KANDEV_LOG": "warn",
        }
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen([program, "serve"], env=self._variables, stdout=self._log, stderr=self._log)
        announced = self.home / "run" / "host.json"
        until(lambda: announced.exists() or self._process.poll() is not None)
        assert self._process.poll() is None, (folder / "log").read_text()
        self._url = json.loads(announced.read_text())["url"]
        until(lambda: self.run("health").returncode == 0)

    def run(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """One command of the command line."""
        command = [self._program, *arguments]
        return subprocess.run(command, env=self._variables, input=text, capture_output=True, text=True, check=False)

    def done(self, *arguments: str, text: str = "") -> str:
        """The same, which must succeed; its output."""
        ended = self.run(*arguments, text=text)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def log(self) -> str:
        """What the host has logged so far."""
        return Path(self._log.name).read_text()

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
        """A request with the token, else as the operator: status and JSON of the answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)
        request.add_header("Authorization", f"Bearer {token or self._token}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def plugin(self, id: str) -> dict[str, Any]:
        """A plugin's record."""
        status, record = self.ask("GET", f"/api/plugins/{id}")
        assert status == 200, record
        made: dict[str, Any] = record
        return made

    def end(self) -> None:
        """Stops it; it must end well."""
        self._process.terminate()
        assert self._process.wait(30) == 0
        self._log.close()


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "gave up waiting"
        time.sleep(0.05)
