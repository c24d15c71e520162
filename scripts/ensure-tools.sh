#!/bin/sh
# Sees to the programs that building and testing need: cargo, a C compiler (aws-lc and SQLite are C) and those named as
# arguments. On Debian as root missing ones are installed; elsewhere the script says what is missing and exits 3.
#
#   scripts/ensure-tools.sh [program…]
set -eu

say() { echo "ensure-tools: $*" >&2; }

if ! command -v cargo >/dev/null; then
    say "MISSING: cargo; install Rust 1.94 or newer from https://rustup.rs"
    exit 3
fi

packages=
missing=
need() { # program, Debian package
    command -v "$1" >/dev/null && return
    missing="$missing $1"
    packages="$packages $2"
}

need cc gcc
# The compiler alone is not enough: the headers are a package of their own.
if command -v cc >/dev/null && ! echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1; then
    missing="$missing libc-headers"
    packages="$packages libc6-dev"
fi
for program in "$@"; do
    need "$program" "$program"
done

[ -n "$missing" ] || exit 0
if [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ]; then
    say "installing$packages"
    export DEBIAN_FRONTEND=noninteractive
    # gcc only recommends the headers.
    # shellcheck disable=SC2086 # a list of packages
    { apt-get update && apt-get install -y --no-install-recommends $packages libc6-dev; } >&2
else
    say "MISSING:$missing (Debian packages:$packages); install them, or run this as root on Debian"
    exit 3
fi
