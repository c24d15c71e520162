#!/bin/sh
# One throw-away PostgreSQL server in one folder: its data, socket and log. For tests only: it does not survive a power
# failure, and whoever may open the socket is its superuser. The folder's mode keeps others out.
#
#   scripts/postgres.sh create           makes a server in a new folder, starts it and prints the folder
#   scripts/postgres.sh address FOLDER   prints its address, without a database name
#   scripts/postgres.sh start FOLDER     starts it again
#   scripts/postgres.sh stop FOLDER      stops it: connections are cut, what was committed stays
#   scripts/postgres.sh remove FOLDER    stops it and deletes the folder
#
# PostgreSQL refuses to run as root; as root it runs as the user postgres or nobody. Exits 3 when there is no server to
# be had (scripts/ensure-postgres.sh).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
seconds=60 # for a start or stop on a busy machine

# Runs a command as the server's user.
as_server() {
    if [ "$(id -u)" != 0 ]; then
        "$@"
        return
    fi
    user=postgres
    id "$user" >/dev/null 2>&1 || user=nobody
    setpriv --reuid "$user" --regid "$(id -gn "$user")" --clear-groups -- "$@"
}

control() { # folder, pg_ctl's arguments…
    folder=$1
    shift
    # Its own words matter only when it fails.
    if ! said=$(cd "$folder" && as_server "$bin/pg_ctl" -D "$folder/data" -t "$seconds" -w "$@" </dev/null 2>&1); then
        echo "postgres.sh: pg_ctl $*: $said" >&2
        tail -n 20 "$folder/log" >&2 || true
        return 1
    fi
}

start() { control "$1" -l "$1/log" start; }
stop() { control "$1" -m fast stop; }

create() {
    # Not below TMPDIR, which may be closed to the server's user or too long for a socket's path.
    folder=$(mktemp -d /tmp/kpg.XXXXXX)
    if [ "$(id -u)" = 0 ]; then
        user=postgres
        id "$user" >/dev/null 2>&1 || user=nobody
        chown "$user" "$folder"
    fi
    if ! said=$(cd "$folder" && as_server "$bin/initdb" -D "$folder/data" -U kandev -A trust -E UTF8 \
        --no-locale --no-sync 2>&1); then
        echo "postgres.sh: initdb: $said" >&2
        rm -rf "$folder"
        exit 1
    fi
    as_server tee -a "$folder/data/postgresql.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$folder'
max_connections = 200
fsync = off
full_page_writes = off
synchronous_commit = off
CONF
    start "$folder" || { rm -rf "$folder"; exit 1; }
    echo "$folder"
}

bin=$("$here/ensure-postgres.sh") || exit $?
command=${1:-}
case "$command $#" in
"create 1") create ;;
"address 2") echo "postgres://kandev@$(echo "$2" | sed 's,/,%2F,g')" ;;
"start 2") start "$2" ;;
"stop 2") stop "$2" ;;
"remove 2")
    [ ! -f "$2/data/postmaster.pid" ] || stop "$2" || true
    rm -rf "$2"
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
