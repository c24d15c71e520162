"""Settings, secrets, and the parts of requests and answers."""

from __future__ import annotations

import pickle

import pytest

from kandev_plugin import ActionResponse, Code, Config, Error, Secret, WebhookRequest, WebhookResponse

CONFIG = Config({"token": "hunter2", "n": 3, "on": True, "none": None, "empty": "", "ratio": 2})


def test_settings_are_read_as_types() -> None:
    assert CONFIG.get("n", int) == 3
    assert CONFIG.get("on", bool) is True
    assert CONFIG.get("ratio", float) == 2.0
    assert CONFIG.get("none", int) is None
    assert CONFIG.get("other", int) is None
    assert CONFIG.secret("token").reveal() == "hunter2"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda: CONFIG.require("other", int), 'the setting "other" is missing; set it'),
        (lambda: CONFIG.secret("empty"), 'the setting "empty" is empty; set it'),
        (lambda: CONFIG.get("on", int), 'the setting "on" does not fit int; change it'),
        (lambda: CONFIG.get("token", int), 'the setting "token" does not fit int; change it'),
    ],
)
def test_a_setting_that_does_not_fit_is_told_without_its_value(read: object, text: str) -> None:
    with pytest.raises(Error) as refused:
        read()  # type: ignore[operator]
    assert (refused.value.code, str(refused.value)) == (Code.FAILED_PRECONDITION, text)


def test_no_value_is_printed() -> None:
    assert repr(CONFIG) == "Config(['token', 'n', 'on', 'none', 'empty', 'ratio'])"
    secret = Secret("hunter2")
    assert f"{secret} {secret!r} {[secret]}" == "******** Secret(********) [Secret(********)]"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_secrets_are_compared_by_their_text() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("ä").equals("ä")
    assert not Secret("a").equals("\udcff")


def test_headers_and_query_values_are_found() -> None:
    request = WebhookRequest(query="a=1&b=x%20y&a=2&c=", headers={"X-Hub-Signature": "sha256=00"})
    assert request.header("x-hub-signature") == "sha256=00"
    assert request.header("x-other") is None
    assert [request.query_value(name) for name in "abcd"] == ["1", "x y", "", None]


def test_a_content_type_of_the_authors_stays() -> None:
    answer = WebhookResponse.text("x", headers={"content-type": "text/html"})
    assert answer == WebhookResponse(200, {"content-type": "text/html"}, b"x")
    assert WebhookResponse.json([1]) == WebhookResponse(200, {"Content-Type": "application/json"}, b"[1]")


def test_an_error_of_the_plugin_shows_its_text_and_one_of_the_host_does_not() -> None:
    own = WebhookResponse.of_error(Error(Code.NOT_FOUND, "no such board"))
    assert (own.status, own.body) == (404, b"no such board")
    host = Error(Code.NOT_FOUND, 'task "t" not found', from_host=True)
    assert WebhookResponse.of_error(host) == WebhookResponse(500)


def test_an_own_error_of_an_action_is_an_http_answer_and_the_hosts_stays_an_error() -> None:
    answer = ActionResponse.of_error(Error(Code.INVALID_ARGUMENT, "title is required"))
    assert answer == ActionResponse({"error": "title is required"}, 400)
    for error in (Error(Code.INTERNAL, "x"), Error(Code.PERMISSION_DENIED, "x", from_host=True)):
        with pytest.raises(Error) as stays:
            ActionResponse.of_error(error)
        assert stays.value is error
