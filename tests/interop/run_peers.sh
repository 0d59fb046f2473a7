#!/bin/sh
# run_peers.sh COMMAND [OPTIONS OF interop.py]: arrays go both ways between COMMAND and
# zarr-python, zarrs, TensorStore and zarrita, files between it and netCDF4-python, xarray
# and h5py. The peers are fetched beside COMMAND.
# INTEROP_COUNT, INTEROP_SEED: how many arrays, and which; of files, a quarter as many.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$(dirname "$1")" && pwd)
breccia=$build/$(basename "$1")
count=${INTEROP_COUNT:-2000}
seed=${INTEROP_SEED:-1}
shift
sh "$here/setup.sh" "$build" npm

data=${BRECCIA_TEST_DATA:-$here/../../../shared/data}
[ -d "$data" ] && export BRECCIA_TEST_DATA="$data"
python() { INTEROP_NPM=$build/interop-npm "$build/interop-venv/bin/python" -B "$@"; }

failed=0
python "$here/interop.py" "$breccia" --count "$count" --seed "$seed" "$@" || failed=1
for format in netcdf hdf5 ragged tables references; do
    python "$here/$format.py" "$breccia" --count $((count / 4)) --seed "$seed" || failed=1
done
exit $failed
