#!/bin/sh
# Writes src/kandev_plugin/proto/ anew: the messages of this project's protos, with their types.
#
#   sdk-python/generate.sh           writes them
#   sdk-python/generate.sh --check   exits 1 when the committed ones are not what it would write
#
# The compiler is the pinned grpcio-tools of requirements-dev.txt. Exits 3 when Python cannot be had. Services are not
# generated: the SDK calls and serves them by their descriptors, and so does not hang on one version of grpcio.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
python=$("$root/scripts/ensure-python.sh")

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
compile() { # import path, file
    "$python" -m grpc_tools.protoc -I "$1" --python_out="$out" --pyi_out="$out" "$1/$2"
}
compile "$root/proto" kandev/plugin/v1/plugin.proto
compile "$root/goplugin/proto" goplugin.proto
compile "$here/proto" health.proto
compile "$here/proto" status.proto
mv "$out"/kandev/plugin/v1/plugin_pb2.py* "$out/"
rm -r "$out/kandev"

committed=$here/src/kandev_plugin/proto
if [ "${1:-}" = --check ]; then
    for file in "$out"/*; do
        cmp -s "$file" "$committed/${file##*/}" || {
            echo "generate.sh: $committed/${file##*/} is out of date: run sdk-python/generate.sh" >&2
            exit 1
        }
    done
else
    cp "$out"/* "$committed/"
fi
