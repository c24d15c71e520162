#!/bin/sh
# Runs a command with a throw-away PostgreSQL server, whose address it finds in KANDEV_TEST_POSTGRES (without a database
# name) and whose folder in KANDEV_TEST_POSTGRES_FOLDER. Leaves nothing, however the command ends.
#
#   scripts/with-postgres.sh COMMAND [ARGUMENT…]
#
# Exits as the command does; 3 when there is no server to be had.
set -eu

[ $# -gt 0 ] || { echo "usage: with-postgres.sh COMMAND [ARGUMENT…]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)

KANDEV_TEST_POSTGRES_FOLDER=$("$here/postgres.sh" create) || exit $?
export KANDEV_TEST_POSTGRES_FOLDER
trap '"$here/postgres.sh" remove "$KANDEV_TEST_POSTGRES_FOLDER"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
KANDEV_TEST_POSTGRES=$("$here/postgres.sh" address "$KANDEV_TEST_POSTGRES_FOLDER")
export KANDEV_TEST_POSTGRES

status=0
"$@" || status=$?
exit "$status"
