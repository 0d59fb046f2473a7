"""Builds the C library, the command, the converters and the extension module. Names and versions are in pyproject.toml.

The C library is made by the project's Makefile, with its own flags: CFLAGS, CPPFLAGS and LDFLAGS of the
environment are those of the extension module alone. Nothing is installed: what is missing is named.

BRECCIA_SQLITE=DIR    compiles DIR/sqlite3.c in, instead of the system's SQLite
"""
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import build_ffi  # noqa: E402
import build_made  # noqa: E402

SOURCE = build_ffi.SOURCE
PACKAGES = "libzstd libxxhash libcjson zlib blosc liblz4 liblzma libzip libarchive".split()
SQLITE = os.environ.get("BRECCIA_SQLITE", "")

# The files that the library, the command and the converters are made of.
C_FILES = ("Makefile", "LICENSE", ".ci/setup.sh", "src/**/*.[ch]", "src/serve/page/*", "schema/*.sql",
           "codecs/**/*.[ch]", "cli/**/*.[ch]")

# Ours stay ours: another SQLite or libbreccia in the process neither takes them over nor sees them.
OURS = "-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic"

# cffi uses the limited API by itself where it can: then one wheel is for all Pythons from 3.11 on.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
LIMITED = not FREE_THREADED and not hasattr(sys, "gettotalrefcount")
if FREE_THREADED and sys.version_info < (3, 14):
    sys.exit("breccia: free-threaded Python is supported from 3.14 on, because cffi is")

made = False


def make():
    """The C library and the programs, once."""
    global made
    if made:
        return
    if not (SOURCE / "src" / "breccia.h").is_file():
        sys.exit(f"breccia: the C sources are not in {SOURCE}: build from a checkout or an sdist")
    if shutil.which("make") is None:
        sys.exit("breccia: the program make is missing (Debian: make)")
    apart = "CFLAGS", "CPPFLAGS", "LDFLAGS", "MODE", "SQLITE"
    env = {k: v for k, v in os.environ.items() if k not in apart}
    command = ["make", "-C", str(SOURCE), "SETUP=--lib --say"]
    if SQLITE:
        command.append(f"SQLITE={os.path.abspath(SQLITE)}")
    if "-j" not in env.get("MAKEFLAGS", ""):
        command.append(f"-j{os.cpu_count() or 1}")
    if subprocess.run([*command, "python-parts"], env=env).returncode != 0:
        sys.exit("breccia: the C library could not be built: the lines above say why. "
                 "If a library is missing, `make setup` in the project installs it (Debian), "
                 "else install its package by hand")
    made = True


def pkg_config(*args):
    told = subprocess.run(["pkg-config", *args], check=True, capture_output=True, text=True)
    return told.stdout.split()


def sqlite_flags():
    """How to link SQLite: compiled in, or from its archive, so that our calls go to this copy whatever else
    the process has loaded; the shared library only where no archive can become part of a module."""
    if SQLITE:
        return []
    archive = pathlib.Path(pkg_config("--variable=libdir", "sqlite3")[0]) / "libsqlite3.a"
    private = [flag for flag in pkg_config("--static", "--libs", "sqlite3") if flag != "-lsqlite3"]
    if archive.is_file():
        with tempfile.TemporaryDirectory() as work:
            trial = [*os.environ.get("CC", "cc").split(), "-shared", "-o", f"{work}/trial.so",
                     "-Wl,-u,sqlite3_open_v2", "-Wl,-z,defs", "-Wl,-z,text", *OURS,
                     str(archive), *private, "-lpthread", "-ldl"]
            if subprocess.run(trial, capture_output=True).returncode == 0:
                return [str(archive), *private]
    print("breccia: there is no libsqlite3.a that can be linked in: the shared library is used. A program "
          "that loads another SQLite for all its modules would take its place", file=sys.stderr)
    return pkg_config("--libs", "sqlite3")


def bundled():
    """Links libraries that are otherwise loaded at their first use, so that a wheel carries them: the Makefile
    does the same for the command."""
    found = os.environ.get("BUNDLE") and subprocess.run(
        [*os.environ.get("CC", "cc").split(), "-E", "-"], input=b"#include <zfp.h>\n", capture_output=True)
    return ["-Wl,--no-as-needed", "-lzfp"] if found and found.returncode == 0 else []


def copy_programs(package):
    """The command, for bin/breccia here, and those for HDF5 and NetCDF, to where it and _native.py look for them."""
    for made, folder in ("breccia", "bin"), ("libexec/breccia", "libexec/breccia"):
        target, made = pathlib.Path(package) / folder, SOURCE / "build" / made
        target.mkdir(parents=True, exist_ok=True)
        for program in made.iterdir() if made.is_dir() else [made]:
            shutil.copy2(program, target / program.name)


class BuildPython(build_py):
    """Also the programs, the types of the extension module, and what is made of the headers."""

    def run(self):
        super().run()
        if not self.editable_mode:
            make()
            package = pathlib.Path(self.build_lib) / "breccia"
            copy_programs(package)
            (package / "_breccia.pyi").write_text(build_ffi.stub())
            build_made.write(package)


class BuildExtension(build_ext):
    """First the C library, then the module that it is linked into."""

    def run(self):
        make()
        for extension in self.extensions:
            extension.extra_objects = extension.depends = [
                str(SOURCE / "build" / made) for made in ("credentials.o", "libbreccia.a")]
            extension.extra_link_args = [*OURS, "-Wl,-z,relro,-z,now", "-Wl,--as-needed",
                                         *sqlite_flags(), *pkg_config("--libs", *PACKAGES), *bundled()]
            extension.libraries = ["bz2", "m", "dl", "pthread"]
        super().run()
        if self.inplace:
            package = pathlib.Path(__file__).resolve().parent / "breccia"
            copy_programs(package)
            (package / "_breccia.pyi").write_text(build_ffi.stub())
            build_made.write(package)


class SourceDistribution(sdist):
    """With the C sources, as `csource`."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for script in "build_ffi.py", "build_made.py":
            shutil.copy2(pathlib.Path(__file__).resolve().parent / script, base_dir)
        for pattern in C_FILES:
            for path in sorted(SOURCE.glob(pattern)):
                target = pathlib.Path(base_dir) / "csource" / path.relative_to(SOURCE)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)


setup(cffi_modules=["build_ffi.py:make_builder"],
      scripts=["bin/breccia"],
      cmdclass={"build_py": BuildPython, "build_ext": BuildExtension, "sdist": SourceDistribution},
      options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {})
