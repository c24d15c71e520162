#!/bin/sh
# Sees to cargo-deny, which `make lint` uses; builds it when it is missing (about five minutes on two cores).
set -eu

VERSION=0.20.2

if cargo deny --version >/dev/null 2>&1; then exit 0; fi
echo "ensure-cargo-deny: building cargo-deny $VERSION, once" >&2
cargo install --quiet --locked --version "$VERSION" cargo-deny
