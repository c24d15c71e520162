#!/bin/sh
# Prints the path of a Python, 3.10 or newer, that has the Python SDK (sdk-python/, as it is in the working tree), its
# dependencies and the tools for its tests, all of the versions in sdk-python/requirements-dev.txt: an environment below
# target/ that this makes when it is not there yet.
#
# On Debian as root it installs python3-venv for that. Exits 3 when there is none to be had.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$root/target}/python

say() { echo "ensure-python: $*" >&2; }

missing() {
    say "MISSING: Python for the Python SDK ($1)"
    say "install Python 3.10 or newer with its modules venv and pip (Debian: python3-venv) and let it reach PyPI"
    exit 3
}

# What the environment is made of; written into it last, so that half an environment is made anew.
wanted() { cat "$root/sdk-python/requirements-dev.txt" && echo "$root"; }
if wanted | cmp -s - "$folder/made-of" && "$folder/bin/python" -c 'import grpc, google.protobuf, pytest' >/dev/null 2>&1; then
    echo "$folder/bin/python"
    exit 0
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || missing "python3 is missing or too old"
if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] || missing "no Python with venv, and this is not Debian as root"
    say "installing Debian's package python3-venv"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install -y --no-install-recommends python3-venv; } >&2 ||
        missing "apt-get cannot install it: see the lines above"
fi
say "making the Python environment $folder, once"
rm -rf "$folder"
python3 -m venv "$folder" >&2 || missing "no Python environment can be made: see the lines above"
"$folder/bin/pip" install --quiet --disable-pip-version-check \
    --requirement "$root/sdk-python/requirements-dev.txt" --editable "$root/sdk-python" >&2 ||
    missing "pip cannot install what it needs: see the lines above"
"$folder/bin/python" -c 'import grpc, google.protobuf, pytest' || missing "they do not work: see the lines above"
wanted >"$folder/made-of"
echo "$folder/bin/python"
