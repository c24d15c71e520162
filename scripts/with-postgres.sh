#!/bin/sh
# Runs a command with a throw-away PostgreSQL server, whose address is in KANDEV_TEST_POSTGRES, and ends the server after it.
#
#   scripts/with-postgres.sh <command…>
#
# A server that the variable names already is used as it is. On Debian as root a missing one is installed; elsewhere the
# command runs without, and its tests on PostgreSQL say that they are left out.
set -eu

say() { echo "with-postgres: $*" >&2; }

[ -z "${KANDEV_TEST_POSTGRES:-}" ] || exec "$@"

programs() { for folder in /usr/lib/postgresql/*/bin; do if [ -x "$folder/initdb" ]; then echo "$folder"; fi; done | tail -n 1; }

bin=$(programs)
if [ -z "$bin" ] && command -v initdb >/dev/null; then bin=$(dirname "$(command -v initdb)"); fi
if [ -z "$bin" ] && [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ]; then
    say "installing postgresql"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install -y --no-install-recommends postgresql; } >&2 || true
    bin=$(programs)
fi
if [ -z "$bin" ]; then
    say "MISSING: PostgreSQL (Debian package: postgresql); tests on it are left out"
    exec "$@"
fi

# The server refuses to run as root. It listens on a socket only, so no port can be taken, and its folder keeps others out.
folder=$(mktemp -d /tmp/kt-pg.XXXXXX)
as=
if [ "$(id -u)" = 0 ]; then
    chown postgres "$folder"
    as="setpriv --reuid=postgres --regid=postgres --init-groups"
fi
fail() { # log file
    cat "$folder/$1" >&2
    rm -rf "$folder"
    exit 1
}
cd "$folder"
# shellcheck disable=SC2086 # a prefix of words
$as "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >"$folder/initdb.log" 2>&1 || fail initdb.log
# shellcheck disable=SC2086
$as "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/log" \
    -o "-c listen_addresses='' -c unix_socket_directories='$folder' -c fsync=off -c max_connections=300" start >/dev/null ||
    fail log
cd "$OLDPWD"

stop() {
    # shellcheck disable=SC2086
    (cd / && $as "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1) || true
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM HUP
KANDEV_TEST_POSTGRES="postgres://postgres@$(echo "$folder" | sed 's|/|%2F|g')"
export KANDEV_TEST_POSTGRES
status=0
"$@" || status=$?
exit "$status"
