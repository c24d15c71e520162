"""Uses a running host's /mcp as the official client of the Model Context Protocol does: with sessions, and without.

    client.py URL PLUGIN_DATA

The host has the fixture plugin "demo" with the tools of tests/fixtures/calls.yaml, whose data folder is PLUGIN_DATA;
KANDEV_ADMIN_TOKEN is its token. Ends with an error at the first promise that is not kept.
"""

import json
import os
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged
from mcp_types import ToolListChangedNotification

PATIENCE = 30  # seconds
SESSIONS, NO_SESSIONS = "2025-11-25", "2026-07-28"
NAMES = ["absent", "crash", "echo", "fail", "measure", "respond", "sleep"]


def promise(kept, text, *seen):
    if not kept:
        sys.exit(f"mcp: not kept: {text}: {seen}")


class Host:
    """The host by REST, and what its plugin recorded."""

    def __init__(self, url, token, data):
        self.url, self.data = url, data
        self.headers = {"Authorization": f"Bearer {token}"}

    def http(self, headers=None):
        timeout = httpx2.Timeout(PATIENCE, read=300)
        return httpx2.AsyncClient(headers=self.headers if headers is None else headers, timeout=timeout, trust_env=False)

    async def send(self, method, path, body=None):
        async with self.http() as http:
            answer = await http.request(method, self.url + path, json=body)
        promise(answer.status_code < 300, f"{method} {path}", answer.status_code, answer.text)
        return answer

    async def turn(self, command):
        await self.send("POST", f"/api/plugins/demo/{command}")

    def recorded(self, name):
        file = self.data / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    async def eventually(self, text, look):
        end = time.monotonic() + PATIENCE
        while not await look():
            promise(time.monotonic() < end, text)
            await anyio.sleep(0.05)

    @asynccontextmanager
    async def client(self, mode, query="", handler=None, headers=None):
        async with self.http(headers) as http:
            transport = streamable_http_client(f"{self.url}/mcp{query}", http_client=http)
            async with Client(transport, mode=mode, message_handler=handler) as client:
                yield client


async def listed(client):
    """Every tool, page by page."""
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def lists(client):
    tools = {tool.name: tool for tool in await listed(client)}
    promise(list(tools) == [f"demo__{name}" for name in NAMES], "the names of the tools", list(tools))
    echo, measure = tools["demo__echo"], tools["demo__measure"]
    promise(echo.title == "Fixture: echo" and echo.description == "Answers the call as JSON", "a title", echo)
    promise(echo.input_schema["required"] == ["text"] and echo.output_schema is None, "the schema of arguments", echo)
    promise(measure.output_schema["required"] == ["celsius"], "the schema of results", measure)
    hints = echo.annotations
    promise((hints.read_only_hint, hints.destructive_hint) == (True, False), "the annotations", hints)


async def calls(client):
    said = await client.call_tool("demo__echo", {"text": "hällo", "n": 3})
    promise(not said.is_error and said.content[0].text == "hällo", "the text of a result", said)
    promise(said.structured_content == {"arguments": {"text": "hällo", "n": 3}}, "the structured content", said)
    # This client holds it against the tool's schema itself.
    said = await client.call_tool("demo__measure", {"text": "12 °C", "structured": {"celsius": 12}})
    promise(said.structured_content == {"celsius": 12}, "structured content of a declared shape", said)
    wrong = await client.call_tool("demo__echo", {"text": 1})
    text = wrong.content[0].text
    promise(wrong.is_error and "do not fit" in text and "/text" in text, "wrong arguments are told to the model", wrong)
    failed = await client.call_tool("demo__fail", {})
    promise(failed.is_error and "failed to call the tool" in failed.content[0].text, "a failure is told", failed)
    try:
        sys.exit(f"mcp: an unknown tool was called: {await client.call_tool('demo__nope', {})}")
    except MCPError as error:
        promise(error.code == -32602 and "demo__nope" in error.message, "an unknown tool is an error", error)


async def gives_up(host, client):
    ends = len(host.recorded("ends.jsonl"))
    begun = len(host.recorded("calls.jsonl"))

    async def has_begun():
        return len(host.recorded("calls.jsonl")) > begun

    async def has_ended():
        return len(host.recorded("ends.jsonl")) > ends

    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "demo__sleep", {"ms": 60_000})
        await host.eventually("a call reaches the plugin", has_begun)
        group.cancel_scope.cancel()
    await host.eventually("a call that was given up ends in the plugin", has_ended)
    promise(host.recorded("ends.jsonl")[-1]["cancelled"] is True, "it is cancelled", host.recorded("ends.jsonl"))


async def follows_by_session(host):
    changes = []

    async def handler(message):
        if isinstance(message, ToolListChangedNotification):
            changes.append(message)

    async with host.client("legacy", handler=handler) as client:
        promise(client.protocol_version == SESSIONS, "the protocol with sessions", client.protocol_version)
        promise(client.server_info.name == "kandev-host", "the server's name", client.server_info)
        await lists(client)
        await calls(client)
        await gives_up(host, client)
        for command, count in [("disable", 0), ("enable", len(NAMES))]:
            seen = len(changes)
            await host.turn(command)

            async def told(seen=seen):
                return len(changes) > seen

            await host.eventually(f"a session is told of {command}", told)
            promise(len(await listed(client)) == count, f"the list after {command}", count)


async def follows_without_session(host, mode):
    async with host.client(mode) as client:
        promise(client.protocol_version == NO_SESSIONS, "the protocol without sessions", client.protocol_version)
        await lists(client)
        await calls(client)
        await gives_up(host, client)
        async with client.listen(tools_list_changed=True) as changes:
            for command, count in [("disable", 0), ("enable", len(NAMES))]:
                await host.turn(command)
                with anyio.fail_after(PATIENCE):
                    change = await anext(changes)
                    promise(isinstance(change, ToolsListChanged), f"a subscription is told of {command}", change)
                    # Several changes may be told one by one.
                    while len(await listed(client)) != count:
                        await anext(changes)


async def works_at_a_task(host, mode):
    workspace = (await host.send("POST", "/api/v1/workspaces", {"name": f"mcp {mode}"})).json()["id"]
    body = {"workspace_id": workspace, "title": "work"}
    task = (await host.send("POST", "/api/v1/tasks", body)).json()["id"]
    async with host.client(mode, f"?task_id={task}") as client:
        names = [tool.name for tool in await listed(client)]
        promise("demo__fail" not in names and "demo__echo" in names, "the tools at a task", names)
        await client.call_tool("demo__echo", {"text": "x"})
        place = host.recorded("calls.jsonl")[-1]["context"]
        wanted = {"task_id": task, "session_id": "", "workspace_id": workspace, "surface": "kanban-task"}
        promise(place == wanted, "the plugin learns of the verified place", place)


async def needs_the_token(host, mode):
    try:
        async with host.client(mode, headers={}) as client:
            await client.list_tools()
    except BaseExceptionGroup as group:
        promise(group.split(MCPError)[1] is None, "a client without the token is refused", group)
    except MCPError:
        pass
    else:
        sys.exit("mcp: a client without the token was served")


async def leaves_nothing(host):
    """The client ends its sessions, and subscriptions end with their connections."""

    async def nothing():
        return "\nkandev_mcp_sessions 0" in (await host.send("GET", "/metrics")).text

    await host.eventually("no session is left", nothing)


async def main(host):
    for mode in ["legacy", "auto", NO_SESSIONS]:
        if mode == "legacy":
            await follows_by_session(host)
        else:
            await follows_without_session(host, mode)
        await works_at_a_task(host, mode)
        await needs_the_token(host, mode)
        print(f"mcp: {mode}: ok")
    await leaves_nothing(host)


if __name__ == "__main__":
    url, data = sys.argv[1:]
    anyio.run(main, Host(url, os.environ["KANDEV_ADMIN_TOKEN"], Path(data)))
