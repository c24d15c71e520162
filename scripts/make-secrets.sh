#!/bin/sh
# Makes the secrets of compose.yaml in ./secrets: the operator's token, the database's password and its address. What is
# there already is kept.
#
# Compose hands a file over with the owner and mode it has here, and the containers' users are others than yours: the
# files can be read by everybody, the folder around them by you alone.
set -eu

cd "$(dirname "$0")/.."
umask 077
mkdir -p secrets
chmod 0700 secrets

random() { # bytes; hex, so that it can stand in an address
    od -An -v -tx1 -N"$1" /dev/urandom | tr -d ' \n'
}

keep() { # name; the content comes on standard input
    if [ -s "secrets/$1" ]; then
        cat >/dev/null
        echo "kept: secrets/$1"
        return
    fi
    cat >"secrets/$1.new"
    chmod 0444 "secrets/$1.new"
    mv "secrets/$1.new" "secrets/$1"
    echo "made: secrets/$1"
}

random 32 | keep admin_token
random 24 | keep postgres_password
# A password that was changed by hand must be percent-encoded here.
printf 'postgres://kandev:%s@postgres:5432/kandev' "$(cat secrets/postgres_password)" | keep database_url
