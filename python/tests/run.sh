#!/bin/sh
# The tests of the Python package, over the package as it is installed. Each lane is a virtual environment
# under build/py, kept while its requirements are the same:
#
#   newest   python3 with the newest zarr that it takes, xarray, dask, h5py
#   oldest   python3 with the oldest zarr that the package takes
#   3.12...  the other Pythons from 3.12 on that are on PATH, or that PYTHONS names, with the newest zarr
#   torch    with torch: where TORCH=1 asks for it, or python3 has it already
#
# LANES="newest oldest" runs these alone. A lane is pytest, then mypy --strict over the package.
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/py
lanes=${LANES:-}
mkdir -p "$work" || exit 1
python=$(python3 -c 'import sys; print(sys.executable)') || exit 1

. "$here/lanes.sh"

wanted() { [ -z "$lanes" ] || case " $lanes " in *" $1 "*) ;; *) false ;; esac; }

# One wheel for all: build/py/wheel, made of this tree.
build_wheel() {
    environment build "$python" "$here/../requirements-build.txt" || return 1
    rm -rf "$work/wheel" "$root/python/build/lib" "$root"/python/build/lib.* "$root"/python/build/bdist.*
    "$work/build/bin/python" -m pip -q --disable-pip-version-check wheel --no-deps --no-build-isolation \
        -w "$work/wheel" "$root/python" >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log"; return 1; }
}

failed=''
lane() { # NAME PYTHON REQUIREMENTS [TESTS...]
    name=$1 && base=$2 && requirements=$3
    shift 3
    wanted "$name" || return 0
    echo "== lane $name: $("$base" -c 'import sys; print("Python %d.%d.%d" % sys.version_info[:3])')"
    if ! environment "$name" "$base" "$requirements"; then
        failed="$failed $name"
        return 0
    fi
    bin=$work/$name/bin
    what=$(echo "$work"/wheel/*.whl)
    # A free-threaded Python takes no wheel of the others.
    "$base" -c 'import sys, sysconfig; sys.exit(not sysconfig.get_config_var("Py_GIL_DISABLED"))' &&
        what=$root/python
    "$bin/python" -m pip -q --disable-pip-version-check install --force-reinstall --no-deps "$what" || {
        failed="$failed $name"
        return 0
    }
    [ $# -gt 0 ] || set -- "$here"
    (cd "$work" && BRECCIA_INSTALLED=1 "$bin/python" -B -m pytest -q -p no:cacheprovider \
        -c "$root/python/pyproject.toml" --rootdir "$root/python" ${PYTEST:-} "$@") || failed="$failed $name"
    (cd "$work" && "$bin/python" -m mypy --config-file "$root/python/pyproject.toml" \
        --cache-dir "$work/mypy-$name" -p breccia) || failed="$failed $name(mypy)"
}

build_wheel || { echo 'python-test: the package could not be built' >&2; exit 1; }
lane newest "$python" "$here/requirements-newest.txt"
lane oldest "$python" "$here/requirements-oldest.txt"
for other in $(other_pythons); do
    version=$("$other" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    lane "$version" "$other" "$here/requirements-newest.txt"
done
if wanted torch; then
    if [ "${TORCH:-}" = 1 ] || "$python" -c 'import torch' 2>/dev/null; then
        lane torch "$python" "$here/requirements-torch.txt" "$here/test_torch.py" "$here/test_docs.py"
    else
        echo '== lane torch: SKIPPED, python3 has no torch, and TORCH=1 was not said'
    fi
fi
if [ -n "$failed" ]; then
    echo "python-test: failed in$failed" >&2
    exit 1
fi
