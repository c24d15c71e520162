"""The plugin of docs/plugin-author.md does what is said of it there."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any

import pytest
from support.fake_host import FakeHost

from kandev_plugin import Event, Host, Plugin, WebhookRequest
from kandev_plugin.proto import plugin_pb2 as pb

DOCUMENT = Path(__file__).parents[2] / "docs" / "plugin-author.md"


@pytest.fixture
def plugin() -> Plugin:
    snippets = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert len(snippets) == 1
    module: Any = types.ModuleType("hello")
    exec(compile(snippets[0], str(DOCUMENT), "exec"), module.__dict__)
    made: Plugin = module.Hello()
    return made


def test_the_plugin_of_the_document_keeps_the_last_event_and_shows_it(
    plugin: Plugin, host: Host, fake: FakeHost
) -> None:
    plugin.on_event(host, Event(id="e1", kind="demo.began"))
    (asked,) = fake.asked
    expected = pb.SetStateRequest(scope="hello", key="last")
    expected.value.update({"kind": "demo.began"})
    assert asked == ("SetState", expected)
    fake.answers["GetState"] = pb.GetStateResponse(found=True, value=expected.value)
    answer = plugin.handle_webhook(host, WebhookRequest(key="last", method="GET"))
    assert (answer.status, answer.body) == (200, b'{"kind":"demo.began"}')
