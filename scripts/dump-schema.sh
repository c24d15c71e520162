#!/bin/sh
# Writes the dumps of the present schema with sample rows, tests/fixtures/db/<version>.{sqlite,postgres}.sql; its README
# says when. Needs sqlite3.
#
#   scripts/dump-schema.sh VERSION
set -eu

[ $# = 1 ] || { echo "usage: dump-schema.sh VERSION" >&2; exit 2; }
cd "$(dirname "$0")/.."
scripts/ensure-tools.sh sqlite3
bin=$(scripts/ensure-postgres.sh)
export KANDEV_WRITE_DUMPS="$1" PATH="$bin:$PATH"
exec scripts/with-postgres.sh cargo test --quiet -p kandev-host --lib every_schema_step_has_a_dump
