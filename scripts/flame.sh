#!/bin/sh
# Records what the host's process does in one row of the bench and draws it: docs/img/<row>.svg. Needs Linux `perf`.
#
#   scripts/flame.sh <row> <title>        for example: scripts/flame.sh delivery "a delivery"
set -eu

[ $# = 2 ] || { echo "usage: flame.sh <row> <title>" >&2; exit 2; }
row=$1 title=$2
cd "$(dirname "$0")/.."
scripts/ensure-tools.sh
command -v perf >/dev/null || { echo "flame: MISSING: perf (Debian package linux-perf)" >&2; exit 3; }
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p kandev-host -p kandev-benches --bins
mkdir -p "$target/bench" docs/img
strip -o "$target/bench/bench-guest" "$target/release/bench-guest"
perf record --quiet -F 499 -e cpu-clock --call-graph dwarf,16384 -o "$target/bench/perf.data" -- \
    "$target/release/bench" --output "$target/bench" --rows "$row" --host-only --rounds 5 --warm-up 0 || true
perf script --no-inline -i "$target/bench/perf.data" -F pid,ip,sym 2>/dev/null |
    "$target/release/bench" flame --pid "$(cat "$target/bench/pid")" --title "$title" >"docs/img/$row.svg"
echo "flame: docs/img/$row.svg"
