#!/bin/sh
# Prints the folder of PostgreSQL's server programs (initdb, pg_ctl, postgres, pg_dump), which the tests need.
#
# Looks at $KANDEV_POSTGRES_BIN, the PATH and where Debian and others put them. On Debian as root it then installs the
# package postgresql, without a cluster of its own. Exits 3 when there is none to be had.
set -eu

say() { echo "ensure-postgres: $*" >&2; }

# Prints the folder when initdb, once its links are followed, has its companions beside it, and exits.
take() {
    [ -x "$1" ] || return 0
    folder=$(dirname "$(readlink -f "$1")")
    for program in initdb pg_ctl postgres pg_dump; do
        [ -x "$folder/$program" ] || return 0
    done
    echo "$folder"
    exit 0
}

look() {
    [ -z "${KANDEV_POSTGRES_BIN:-}" ] || take "$KANDEV_POSTGRES_BIN/initdb"
    take "$(command -v initdb || true)"
    # The newest of several; a pattern that matches nothing stays as it is and is not executable.
    for candidate in $(printf '%s\n' /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb | sort -rV); do
        take "$candidate"
    done
    take /usr/local/pgsql/bin/initdb
}

missing() {
    say "MISSING: a PostgreSQL server ($1)"
    say "install it (Debian: postgresql), or name the folder of its programs in KANDEV_POSTGRES_BIN"
    exit 3
}

look
[ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] || missing "none found, and this is not Debian as root"
say "no PostgreSQL server found; installing Debian's package postgresql"
export DEBIAN_FRONTEND=noninteractive
{
    # The common part first, so that the server's package makes and starts no cluster: the tests make their own.
    apt-get update && apt-get install -y --no-install-recommends postgresql-common &&
        sed -ri 's/^#?(create_main_cluster) .*$/\1 = false/' /etc/postgresql-common/createcluster.conf &&
        apt-get install -y --no-install-recommends postgresql
} >&2 || missing "apt-get cannot install it: see the lines above"
look
missing "the package postgresql was installed but its programs were not found"
