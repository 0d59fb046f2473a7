#!/bin/sh
# `make bench-peers`: breccia, as the wheel and a C program have it, beside its peers, in an environment of their own
# under build/py. A peer that cannot be had is named and left out. 77: nothing could be fetched.
#
#   ROWS='whole part/1-MiB'   groups, or beginnings of rows' names (default: all); others' results stay
#   PEERS='zarr h5py'         only these sides, beside breccia
#   ROUNDS=5 SIZE=128         turns of each side; MiB of whole arrays
#   QUICK=1                   everything small: to see that each row of each side works, and gives what was written
#   THREADS=2 DIR=/var/tmp SHARED=../shared   threads of all; where files go; the folder with data/ of real arrays
#   TORCH=1                   fetches torch, for the rows of training
#   LIST=1                    only prints the rows
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/py
mkdir -p "$work"
python=$(python3 -c 'import sys; print(sys.executable)')
. "$here/../tests/lanes.sh"

environment build "$python" "$here/../requirements-build.txt" || exit 77
environment bench "$python" "$here/requirements.txt" || exit 77
pip() { "$work/bench/bin/python" -m pip -q --disable-pip-version-check "$@"; }
grep -v '^#' "$here/peers.txt" >"$work/peers"
[ -z "${TORCH:-}" ] || echo torch >>"$work/peers"
if ! cmp -s "$work/peers" "$work/bench/peers"; then
    while read -r peer; do
        pip install "$peer" || echo "bench-peers: $peer cannot be had, and is left out" >&2
    done <"$work/peers"
    cp "$work/peers" "$work/bench/peers"
fi

# The wheel, made again where a source is newer.
sources="$root/src $root/codecs $root/schema $root/cli $root/python/breccia $root/python/build_ffi.py
    $root/python/build_made.py $root/python/setup.py"
wheel=$(ls "$root"/build/wheel/*.whl 2>/dev/null) || wheel=
# shellcheck disable=SC2086
if [ -z "$wheel" ] || [ -n "$(find $sources -type f -newer "$wheel" | head -n 1)" ]; then
    sh "$here/../wheel.sh" --untried
    wheel=$(ls "$root"/build/wheel/*.whl)
fi
if ! [ "$work/bench/wheel" -nt "$wheel" ]; then
    pip install --force-reinstall --no-deps "$wheel"
    : >"$work/bench/wheel"
fi

# The C side has the wheel's SQLite and zstd, where the figures count.
[ -n "${QUICK:-}" ] || ! [ -d "$work/sources/sqlite" ] || sqlite=$work/sources/sqlite
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$root" ${sqlite:+SQLITE="$sqlite"} build/bench >&2

: "${SHARED:=$root/../shared}"
out=$root/build/bench-peers.json
[ -z "${QUICK:-}" ] || out=$root/build/bench-peers-quick.json
commit=$(git -C "$root" describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null) || commit=
# shellcheck disable=SC2086
"$work/bench/bin/python" -B "$here/peers.py" --bench "$root/build/bench" --libraries "$work/zstd" --out "$out" \
    --commit "$commit" --shared "$SHARED" ${DIR:+--dir "$DIR"} ${QUICK:+--quick} ${ROUNDS:+--rounds "$ROUNDS"} \
    ${SIZE:+--size "$SIZE"} ${THREADS:+--threads "$THREADS"} ${LIST:+--list} ${PEERS:+--peers $PEERS} -- ${ROWS:-}
[ -z "${LIST:-}" ] || exit 0
page=$root/docs
[ -z "${QUICK:-}" ] || page=$root/build
"$work/bench/bin/python" -B "$here/report.py" "$out" "$page"
echo "$page/BENCHMARKS.md and $page/benchmarks.svg are made of $out"
