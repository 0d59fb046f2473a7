#!/bin/sh
# run_peers.sh COMMAND [OPTIONS OF interop.py]: arrays go both ways between COMMAND and
# zarr-python, zarrs, TensorStore and zarrita. The peers are fetched beside COMMAND.
# INTEROP_COUNT, INTEROP_SEED: how many arrays, and which.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$(dirname "$1")" && pwd)
breccia=$build/$(basename "$1")
shift
sh "$here/setup.sh" "$build" npm
INTEROP_NPM=$build/interop-npm exec "$build/interop-venv/bin/python" -B "$here/interop.py" \
    "$breccia" --count "${INTEROP_COUNT:-2500}" --seed "${INTEROP_SEED:-1}" "$@"
