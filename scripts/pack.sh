#!/bin/sh
# Packs a plugin: manifest.yaml, the executable at server/plugin-<platform> and checksums.txt, as a .tar.gz.
#
#   scripts/pack.sh <manifest.yaml> <executable> <package.tar.gz>
set -eu

[ $# = 3 ] || { echo "usage: pack.sh <manifest.yaml> <executable> <package.tar.gz>" >&2; exit 2; }
manifest=$1 executable=$2 package=$3

case "$(uname -s)-$(uname -m)" in
Linux-x86_64) platform=linux-amd64 ;;
Linux-aarch64) platform=linux-arm64 ;;
*) echo "pack.sh: the host runs on Linux on amd64 and arm64 only" >&2; exit 1 ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/server"
cp "$manifest" "$folder/manifest.yaml"
# Symbols would make up most of a debug build.
strip -o "$folder/server/plugin-$platform" "$executable" 2>/dev/null ||
    cp "$executable" "$folder/server/plugin-$platform"
cd "$folder"
sha256sum manifest.yaml "server/plugin-$platform" >checksums.txt
cd "$OLDPWD"
tar -C "$folder" --owner=0 --group=0 --numeric-owner -czf "$package" manifest.yaml checksums.txt server
