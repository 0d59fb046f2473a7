"""Builds the C library, the converters and the extension module. What it is called is in pyproject.toml."""
import pathlib
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import build_ffi  # noqa: E402

LIBEXEC = "build/libexec/breccia"


class BuildPython(build_py):
    """Also the converters for HDF5 and NetCDF, which are programs."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib) / "breccia" / "libexec"
        target.mkdir(parents=True, exist_ok=True)
        for program in (build_ffi.SOURCE / LIBEXEC).iterdir():
            shutil.copy2(program, target)


def make():
    subprocess.run(["make", "-C", str(build_ffi.SOURCE), "all"], check=True)


if not {"--version", "--name", "egg_info", "sdist", "clean"} & set(sys.argv[1:]):
    make()

setup(cffi_modules=["build_ffi.py:make_builder"], cmdclass={"build_py": BuildPython},
      options={"bdist_wheel": {"py_limited_api": "cp311"}})
