#!/bin/sh
# The tests of the Python SDK: those of the package, on a real host too; and, where there is Go, the suite of
# tests/fixtures/go on the Python fixture, below go-plugin's own host.
#
#   scripts/test-python.sh [arguments of pytest…]
#
# KANDEV_HOST names the host's binary; without it the one that the tests use is built. Exits 3 when Python cannot be had.
set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
python=$(scripts/ensure-python.sh)
if [ -z "${KANDEV_HOST:-}" ]; then
    locked=
    [ "${CI:-}" != true ] || locked=--locked
    # As the tests have it, so that nothing is built twice.
    # shellcheck disable=SC2086 # empty stands for nothing
    cargo test --quiet $locked --workspace --features kandev-host/failpoints --test e2e --no-run
    KANDEV_HOST=${CARGO_TARGET_DIR:-$root/target}/debug/kandev-host
fi
export KANDEV_HOST

status=0
if go=$(scripts/ensure-go.sh 2>/dev/null); then
    # The suite wants one file to execute.
    fixture=$root/target/fixtures/python-fixture
    mkdir -p "${fixture%/*}"
    printf '#!/bin/sh\nexec "%s" -B "%s"\n' "$python" "$root/tests/fixtures/python/main.py" >"$fixture"
    chmod +x "$fixture"
    (cd tests/fixtures/go && CGO_ENABLED=0 GOTOOLCHAIN=local FIXTURE_BINARY=$fixture "$go" test -count=1 .) || status=$?
else
    echo "skipped: needs go (see scripts/ensure-go.sh); the Go suite on the Python fixture is left out"
    [ "${CI:-}" != true ] || { echo "test-python: CI=true, so a missing Go is an error" >&2; exit 1; }
fi
(cd sdk-python && "$python" -B -m pytest "$@") || status=$?
exit "$status"
