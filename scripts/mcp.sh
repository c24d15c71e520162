#!/bin/sh
# The official client of the Model Context Protocol (tests/mcp/client.py) against a running host with the Go fixture plugin
# and its tools; without Go with the Rust one.
#
#   scripts/mcp.sh
#
# KANDEV_HOST names the host's binary; without it the one that the tests use is built. Exits 3 when the client is not to be
# had.
set -eu

cd "$(dirname "$0")/.."
python=$(scripts/ensure-mcp.sh)
target=${CARGO_TARGET_DIR:-target}
if [ -z "${KANDEV_HOST:-}" ]; then
    locked=
    [ "${CI:-}" != true ] || locked=--locked
    # As the tests have it, so that nothing is built twice.
    # shellcheck disable=SC2086 # empty stands for nothing
    cargo test --quiet $locked --workspace --features kandev-host/failpoints --test e2e --no-run
    scripts/build-fixtures.sh >/dev/null
    KANDEV_HOST=$target/debug/kandev-host
fi
fixture=target/fixtures/go-fixture
if [ ! -x "$fixture" ]; then
    echo "skipped: needs go (see scripts/ensure-go.sh); the MCP client is tried on the Rust fixture alone"
    [ "${CI:-}" != true ] || { echo "mcp: CI=true, so a missing Go fixture is an error" >&2; exit 1; }
    fixture=target/fixtures/rust-fixture
fi

home=$(mktemp -d)
host=
clean_up() {
    [ -z "$host" ] || kill -KILL "$host" 2>/dev/null || true
    rm -rf "$home"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

KANDEV_ADMIN_TOKEN=$(od -An -v -tx1 -N16 /dev/urandom | tr -d ' \n')
export KANDEV_ADMIN_TOKEN
KANDEV_HOME=$home/host KANDEV_LISTEN=127.0.0.1:0 KANDEV_LOG=warn "$KANDEV_HOST" serve >"$home/log" 2>&1 &
host=$!

address() { sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$home/host/run/host.json" 2>/dev/null; }
ready() { "$KANDEV_HOST" health --url "$(address)" >/dev/null 2>&1; }
tries=0
until [ -n "$(address)" ] && ready; do
    kill -0 "$host" 2>/dev/null || { cat "$home/log" >&2; echo "mcp: the host ended at its start" >&2; exit 1; }
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "mcp: the host is not ready after a minute" >&2; exit 1; }
    sleep 0.2
done

case "$(uname -m)" in aarch64) platform=linux-arm64 ;; *) platform=linux-amd64 ;; esac
sed "s,{{id}},demo,; s,{{version}},1.0.0,; s,{{executable}},server/plugin-$platform," \
    tests/fixtures/manifest.template.yaml >"$home/manifest.yaml"
cat tests/fixtures/calls.yaml >>"$home/manifest.yaml"
scripts/pack.sh "$home/manifest.yaml" "$fixture" "$home/demo.tar.gz"
KANDEV_HOME=$home/host "$KANDEV_HOST" plugin install "$home/demo.tar.gz" >/dev/null

status=0
"$python" -B tests/mcp/client.py "$(address)" "$home/host/plugins/demo/data" || status=$?

# Whatever the client saw: nothing panicked, and the host ends when it is asked to.
if grep -i 'panicked' "$home/log" >&2; then status=1; fi
kill -TERM "$host"
wait "$host" || { echo "mcp: the host did not end well: exit $?" >&2; status=1; }
host=
[ "$status" = 0 ] || tail -n 40 "$home/log" >&2
exit "$status"
