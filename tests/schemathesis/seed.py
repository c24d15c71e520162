"""Fills a fresh host by its REST API and prints, as JSON, which ids are there: `keep` for requests that look at things
or change them, `lose` for those that delete them.

    seed.py URL PACKAGE BROKEN_PACKAGE
"""

import json
import os
import sys
import time

import requests

# A lawful public key of Ed25519; nobody has its private one.
PUBLIC_KEY = "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
SPARE = 6  # things of a kind that may be deleted


class Host:
    def __init__(self, url, token):
        self.url, self.http = url, requests.Session()
        self.http.headers["Authorization"] = f"Bearer {token}"

    def send(self, method, path, body=None, **rest):
        answer = self.http.request(method, self.url + path, json=body, timeout=30, **rest)
        if not answer.ok:
            sys.exit(f"seed: {method} {path}: {answer.status_code} {answer.text}")
        return answer.json()

    def post(self, path, **body):
        return self.send("POST", path, body)

    def install(self, package):
        with open(package, "rb") as file:
            return self.send("POST", "/api/plugins/install", files={"package": file})["plugin"]["id"]


def task_with_session(host, workspace, title, **more):
    task = host.post("/api/v1/tasks", workspace_id=workspace, title=title, **more)["id"]
    return task, host.post(f"/api/v1/tasks/{task}/sessions/ensure")["session_id"]


def first_item(host):
    """Of the inbox; it comes a moment after the plugin failed."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if items := host.send("GET", "/api/v1/inbox")["items"]:
            return items[0]["id"]
        time.sleep(0.1)
    sys.exit("seed: the inbox has no item of the plugin that does not start")


def fill(host, packages):
    keep, lose = {}, {}

    def both(kind, kept, lost):
        keep[kind], lose[kind] = kept, lost

    host.send("PUT", "/api/v1/agents/seeded", {"name": "Seeded"})
    keep["agent"] = ["seeded"]
    profiles = [host.post("/api/v1/agents/seeded/profiles", name=f"p{n}")["id"] for n in range(1 + SPARE)]
    both("agent_profile", profiles[:1], profiles[1:])

    executors = [host.post("/api/v1/executors", name=f"e{n}", type="local")["id"] for n in range(1 + SPARE)]
    both("executor", executors[:1], executors[1:])
    of = f"/api/v1/executors/{executors[0]}/profiles"
    profiles = [host.post(of, name=f"p{n}")["id"] for n in range(1 + SPARE)]
    both("executor_profile", profiles[:1], profiles[1:])

    spaces = [host.post("/api/v1/workspaces", name="lose" if n else "keep")["id"] for n in range(1 + SPARE)]
    both("workspace", spaces[:1], spaces[1:])
    workspace = spaces[0]
    board = host.send("GET", f"/api/v1/workspaces/{workspace}/workflows")["workflows"][0]["id"]
    more = [host.post("/api/v1/workflows", workspace_id=workspace, name=f"w{n}")["id"] for n in range(SPARE)]
    both("workflow", [board], more)
    steps = host.send("GET", f"/api/v1/workflows/{board}/workflow/steps")["steps"]
    more = [host.post("/api/v1/workflow/steps", workflow_id=board, name=f"s{n}")["id"] for n in range(SPARE)]
    both("step", [steps[0]["id"]], more)
    repositories = f"/api/v1/workspaces/{workspace}/repositories"
    rows = [host.post(repositories, name=f"r{n}")["id"] for n in range(1 + SPARE)]
    both("repository", rows[:1], rows[1:])

    first = task_with_session(host, workspace, "keep", external_id="seeded")
    rest = [task_with_session(host, workspace, f"lose {n}") for n in range(2 * SPARE)]
    both("task", [first[0]], [task for task, _ in rest[:SPARE]])
    both("session", [first[1]], [session for _, session in rest[SPARE:]])
    keep["external_id"] = ["seeded"]
    session = f"/api/v1/task-sessions/{first[1]}"
    texts = [f"{session}/messages", f"{session}/commits", f"{session}/git-snapshots"]
    keep["message"] = [host.post(texts[0], content=f"message {n}")["id"] for n in range(3)]
    host.post(texts[1], commit_sha="c0ffee", insertions=3)
    host.post(texts[2], files={"a": {"additions": 1, "deletions": 2}})

    plugin, victim, broken = [host.install(package) for package in packages]
    both("plugin", [plugin], [victim])
    both("inbox_item", [first_item(host)], [])
    secrets = [host.post("/api/v1/secrets", name=f"s{n}", value="x")["id"] for n in range(1 + SPARE)]
    both("secret", secrets[:1], secrets[1:])
    keys = [f"key{n}" for n in range(1 + SPARE)]
    for name in keys:
        host.post("/api/v1/trust/keys", name=name, key=PUBLIC_KEY, plugins=[plugin])
    both("trust_key", keys[:1], keys[1:])
    keep["public_key"] = [PUBLIC_KEY]
    keep["template"] = [host.send("GET", "/api/v1/workflow/templates")["templates"][0]["id"]]
    return {"keep": keep, "lose": lose}


if __name__ == "__main__":
    url, *packages = sys.argv[1:]
    json.dump(fill(Host(url, os.environ["KANDEV_ADMIN_TOKEN"]), packages), sys.stdout, indent=1)
