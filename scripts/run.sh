#!/bin/sh
# Builds the host, starts it on SQLite below KANDEV_HOME (default ./.home) and, when the example plugin is not there yet,
# packs and installs it by the public REST route. Stays in the foreground until Ctrl-C.
#
# KANDEV_LISTEN, KANDEV_LOG, KANDEV_ADMIN_TOKEN and DATABASE_URL count as for the host itself.
set -eu

cd "$(dirname "$0")/.."
scripts/ensure-tools.sh curl
cargo build --quiet -p kandev-host -p event-logger-plugin
target=${CARGO_TARGET_DIR:-target}

KANDEV_HOME=${KANDEV_HOME:-$(pwd)/.home}
export KANDEV_HOME
mkdir -p "$KANDEV_HOME"
home=$(cd "$KANDEV_HOME" && pwd)

# In a session of its own, so that Ctrl-C reaches the host once: from here.
setsid "$target/debug/kandev-host" serve &
host=$!
stopping=
stop() {
    stopping=yes
    kill -TERM "$host" 2>/dev/null || true
}
trap stop INT TERM HUP
trap 'kill -TERM "$host" 2>/dev/null || true' EXIT

# Prints the host's address once run/host.json is this host's.
address() {
    [ -f "$home/run/host.json" ] || return 1
    grep -Eq "\"pid\": *$host([,} ]|$)" "$home/run/host.json" || return 1
    sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$home/run/host.json"
}

tries=0
until url=$(address) && curl -fsS -o /dev/null "$url/ready" 2>/dev/null; do
    [ -z "$stopping" ] || { wait "$host" || true; exit 0; }
    kill -0 "$host" 2>/dev/null || { echo "run: the host ended at its start, see above" >&2; exit 1; }
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "run: the host is not ready after a minute" >&2; exit 1; }
    sleep 0.2
done

if [ -n "${KANDEV_ADMIN_TOKEN:-}" ]; then
    token=$KANDEV_ADMIN_TOKEN token_hint='$KANDEV_ADMIN_TOKEN'
else
    token_file=${KANDEV_ADMIN_TOKEN_FILE:-$home/admin-token}
    token=$(cat "$token_file") token_hint="\$(cat $token_file)"
fi

# The token goes through standard input: arguments can be seen by every user of the machine.
api() { printf 'header = "Authorization: Bearer %s"\n' "$token" | curl -sS -K - "$@"; }

if [ "$(api -o /dev/null -w '%{http_code}' "$url/api/plugins/event-logger")" = 404 ]; then
    package=$(mktemp)
    scripts/pack.sh examples/event-logger/manifest.yaml "$target/debug/event-logger-plugin" "$package"
    if api -f -o /dev/null -F "package=@$package" "$url/api/plugins/install"; then
        echo "run: installed the example plugin event-logger"
    else
        echo "run: the example plugin could not be installed, the host's log has the reason" >&2
    fi
    rm -f "$package"
fi

cat <<TEXT

  kandev-host is ready at $url (home $home). In another terminal:

    export URL=$url TOKEN="$token_hint"
    curl -s -H "Authorization: Bearer \$TOKEN" \$URL/api/plugins
    curl -s -H "Authorization: Bearer \$TOKEN" \$URL/api/v1/events \\
         --json '{"subject":"demo.hello","payload":{"text":"hi"}}'
    curl -s \$URL/api/plugins/event-logger/webhooks/stats
    curl -s -H "Authorization: Bearer \$TOKEN" \$URL/api/plugins/event-logger/logs

  README.md goes on from here. Ctrl-C stops the host.

TEXT

# A signal ends wait early; the host takes its time to stop.
status=0
while kill -0 "$host" 2>/dev/null; do
    wait "$host" && status=0 || status=$?
done
trap - EXIT
[ -z "$stopping" ] || exit 0
exit "$status"
