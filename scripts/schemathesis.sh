#!/bin/sh
# Tries the document of the API, /api/openapi.json, out on a running host: schemathesis makes requests of every kind that
# the document allows and many that it does not, and every answer must be one that the document tells of, none of them 5xx.
#
#   scripts/schemathesis.sh sqlite|postgres [options of `st run`…]     for example: scripts/schemathesis.sh sqlite -n 100
#
# The host has a home of its own, which is filled with a little of everything first (tests/schemathesis/seed.py), so that
# requests find something; hooks.py there puts the ids into them. The same seed makes the same requests each time.
# What must hold: no 5xx, and no status, header, media type or shape that the document does not tell of. With STRICT=1 the
# answers are also judged by whether the document's own rules allow the request: that finds rules that the document does not
# tell, and each new draw of requests meets some that no schema can tell.
# KANDEV_HOST names the host's binary; without it the one that the tests use is built. Exits 3 when schemathesis or
# PostgreSQL is not to be had.
set -eu

cd "$(dirname "$0")/.."
database=${1:-}
case $database in
sqlite) ;;
postgres) [ -n "${KANDEV_TEST_POSTGRES:-}" ] || exec scripts/with-postgres.sh "$0" "$@" ;;
*)
    echo "usage: schemathesis.sh sqlite|postgres [options of st run…]" >&2
    exit 2
    ;;
esac
shift

st=$(scripts/ensure-schemathesis.sh)
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
[ "$database" = sqlite ] || export DATABASE_URL="$KANDEV_TEST_POSTGRES/postgres"
KANDEV_HOME=$home/host KANDEV_LISTEN=127.0.0.1:0 KANDEV_LOG=warn "$KANDEV_HOST" serve >"$home/log" 2>&1 &
host=$!

address() { sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$home/host/run/host.json" 2>/dev/null; }
ready() { "$KANDEV_HOST" health --url "$(address)" >/dev/null 2>&1; }
tries=0
until [ -n "$(address)" ] && ready; do
    kill -0 "$host" 2>/dev/null || { cat "$home/log" >&2; echo "schemathesis: the host ended at its start" >&2; exit 1; }
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "schemathesis: the host is not ready after a minute" >&2; exit 1; }
    sleep 0.2
done

# Three plugins: one to be asked, one to be removed, and one that does not start, for the inbox.
package() { # id, executable
    sed "s,{{id}},$1,; s,{{version}},1.0.0,; s,{{executable}},server/plugin-$platform," \
        tests/fixtures/manifest.template.yaml >"$home/manifest.yaml"
    scripts/pack.sh "$home/manifest.yaml" "$2" "$home/$1.tar.gz"
}
case "$(uname -m)" in aarch64) platform=linux-arm64 ;; *) platform=linux-amd64 ;; esac
package kept target/fixtures/rust-fixture
package removed target/fixtures/rust-fixture
package broken /bin/false

export KANDEV_SEEDS="$home/seeds.json"
"$(dirname "$st")/python" tests/schemathesis/seed.py "$(address)" \
    "$home/kept.tar.gz" "$home/removed.tar.gz" "$home/broken.tar.gz" >"$KANDEV_SEEDS"

[ "${STRICT:-}" = 1 ] || set -- --exclude-checks positive_data_acceptance,negative_data_rejection "$@"
status=0
(cd tests/schemathesis && "$st" run "$(address)/api/openapi.json" "$@") || status=$?

# Whatever the answers were: the host is alive, nothing panicked, and it ends when it is asked to.
"$KANDEV_HOST" health --url "$(address)" >/dev/null || { echo "schemathesis: the host is not well" >&2; status=1; }
if grep -i 'panicked' "$home/log" >&2; then status=1; fi
kill -TERM "$host"
wait "$host" || { echo "schemathesis: the host did not end well: exit $?" >&2; status=1; }
host=
[ "$status" = 0 ] || tail -n 40 "$home/log" >&2
exit "$status"
