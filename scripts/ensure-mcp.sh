#!/bin/sh
# Prints the path of a Python that has the official client of the Model Context Protocol, of the version in
# tests/mcp/requirements.txt: an environment below target/ that this makes when it is not there yet.
#
# On Debian as root it installs python3-venv for that. Exits 3 when there is none to be had.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
wanted=$root/tests/mcp/requirements.txt
folder=${CARGO_TARGET_DIR:-$root/target}/mcp

say() { echo "ensure-mcp: $*" >&2; }

missing() {
    say "MISSING: the official MCP client ($1)"
    say "install Python 3.11 or newer with its modules venv and pip (Debian: python3-venv) and let it reach PyPI"
    exit 3
}

# The copy of what is wanted is written last: half an environment has none.
if cmp -s "$wanted" "$folder/requirements.txt" && "$folder/bin/python" -c 'import mcp' >/dev/null 2>&1; then
    echo "$folder/bin/python"
    exit 0
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || missing "python3 is missing or too old"
if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] || missing "no Python with venv, and this is not Debian as root"
    say "installing Debian's package python3-venv"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install -y --no-install-recommends python3-venv; } >&2 ||
        missing "apt-get cannot install python3-venv: see the lines above"
fi
say "installing the official MCP client into $folder, once"
rm -rf "$folder"
python3 -m venv "$folder" >&2 || missing "no Python environment can be made: see the lines above"
"$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted" >&2 ||
    missing "pip cannot install it: see the lines above"
"$folder/bin/python" -c 'import mcp' || missing "it does not work: see the lines above"
cp "$wanted" "$folder/requirements.txt"
echo "$folder/bin/python"
