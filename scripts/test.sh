#!/bin/sh
# Every test of the workspace, the real-process ones with both fixture plugins, those of the database on SQLite and
# PostgreSQL; then the Python SDK's, the official MCP client on a running host, and schemathesis on one, on both databases;
# fails when a process is left behind.
#
#   scripts/test.sh [arguments of the test programs…]        for example: scripts/test.sh --show-output
#
# On Debian as root it installs what it needs; elsewhere it says what is missing. Without Go the cases on the Go fixture
# are left out, without PostgreSQL those on it, without PyPI the Python SDK's, the MCP client and schemathesis, loudly; with
# CI=true that is an error, and the lock file must be current.
set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
locked=
[ "${CI:-}" != true ] || locked=--locked

scripts/ensure-tools.sh

# Homes and packages of the tests go here, so that a process left behind is known by where it lives. The path is short
# because sockets lie below it.
TMPDIR=$(mktemp -d /tmp/kt.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# Processes whose program or working folder lies in the tests' folder, or whose program was built here.
left_behind() {
    for process in /proc/[0-9]*; do
        exe=$(readlink "$process/exe" 2>/dev/null) || continue
        cwd=$(readlink "$process/cwd" 2>/dev/null) || cwd=
        case "$exe|$cwd" in
        "$TMPDIR"/* | *"|$TMPDIR"* | "$root"/target/debug/* | "$root"/target/fixtures/*)
            echo "${process#/proc/} $exe"
            ;;
        esac
    done
}

before=$(left_behind | cut -d' ' -f1)

scripts/build-fixtures.sh
status=0
if go=$(scripts/ensure-go.sh 2>/dev/null); then
    # goplugin's tests build their Go programs themselves, with the Go they find.
    PATH=$(dirname "$go"):$PATH
    export PATH CGO_ENABLED=0 GOTOOLCHAIN=local
    (cd goplugin/tests/go && go vet ./...) || status=$?
    (cd tests/fixtures/go && go vet ./... && go test ./... && FIXTURE_BINARY=$root/target/fixtures/rust-fixture go test -count=1 .) || status=$?
fi
# One throw-away PostgreSQL server for all of them.
with_postgres=scripts/with-postgres.sh
if ! scripts/ensure-postgres.sh >/dev/null; then
    echo "skipped: needs postgresql (see above); tests on PostgreSQL are left out"
    [ "${CI:-}" != true ] || { echo "test: CI=true, so a missing PostgreSQL is an error" >&2; exit 1; }
    with_postgres=
fi
# shellcheck disable=SC2086 # empty stands for nothing
$with_postgres cargo test $locked --workspace --features kandev-host/failpoints --no-fail-fast -- "$@" || status=$?

# The Python SDK on the host that was built just now.
if ! scripts/ensure-python.sh >/dev/null; then
    echo "skipped: needs python (see above); the Python SDK is not tested"
    [ "${CI:-}" != true ] || { echo "test: CI=true, so a missing Python is an error" >&2; exit 1; }
else
    KANDEV_HOST=${CARGO_TARGET_DIR:-$root/target}/debug/kandev-host scripts/test-python.sh || status=$?
fi

# Agents' tools as the official client of the Model Context Protocol sees them.
if ! scripts/ensure-mcp.sh >/dev/null; then
    echo "skipped: needs the official MCP client (see above); /mcp is not tried out with it"
    [ "${CI:-}" != true ] || { echo "test: CI=true, so a missing MCP client is an error" >&2; exit 1; }
else
    KANDEV_HOST=${CARGO_TARGET_DIR:-$root/target}/debug/kandev-host scripts/mcp.sh || status=$?
fi

# The document of the API against the host that was built just now.
if ! scripts/ensure-schemathesis.sh >/dev/null; then
    echo "skipped: needs schemathesis (see above); the document of the API is not tried out"
    [ "${CI:-}" != true ] || { echo "test: CI=true, so a missing schemathesis is an error" >&2; exit 1; }
else
    scripts/schemathesis.sh sqlite || status=$?
    # Shorter: what hangs on the database is seen with random requests too.
    [ -z "$with_postgres" ] || scripts/schemathesis.sh postgres --phases fuzzing,stateful || status=$?
fi

# A process that is on its way out has a moment.
tries=0
while :; do
    left=$(left_behind)
    for pid in $before; do left=$(echo "$left" | grep -v "^$pid " || true); done
    [ -n "$left" ] && [ "$tries" -lt 10 ] || break
    tries=$((tries + 1))
    sleep 0.5
done
if [ -n "$left" ]; then
    echo "test: PROCESSES LEFT BEHIND (killed now):" >&2
    echo "$left" >&2
    echo "$left" | while read -r pid _; do kill -KILL "$pid" 2>/dev/null || true; done
    exit 1
fi
exit "$status"
