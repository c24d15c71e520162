"""Python plugins below this project's own host: the fixture of tests/fixtures/python, and the example as its author
packs it. `KANDEV_HOST` names the host's program; without it these tests are skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.kandev_host import KandevHost, until

from kandev_plugin.pack import archive, main, this_platform

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
PROGRAM = os.environ.get("KANDEV_HOST", "")

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs a kandev-host, named in KANDEV_HOST")


@pytest.fixture(scope="module")
def kandev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KandevHost]:
    host = KandevHost(str(Path(PROGRAM).resolve()), tmp_path_factory.mktemp("kandev"))
    yield host
    host.end()


class Fixture:
    """The fixture plugin, installed."""

    def __init__(self, kandev: KandevHost, folder: Path, id: str, declares: str, switches: dict[str, Any]) -> None:
        self.kandev = kandev
        self.id = id
        self.data = kandev.home / "plugins" / id / "data"
        package = folder / "dist"
        (package / "server").mkdir(parents=True)
        executable = f"server/plugin-{this_platform()}"
        manifest = (FIXTURES / "manifest.template.yaml").read_text()
        for name, value in (("id", id), ("version", "1.0.0"), ("executable", executable)):
            manifest = manifest.replace("{{" + name + "}}", value)
        (package / "manifest.yaml").write_text(manifest + ((FIXTURES / declares).read_text() if declares else ""))
        (package / "fixture.json").write_text(json.dumps(switches))
        (package / executable).write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -B "{FIXTURES / "python" / "main.py"}"\n'
        )
        archive(package, folder / "package.tar.gz")
        kandev.done("plugin", "install", str(folder / "package.tar.gz"))

    def webhook(self, key: str, body: Any = None) -> tuple[int, Any]:
        return self.kandev.ask("POST", f"/api/plugins/{self.id}/webhooks/{key}", b"" if body is None else body)

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.data / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def publish(self, subject: str, payload: dict[str, Any]) -> None:
        status, answer = self.kandev.ask("POST", "/api/v1/events", {"subject": subject, "payload": payload})
        assert status < 300, answer


@pytest.fixture
def install(kandev: KandevHost, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:40].strip("-")
    yield lambda declares="", **switches: Fixture(kandev, tmp_path, name, declares, switches)
    kandev.done("plugin", "remove", name)


def test_events_arrive_in_order(install: Any) -> None:
    plugin = install()
    for n in range(5):
        plugin.publish("test.one", {"n": n})
    until(lambda: len(plugin.lines("events.jsonl")) == 5)
    events = plugin.lines("events.jsonl")
    assert [(event["event_type"], event["payload"]) for event in events] == [("test.one", {"n": n}) for n in range(5)]


def test_a_failed_event_comes_again_with_its_id(install: Any) -> None:
    plugin = install(fail_event={"test.one": 1})
    plugin.publish("test.one", {})
    until(lambda: len(plugin.lines("events.jsonl")) == 2)
    first, second = plugin.lines("events.jsonl")
    assert first["event_id"] == second["event_id"]


def test_a_webhook_of_sixteen_mebibytes_reaches_the_plugin(install: Any) -> None:
    body = os.urandom(16 << 20)
    expected = {"body_len": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    assert install().webhook("big", body) == (200, expected)


def test_calls_of_the_host_answer_as_the_manifest_allows(install: Any) -> None:
    calls = [
        {"rpc": "SetState", "request": {"scope": "s", "key": "k", "value": {"n": 1}}},
        {"rpc": "GetState", "request": {"scope": "s", "key": "k"}},
        {"rpc": "ListTasks", "request": {}},
    ]
    status, answer = install().webhook("host", {"calls": calls})
    assert status == 200
    put, get, tasks = answer["results"]
    assert (put["ok"], get["response"]) == (True, {"found": True, "value": {"n": 1}})
    assert (tasks["code"], tasks["message"]) == ("PermissionDenied", "capability 'api_read:tasks' not declared")


def test_a_killed_plugin_is_started_again_and_finds_its_host(install: Any) -> None:
    plugin = install()

    def found() -> int:
        return len([dial for dial in plugin.lines("dials.jsonl") if dial["ok"]])

    # It dials by itself, maybe after it was found healthy.
    until(lambda: found() == 1)
    os.kill(plugin.lines("starts.jsonl")[0]["start"], signal.SIGKILL)
    until(lambda: found() == 2)
    until(lambda: plugin.kandev.plugin(plugin.id)["status"] == "active")
    assert plugin.webhook("echo", {"a": 1})[0] == 200


def test_a_disabled_plugin_ends_by_itself(install: Any) -> None:
    plugin = install()
    plugin.kandev.done("plugin", "disable", plugin.id)
    (stop,) = plugin.lines("stops.jsonl")
    assert stop["reason"] == "shutdown"
    assert not Path(f"/proc/{stop['stop']}").exists()


def test_prints_and_log_lines_reach_the_hosts_log(install: Any) -> None:
    plugin = install()
    assert plugin.webhook("print?text=a+printed+line")[0] == 200
    until(lambda: "a printed line" in plugin.kandev.done("plugin", "logs", plugin.id))


@pytest.fixture
def workspace(kandev: KandevHost) -> Iterator[str]:
    one = made(kandev.ask("POST", "/api/v1/workspaces", {"name": "one"}))["id"]
    yield one
    made(kandev.ask("DELETE", f"/api/v1/workspaces/{one}", {"confirm_name": "one"}))


def made(answer: tuple[int, Any]) -> Any:
    """What was answered to a request that is not refused."""
    status, body = answer
    assert status < 300, body
    return body


def test_actions_of_people_are_answered_with_the_hosts_context(install: Any, workspace: str) -> None:
    plugin = install("calls.yaml")
    act = partial(plugin.kandev.ask, "POST", f"/api/plugins/{plugin.id}/actions/echo")
    told = made(act({"workspaceId": workspace, "body": {"a": [1]}}))
    assert (told["context"]["workspace_id"], told["body"]) == (workspace, '{"a": [1]}')
    assert act({"workspaceId": "absent"})[0] == 404
    failing = f"/api/plugins/{plugin.id}/actions/fail"
    status, text = plugin.kandev.ask("POST", failing, {"workspaceId": workspace, "body": {"message": "hunter2"}})
    assert status == 503
    assert "hunter2" not in text


def test_tools_of_agents_are_listed_checked_and_called(install: Any) -> None:
    plugin = install("calls.yaml")
    tools = made(plugin.kandev.ask("GET", "/api/v1/tools"))["tools"]
    assert {"echo", "measure", "sleep"} <= {tool["name"] for tool in tools if tool["plugin"] == plugin.id}
    call = partial(plugin.kandev.ask, "POST")
    path = f"/api/v1/tools/{plugin.id}"
    told = made(call(f"{path}/echo", {"arguments": {"text": "hi", "n": 3}}))
    assert (told["text"], told["structured_content"]) == ("hi", {"arguments": {"text": "hi", "n": 3}})
    assert call(f"{path}/echo", {"arguments": {"n": 30}})[0] == 400
    assert call(f"{path}/measure", {"arguments": {"structured": {"celsius": "warm"}}})[0] == 502


def test_references_are_found_and_asked_for(install: Any, workspace: str) -> None:
    candidate = {"id": "1", "title": "One", "url": "https://forge.example.test/1"}
    plugin = install("providers.yaml", references={"candidates": [candidate], "denied": ["2"], "reason": "not yours"})
    search = {"workspace_id": workspace, "source": "issues", "query": "fix"}
    (found,) = made(plugin.kandev.ask("POST", "/api/v1/references/search", search))["references"]
    assert (found["ref"], found["title"]) == ("forge/issue/1", "One")
    other = {**found, "id": "2", "key": "2", "ref": "forge/issue/2"}
    asked = {"workspace_id": workspace, "references": [found, other]}
    verdicts = made(plugin.kandev.ask("POST", "/api/v1/references/authorize", asked))["results"]
    assert [(verdict["ref"], verdict["allowed"]) for verdict in verdicts] == [
        ("forge/issue/1", True),
        ("forge/issue/2", False),
    ]


def test_git_gets_the_credential_of_its_repository(install: Any, workspace: str) -> None:
    switches = {"username": "x", "secret": "s3cr3t-of-git", "expires_at": "2099-01-01T00:00:00Z", "bindings": ["a"]}
    plugin = install("providers.yaml", git=switches)
    kandev = plugin.kandev
    app = {
        "name": "app",
        "source_type": "provider",
        "provider": "forge",
        "provider_repo_id": "7",
        "provider_host": "forge.example.test",
        "provider_scope": "s",
        "provider_owner": "team",
        "provider_name": "app",
        "remote_url": "https://forge.example.test/team/app.git",
        "default_branch": "main",
    }
    repository = made(kandev.ask("POST", f"/api/v1/workspaces/{workspace}/repositories", app))["id"]
    work = {"workspace_id": workspace, "title": "work", "repositories": [{"repository_id": repository}]}
    task = made(kandev.ask("POST", "/api/v1/tasks", work))["id"]
    ensured = kandev.ask("POST", f"/api/v1/tasks/{task}/sessions/ensure", {"repository_id": repository})
    session = made(ensured)["session_id"]
    token = made(kandev.ask("POST", f"/api/v1/task-sessions/{session}/git-credentials", {}))["token"]
    remote = {"protocol": "https", "host": "forge.example.test", "path": "team/app.git"}
    told = made(kandev.ask("POST", "/api/v1/git-credential", remote, token=token))
    assert (told["username"], told["password"]) == ("x", "s3cr3t-of-git")
    kinds = [call["kind"] for call in plugin.lines("calls.jsonl")]
    assert kinds == ["binding", "credential", "binding"]
    assert "s3cr3t-of-git" not in kandev.log()


def test_the_example_is_packed_installed_and_makes_tasks_of_alerts(
    kandev: KandevHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # In a copy, so that the working tree stays as it is. Its requirements name the SDK by a path.
    project = tmp_path / "alert-tasks"
    shutil.copytree(ROOT / "sdk-python" / "examples" / "alert-tasks", project, ignore=shutil.ignore_patterns("dist"))
    (project / "requirements.txt").write_text(f"{ROOT / 'sdk-python'}\n")
    assert main([str(project)]) == 0
    package = capsys.readouterr().out.splitlines()[-1]
    kandev.done("plugin", "inspect", package)
    kandev.done("plugin", "install", package)
    kandev.done("plugin", "config", "set", "alert-tasks", "--secret-from-stdin", "token", text="s3cr3t")
    status, workspace = kandev.ask("POST", "/api/v1/workspaces", {"name": "Alerts"})
    assert status == 200, workspace

    alert = {"fingerprint": "f1", "labels": {"alertname": "DiskFull"}, "startsAt": "2026-11-30T10:00:00Z"}
    webhook = "/api/plugins/alert-tasks/webhooks/alertmanager?token=s3cr3t"
    done = [kandev.ask("POST", webhook, {"alerts": [{**alert, "status": told}]}) for told in ("firing", "resolved")]
    assert done == [(200, {"created": 1, "completed": 0}), (200, {"created": 0, "completed": 1})]
    status, tasks = kandev.ask("GET", f"/api/v1/workspaces/{workspace['id']}/tasks")
    assert status == 200, tasks
    assert [(task["title"], task["state"]) for task in tasks["tasks"]] == [("DiskFull", "COMPLETED")]
    kandev.done("plugin", "remove", "alert-tasks")
