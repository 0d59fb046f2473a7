#!/bin/sh
# Builds a commit's library under today's benchmarks, and compares it with today's: both are measured by one
# program. Options are those of python/bench/against.py.
#
#   against.sh PROGRAM COMMIT [OPTION...] [GROUP...]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
program=$1
[ -n "${2:-}" ] || { echo 'bench-against: say which commit, as REV=COMMIT' >&2; exit 2; }
rev=$(git -C "$root" rev-parse --verify --short=12 "$2^{commit}")
shift 2
old=$root/build/against/$rev
if ! [ -d "$old" ]; then
    rm -rf "$old.new"
    mkdir -p "$old.new"
    git -C "$root" archive "$rev" | tar x -C "$old.new"
    mv "$old.new" "$old"
fi
rm -rf "$old/tests/bench"
mkdir "$old/tests/bench"
cp -p "$here"/*.[ch] "$old/tests/bench"
cp -p "$here/../kit/ios.h" "$here/../kit/s3_server.c" "$here/../kit/s3_server.h" "$old/tests/kit"
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$old" build/bench >&2 || {
    echo "bench-against: today's benchmarks cannot be built with the library of $rev" >&2
    exit 2
}
exec python3 -B "$root/python/bench/against.py" "$@" "$program" "$old/build/bench" ${BENCH:-}
