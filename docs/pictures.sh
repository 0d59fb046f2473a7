#!/bin/sh
# pictures.sh BUILD [FOLDER]: makes the pictures of README.md, with the programs of the folder BUILD, after
# `make build/demo/reaction_diffusion`. FOLDER: where they go (docs/pictures).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
mkdir -p "${2:-$here/pictures}"
folder=$(cd "${2:-$here/pictures}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PATH=$build:$PATH

"$build/demo/reaction_diffusion" frames.brc 100 >/dev/null
breccia create frames.brc /now --shape 256,256 --dtype float32 --chunks 64,64 --quiet
for frame in 70 99; do
    breccia read frames.brc /gray_scott/v "[$frame]" -o frame.npy
    breccia write frames.brc /now --from frame.npy --quiet
    breccia commit frames.brc -m "frame $frame" --quiet
    rm frame.npy
done
breccia read frames.brc /now -o "$folder/array.png"
breccia diff frames.brc HEAD~1 HEAD --image -o "$folder/diff.png" -- /now
