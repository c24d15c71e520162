"""A plugin's process below a host of go-plugin's kind, on gRPC's own TLS (the host's certificate is P-256). The other
kind, P-521, is what the Go suite of tests/fixtures/go has.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf import struct_pb2
from support.fake_host import FakeHost
from support.go_host import GoHost, bare, environment, start

from kandev_plugin.goplugin.identity import Identity
from kandev_plugin.proto import goplugin_pb2
from kandev_plugin.proto import plugin_pb2 as pb

GUEST = Path(__file__).parent / "support" / "guest.py"


@pytest.fixture
def plugin() -> Iterator[GoHost]:
    host = GoHost(GUEST)
    yield host
    host.end()


def webhook(plugin: GoHost, key: str, body: bytes = b"", timeout: float = 10) -> pb.WebhookResponse:
    answer: pb.WebhookResponse = plugin.call("HandleWebhook", pb.WebhookRequest(webhook_key=key, body=body), timeout)
    return answer


def by_hand(variables: dict[str, str], folder: Path | str) -> subprocess.CompletedProcess[bytes]:
    process = start(GUEST, variables, folder)
    stdout, stderr = process.communicate(timeout=20)
    return subprocess.CompletedProcess([], process.returncode, stdout, stderr)


def test_started_by_hand_it_says_so_and_ends(tmp_path: Path) -> None:
    for variables in ({}, {"KANDEV_PLUGIN": "other"}):
        ended = by_hand({"PATH": os.environ["PATH"], **variables}, tmp_path)
        assert (ended.returncode, ended.stdout) == (1, b"")
        assert ended.stderr.decode().splitlines() == [
            "This program is a plugin. It is not meant to be executed directly.",
            "Please execute the program that consumes these plugins, which will",
            "load any plugins automatically",
        ]


@pytest.mark.parametrize(
    ("certificate", "cause"),
    [
        (None, "the host sent no certificate in PLUGIN_CLIENT_CERT; let it turn automatic mutual tls on"),
        (b"nonsense", "the host's certificate in PLUGIN_CLIENT_CERT is not PEM: "),
    ],
)
def test_without_a_certificate_to_trust_it_does_not_serve(
    tmp_path: Path, certificate: bytes | None, cause: str
) -> None:
    ended = by_hand(environment(tmp_path, certificate), tmp_path)
    assert (ended.returncode, ended.stdout) == (1, b"")
    line = json.loads(ended.stderr)
    assert (line["@level"], line["@message"]) == ("error", "the plugin cannot serve")
    assert line["cause"].startswith(cause)


@pytest.mark.parametrize("folder", ["missing", "x" * 120])
def test_a_socket_that_cannot_be_bound_is_told_with_its_path(tmp_path: Path, folder: str) -> None:
    if len(folder) > 100:
        (tmp_path / folder).mkdir()
    ended = by_hand(environment(tmp_path / folder, Identity.generate().certificate_pem) | {"TMPDIR": "/tmp"}, tmp_path)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert f"cannot bind the socket {tmp_path / folder}/plugin" in json.loads(ended.stderr.splitlines()[-1])["cause"]


def test_the_handshake_line_has_six_fields_and_the_certificate_unpadded(plugin: GoHost) -> None:
    core, app, network, path, protocol, certificate = plugin.fields
    assert (core, app, network, protocol) == ("1", "1", "unix", "grpc")
    assert Path(path).parent == plugin.folder
    assert Path(path).name.startswith("plugin")
    assert "=" not in certificate


def test_the_certificate_is_a_one_time_authority_named_localhost(plugin: GoHost) -> None:
    certificate = plugin.plugin_certificate
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    extensions = certificate.extensions
    assert extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    other = GoHost(GUEST)
    other.end()
    assert other.plugin_certificate.public_key() != key


def test_a_folder_with_odd_characters_is_served_in() -> None:
    with tempfile.TemporaryDirectory(prefix="a %20#?ü") as folder:
        host = GoHost(GUEST, Path(folder))
        try:
            assert Path(host.fields[3]).is_socket()
            assert ssl_handshake(host.fields[3], host.identity) == "h2"
        finally:
            host.end()


def ssl_handshake(path: str, identity: Identity) -> str | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    identity.load_into(context)
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(10)
        plain.connect(path)
        with context.wrap_socket(plain) as secured:
            return secured.selected_alpn_protocol()


def test_only_the_hosts_certificate_is_let_in(plugin: GoHost) -> None:
    assert plugin.ping() == 1
    for stranger in (Identity.generate(), None):
        channel = plugin.dial(stranger)
        with pytest.raises(grpc.RpcError) as refused:
            bare(channel.unary_unary("/grpc.health.v1.Health/Check"))(b"", timeout=5)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        channel.close()


def test_pings_are_answered_for_the_plugin_and_the_whole_server_only(plugin: GoHost) -> None:
    assert (plugin.ping("plugin"), plugin.ping("")) == (1, 1)
    with pytest.raises(grpc.RpcError) as refused:
        plugin.ping("other")
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_webhook_of_sixteen_mebibytes_goes_both_ways(plugin: GoHost) -> None:
    body = os.urandom(16 << 20)
    assert webhook(plugin, "echo", body, timeout=60).body == body


def test_a_message_above_seventeen_mebibytes_is_refused(plugin: GoHost) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        webhook(plugin, "echo", bytes(17 << 20), timeout=60)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert plugin.ping() == 1


def test_the_host_is_found_on_broker_id_1_and_told_of_start_and_stop(plugin: GoHost) -> None:
    fake = FakeHost()
    config = pb.GetConfigResponse()
    config.config.update({"n": 1})
    fake.answers["GetConfig"] = config
    plugin.serve_host(fake.handler())
    started = struct_pb2.Struct()
    started.update({"config": {"n": 1}})
    until(lambda: len(fake.asked) == 2)
    assert plugin.shut_down() == 0
    assert fake.asked == [
        ("GetConfig", pb.GetConfigRequest()),
        ("SetState", pb.SetStateRequest(scope="guest", key="started", value=started)),
        ("SetState", pb.SetStateRequest(scope="guest", key="stopped", value=struct_pb2.Struct())),
    ]
    assert plugin.stderr_to_its_end() == ""


def until(condition: object) -> None:
    end = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "gave up waiting"
        time.sleep(0.01)


def test_a_call_waits_for_a_host_that_is_announced_later(plugin: GoHost) -> None:
    waiting = plugin.start_call("HandleWebhook", pb.WebhookRequest(webhook_key="state"))
    time.sleep(0.2)
    plugin.serve_host(FakeHost().handler())
    assert waiting.result().body == b"null"


def test_without_a_host_a_call_of_it_fails_within_its_wait_and_the_plugin_serves_on(plugin: GoHost) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        webhook(plugin, "state")
    told = (refused.value.code(), refused.value.details())
    assert told == (grpc.StatusCode.UNAVAILABLE, "the host has not announced its service yet; try again")
    assert webhook(plugin, "echo", b"x").body == b"x"


def test_what_is_announced_on_another_network_is_not_dialled(plugin: GoHost) -> None:
    plugin.announce(goplugin_pb2.ConnInfo(service_id=1, network="tcp", address="127.0.0.1:1"))
    with pytest.raises(grpc.RpcError) as refused:
        webhook(plugin, "state")
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_prints_go_to_the_stdio_stream_and_nowhere_else(plugin: GoHost) -> None:
    plugin.read_stdio()
    webhook(plugin, "print", b"a line")
    text = b"x" * (1 << 20)
    webhook(plugin, "print", text)
    assert plugin.shut_down() == 0
    assert plugin.printed_to_its_end() == b"a line\n" + text + b"\n"
    plugin.stderr_to_its_end()
    assert plugin.raw_stdout == b""


def test_the_stdio_stream_is_opened_once(plugin: GoHost) -> None:
    plugin.read_stdio()
    webhook(plugin, "print", b"x")
    assert plugin.printed.get(timeout=10) is not None
    stream = bare(plugin.channel.unary_stream("/plugin.GRPCStdio/StreamStdio"))
    with pytest.raises(grpc.RpcError) as refused:
        next(stream(b"", timeout=5))
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_host_that_does_not_read_blocks_no_print(plugin: GoHost) -> None:
    webhook(plugin, "print", b"x" * (3 << 20), timeout=60)
    assert plugin.ping() == 1


def test_log_lines_are_hclog_on_stderr_with_their_fields(plugin: GoHost) -> None:
    plugin.call("DeliverEvent", pb.Event(event_type="demo.hello"))
    with pytest.raises(grpc.RpcError) as failed:
        webhook(plugin, "raise")
    told = (failed.value.code(), failed.value.details())
    assert told == (grpc.StatusCode.INTERNAL, "the plugin's handler raised KeyError; its log says where")
    webhook(plugin, "thread")
    until(lambda: plugin.stderr.count(b"\n") == 3)
    seen, raised, thread = (json.loads(line) for line in plugin.stderr.splitlines())
    assert (seen["@level"], seen["@message"], seen["@module"], seen["kind"]) == ("info", "seen", "guest", "demo.hello")
    assert (raised["@level"], raised["call"]) == ("error", "HandleWebhook")
    assert raised["traceback"].endswith("KeyError: 'hunter2'")
    assert (thread["@level"], thread["in_thread"]) == ("error", "mine")
    assert thread["traceback"].endswith("ZeroDivisionError: division by zero")


def test_an_error_of_a_webhook_keeps_its_code(plugin: GoHost) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        webhook(plugin, "refuse")
    assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.NOT_FOUND, "no such thing")


def test_a_stopped_plugin_is_gone_at_once_and_so_is_its_socket(plugin: GoHost) -> None:
    plugin.serve_host(FakeHost().handler())
    webhook(plugin, "state")
    began = time.monotonic()
    assert plugin.shut_down() == 0
    assert time.monotonic() - began < PATIENCE_S
    assert not Path(plugin.fields[3]).exists()


# A host kills a plugin two seconds after asking it to stop; the machine may be busy, and what would hold the end up
# here lasts thirty.
PATIENCE_S = 10


def test_a_handler_that_hangs_does_not_keep_a_stopped_plugin(plugin: GoHost) -> None:
    plugin.serve_host(FakeHost().handler())
    plugin.start_call("HandleWebhook", pb.WebhookRequest(webhook_key="hang"), 30)
    # Answered after the call that hangs has begun.
    webhook(plugin, "state")
    began = time.monotonic()
    assert plugin.shut_down() == 0
    assert time.monotonic() - began < PATIENCE_S


def test_a_child_that_holds_stdout_open_does_not_keep_a_stopped_plugin(plugin: GoHost) -> None:
    plugin.read_stdio()
    plugin.serve_host(FakeHost().handler())
    child = int(webhook(plugin, "child").body)
    try:
        began = time.monotonic()
        assert plugin.shut_down() == 0
        assert time.monotonic() - began < PATIENCE_S
    finally:
        os.kill(child, signal.SIGKILL)


def test_an_interrupt_does_nothing_and_a_term_ends_it(plugin: GoHost) -> None:
    plugin.ping()
    plugin.process.send_signal(signal.SIGINT)
    assert plugin.ping() == 1
    plugin.process.send_signal(signal.SIGTERM)
    assert plugin.process.wait(10) == -signal.SIGTERM
