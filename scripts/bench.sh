#!/bin/sh
# Builds everything as released and measures the host against bare baselines; see docs/performance.md.
#
#   scripts/bench.sh [options of the bench…]        for example: scripts/bench.sh --rows delivery,install --json
#
# Exits 3 when a bound does not hold. Raw rounds go to target/bench. The first build takes about half an hour.
set -eu

cd "$(dirname "$0")/.."
scripts/ensure-tools.sh
# For the row `bundle`, which says so and fails when there is none.
case "$*" in
*--rows*bundle*) nginx=wanted ;;
*--rows*) nginx= ;;
*) nginx=wanted ;;
esac
if [ -n "$nginx" ]; then
    KANDEV_NGINX=$(scripts/ensure-nginx.sh) || KANDEV_NGINX=
    export KANDEV_NGINX
fi
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p kandev-host -p kandev-benches --bins
mkdir -p "$target/bench"
# Plugins are packed again and again: without symbols they are small.
strip -o "$target/bench/bench-guest" "$target/release/bench-guest"
exec "$target/release/bench" --output "$target/bench" "$@"
