"""Checks what the wheel must do in an environment of Python and NumPy only: `python bare.py FOLDER`.

Run by wheel.sh in an empty environment. Prints one line, or fails.
"""
import os
import re
import subprocess
import sys

import numpy as np

import breccia

folder = sys.argv[1]
package = os.path.dirname(os.path.abspath(breccia.__file__))
libs = package + ".libs"
assert "site-packages" in package, package

# A round trip through the file, and by each format whose converter is a program of the wheel.
data = np.arange(24, dtype="f4").reshape(4, 6)
path = os.path.join(folder, "bare.brc")
repo = breccia.open(path, create=True)
with repo.session("main", message="first") as s:
    s["data"] = data
    s["data"][1:3, ::2] += 1
expected = data.copy()
expected[1:3, ::2] += 1
assert np.array_equal(repo.session("main")["data"][...], expected)
for ending in "h5", "nc":
    out = os.path.join(folder, f"out.{ending}")
    with repo.session("main", message=f"back from {ending}") as s:
        s.export(out)
        s.import_(out, f"back_{ending}")
    assert np.array_equal(repo.session("main")[f"back_{ending}/data"][...], expected)
assert len(list(repo.log())) == 3

# The command, on PATH as pip put it there, with the converters that it came with.
command = os.path.join(os.path.dirname(sys.executable), "breccia")
for done in ["import", path, out, "/by_command"], ["commit", path, "-m", "by the command"]:
    subprocess.run([command, *done], check=True, stdout=subprocess.DEVNULL)
assert np.array_equal(repo.view("main")["by_command/data"][...], expected)

# Whose libraries these were: the wheel's own, or those that every Linux has.
SYSTEM = re.compile(r"(ld-linux\S*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+|z))[.-]\S*")
with open("/proc/self/maps") as maps:
    mapped = {line.split()[-1] for line in maps if ".so" in line}
assert any(m.startswith(libs) for m in mapped), "no library of the wheel is in use"
needed = {os.path.join(package, "_breccia.abi3.so")} & mapped or {m for m in mapped if "/_breccia." in m}
programs = [os.path.join(package, name) for name in
            ("bin/breccia", "libexec/breccia/hdf5", "libexec/breccia/netcdf")]
for file in [*needed, *programs]:
    told = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    for name, at in re.findall(r"^\s*(\S+) => (\S+)", told, re.M):
        at = os.path.normpath(at)
        assert at.startswith(libs) or SYSTEM.fullmatch(name), f"{file} takes {name} from {at}"
    assert "not found" not in told, told
print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}: round trip, HDF5 and NetCDF, the command, "
      f"{len(os.listdir(libs))} libraries of the wheel's own")
