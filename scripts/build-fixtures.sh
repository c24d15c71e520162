#!/bin/sh
# Builds the two fixture plugins and prints a line for each: target/fixtures/go-fixture and target/fixtures/rust-fixture.
#
# Without Go or its modules the Go one is left out with a line `skipped: needs go`; with CI=true that is an error.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
out=$root/target/fixtures
mkdir -p "$out"

skip() {
    echo "skipped: needs go ($1); tests on the Go fixture are left out"
    rm -f "$out/go-fixture"
    if [ "${CI:-}" = true ]; then
        echo "build-fixtures: CI=true, so a missing Go fixture is an error" >&2
        exit 1
    fi
}

build_go() {
    if ! go=$("$root/scripts/ensure-go.sh"); then
        skip "no usable Go: see above"
        return
    fi
    cd "$root/tests/fixtures/go"
    export CGO_ENABLED=0 GOTOOLCHAIN=local
    if ! "$go" mod download; then
        skip "the Go modules cannot be had: see above"
        return
    fi
    "$go" build -trimpath -buildvcs=false -ldflags="-s -w" -o "$out/go-fixture" . || exit 1
    echo "built: target/fixtures/go-fixture"
}

build_rust() {
    cd "$root"
    cargo build --quiet -p fixture-guest
    # Tests pack it again and again: without debug information it is half as large.
    strip -o "$out/rust-fixture" "${CARGO_TARGET_DIR:-target}/debug/fixture-guest"
    echo "built: target/fixtures/rust-fixture"
}

build_go
build_rust
