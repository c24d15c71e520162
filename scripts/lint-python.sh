#!/bin/sh
# What can be said about the Python SDK, its tests, its example and the Python fixture without running them: ruff (rules
# and format) and mypy --strict, with sdk-python/pyproject.toml. Exits 3 when Python cannot be had.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=$("$root/scripts/ensure-python.sh")
settings=$root/sdk-python/pyproject.toml
caches=${CARGO_TARGET_DIR:-$root/target}/python-lint

cd "$root/sdk-python"
"$python" -m ruff check --quiet --cache-dir "$caches/ruff" . ../tests/fixtures/python
"$python" -m ruff format --quiet --cache-dir "$caches/ruff" --check . ../tests/fixtures/python
check() { # folder, files or folders in it
    (cd "$1" && shift && "$python" -m mypy --config-file "$settings" --cache-dir "$caches/mypy" --no-error-summary "$@")
}
MYPYPATH=tests check . src tests
check examples/alert-tasks/src .
check ../tests/fixtures/python .
