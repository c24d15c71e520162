#!/bin/sh
# Everything that can be said about the code without running it. Stops at the first step that fails.
#
# With CI=true the lock file must be current.
set -eu

cd "$(dirname "$0")/.."
locked=
[ "${CI:-}" != true ] || locked=--locked

step() { echo "lint: $*"; }

scripts/ensure-tools.sh

step "format"
cargo fmt --all --check

step "clippy"
cargo clippy $locked --workspace --all-targets --features kandev-host/failpoints -- -D warnings

step "fuzz targets"
# A workspace of their own, here with this one's versions and build folder, and without the fuzzer.
cp Cargo.lock fuzz/Cargo.lock
cargo clippy --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" --no-default-features -- -D warnings

step "documentation"
# Headers point at private modules on purpose: they are for whoever reads the code.
RUSTDOCFLAGS="-D warnings" cargo doc $locked --quiet --workspace --no-deps --document-private-items

step "python: rules, format, types"
if scripts/ensure-python.sh >/dev/null; then
    scripts/lint-python.sh
else
    echo "lint: PYTHON NOT CHECKED: see above"
    [ "${CI:-}" != true ] || { echo "lint: CI=true, so a missing Python is an error" >&2; exit 1; }
fi

scripts/ensure-cargo-deny.sh
step "dependencies: bans, licences, sources"
cargo deny $locked check bans licenses sources

step "dependencies: advisories"
if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny $locked check --disable-fetch advisories
else
    echo "lint: ADVISORIES NOT CHECKED: their database cannot be reached from here"
fi
