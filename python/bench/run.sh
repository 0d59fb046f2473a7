#!/bin/sh
# The benchmarks of the Python package, as the wheel has it, beside its peers, in an environment of their own
# under build/py.
# Options are those of bench.py, and BENCH="slices rows" and BENCH_QUICK=1. With TORCH=1 torch is fetched too.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/py
mkdir -p "$work"
python=$(python3 -c 'import sys; print(sys.executable)')
. "$here/../tests/lanes.sh"

environment build "$python" "$here/../requirements-build.txt"
environment bench "$python" "$here/requirements.txt"
pip() { "$work/bench/bin/python" -m pip -q --disable-pip-version-check "$@"; }
if ! cmp -s "$here/peers.txt" "$work/bench/peers.txt" || [ -n "${TORCH:-}" ]; then
    grep -v '^#' "$here/peers.txt" >"$work/peers"
    [ -z "${TORCH:-}" ] || echo torch >>"$work/peers"
    while read -r peer; do
        pip install "$peer" || echo "bench: $peer cannot be had" >&2
    done <"$work/peers"
    cp "$here/peers.txt" "$work/bench/peers.txt"
fi
sh "$here/../wheel.sh" --untried
pip install --force-reinstall --no-deps "$root"/build/wheel/*.whl

data=${BRECCIA_TEST_DATA:-$root/../shared/data}
[ ! -d "$data" ] || export BRECCIA_TEST_DATA="$data"
# shellcheck disable=SC2086
exec "$work/bench/bin/python" -B "$here/bench.py" ${BENCH_QUICK:+--quick} "$@" ${BENCH:-}
