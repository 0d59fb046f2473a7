#!/bin/sh
# run_store.sh COMMAND [COUNT]: zarr-python over the key view of libbreccia.so, which lies beside
# COMMAND: its own tests of stores, and COUNT random steps a pipeline on a file and on a directory.
# Before that, Python's sqlite3 in the process that writes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$(dirname "$1")" && pwd)
BRECCIA=$build/$(basename "$1")
BRECCIA_LIB=$build/libbreccia.so
export BRECCIA BRECCIA_LIB
sh "$here/setup.sh" "$build"
cd "$here" # where its modules are

"$build/interop-venv/bin/python" -B beside.py "$BRECCIA" "$BRECCIA_LIB"

"$build/interop-venv/bin/python" -B -W ignore -m pytest -q -p no:cacheprovider \
    -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function store_suite.py
exec "$build/interop-venv/bin/python" -B store_check.py "$BRECCIA" "$BRECCIA_LIB" "${2:-60}"
