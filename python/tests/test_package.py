"""The package as it is built and installed: its parts, its types, whose symbols it uses, what it imports."""
from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import breccia
from breccia import _errors, _native
from breccia._breccia import ffi, lib

PACKAGE = pathlib.Path(breccia.__file__).parent
INSTALLED = os.environ.get("BRECCIA_INSTALLED") == "1"


def run(code: str, *args: str, **env: str) -> str:
    """Returns what a new Python process prints; its failure fails the test."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *args], capture_output=True,
                          text=True, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not INSTALLED, reason="the package is used from its checkout")
def test_installed_parts() -> None:
    assert "site-packages" in PACKAGE.parts
    parts = {p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*") if "__pycache__" not in p.parts}
    assert {"py.typed", "_breccia.pyi", "_made/calls.py", "bin/breccia", "libexec/breccia/hdf5",
            "libexec/breccia/netcdf"} <= parts
    files = {str(f) for f in importlib.metadata.files("breccia") or ()}
    assert any(f.endswith("/LICENSE") for f in files)
    said = importlib.metadata.distribution("breccia").read_text("WHEEL") or ""
    free = sys.version_info >= (3, 13) and not sys._is_gil_enabled()
    assert free or re.search(r"^Tag: cp311-abi3-", said, re.M), said


def test_version_is_the_librarys() -> None:
    if INSTALLED:
        assert importlib.metadata.version("breccia") == _native.string(lib.brc_version())


@pytest.mark.skipif(not INSTALLED, reason="the package is used from its checkout")
def test_command(tmp_path: pathlib.Path) -> None:
    """The command is installed with the package, finds its converters, and returns its exit status."""
    command, path, out = pathlib.Path(sys.executable).parent / "breccia", tmp_path / "c.brc", tmp_path / "c.h5"
    with breccia.open(path, create=True) as repo, repo.session("main", message="from Python") as s:
        s["a"] = np.arange(6)

    def said(*args: object, status: int = 0) -> str:
        done = subprocess.run([command, *map(str, args)], capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    assert said("--version").strip() == f"breccia {breccia.__version__}"
    assert "from Python" in said("log", path)
    said("export", path, out)
    said("import", path, out, "/back")
    assert breccia.open(path).draft("main")["back/a"][3] == 3
    assert "/none" in said("read", path, "/none", status=1)


def test_entry_points() -> None:
    if not INSTALLED:
        pytest.skip("the package is used from its checkout")
    points = {(p.group, p.value) for p in importlib.metadata.distribution("breccia").entry_points}
    assert points == {("zarr.codec_pipeline", "breccia.zarr:CodecPipeline"),
                      ("xarray.backends", "breccia.xarray:Backend"),
                      ("fsspec.specs", "breccia._fsspec:FileSystem")}
    for group, value in points:
        module, name = value.split(":")
        if importlib.util.find_spec(group.partition(".")[0]) is not None:
            assert hasattr(importlib.import_module(module), name)


def test_converters_run() -> None:
    assert _native.LIBEXEC is not None
    for program in "hdf5", "netcdf":
        path = os.path.join(_native.LIBEXEC, program)
        assert os.access(path, os.X_OK)
        # Without arguments it says how it is called; a missing library would be 127.
        done = subprocess.run([path], capture_output=True, stdin=subprocess.DEVNULL)
        assert done.returncode not in (126, 127)


def test_stub_names_what_is_there() -> None:
    text = (PACKAGE / "_breccia.pyi").read_text()
    declared = set(re.findall(r"^    ((?:brc|BRC|py)_\w+):", text, re.M))
    assert declared == {n for n in dir(lib) if n.startswith(("brc_", "BRC_", "py_"))}
    ours = set(re.findall(r"^    (?:def )?(\w+)[:(]", text.partition("class _Lib")[0], re.M))
    assert ours <= set(dir(ffi))


def test_every_code_has_an_exception() -> None:
    codes = {getattr(lib, name) for name in dir(lib) if re.fullmatch(r"BRC_E[A-Z]+", name)}
    assert codes == set(_errors.BY_CODE)


def test_types_as_users_see_them(tmp_path: pathlib.Path) -> None:
    """Every public name can be imported from the package, and one that is not there is found."""
    api = pytest.importorskip("mypy.api")
    names = sorted(set(breccia.__all__) - {"open"})
    (tmp_path / "good.py").write_text(f"from breccia import {', '.join(names)}, open\n\nx: int = open('a').log()[0]")
    (tmp_path / "wrong.py").write_text("import breccia\n\nbreccia.opne('a.brc')\n")
    env = {**os.environ, "MYPYPATH": str(PACKAGE.parent)} if not INSTALLED else dict(os.environ)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "good.py", "wrong.py"], capture_output=True,
                          text=True, cwd=tmp_path, env=env)
    faults = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(faults) == 2 and 'has type "Commit"' in done.stdout and 'attribute "opne"' in done.stdout, done.stdout


def test_import_is_light() -> None:
    loaded = run("""
        import sys, numpy
        before = set(sys.modules)
        import breccia
        print(*sorted(set(sys.modules) - before))
    """).split()
    heavy = ("asyncio importlib.metadata zarr xarray dask torch fsspec tqdm ml_dtypes ctypes "
             "multiprocessing").split()
    assert [m for m in loaded if m in heavy or m.split(".")[0] in heavy] == []


def test_a_first_element_makes_no_records(tmp_path: pathlib.Path) -> None:
    """Making the records takes milliseconds, and only calls about versions need them."""
    pytest.importorskip("zarr")
    assert run(f"""
        import sys, breccia, breccia.zarr, zarr
        path = {str(tmp_path / "first.brc")!r}
        made = zarr.create_array(breccia.zarr.Store(path, create=True), name="x", shape=(3,), dtype="i4")
        made[0] = 7
        with breccia.open(path) as repo:
            print(made[0], repo.draft("main")["x"][0], "breccia._records" in sys.modules)
    """).split() == ["7", "7", "False"]


DECOY = """
#define TAKEN(name) int name(void) { return 1; }
TAKEN(sqlite3_initialize) TAKEN(sqlite3_open_v2) TAKEN(sqlite3_prepare_v2) TAKEN(sqlite3_prepare_v3)
TAKEN(sqlite3_step) TAKEN(sqlite3_exec) TAKEN(sqlite3_vfs_register)
void *sqlite3_vfs_find(const char *name) { (void)name; return 0; }
int brc_open(void) { return -18; }
int brc_session_open(void) { return -18; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_other_symbols_do_not_take_over(tmp_path: pathlib.Path) -> None:
    source, decoy = tmp_path / "decoy.c", tmp_path / "decoy.so"
    source.write_text(DECOY)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(decoy), str(source)], check=True)
    said = run("""
        import ctypes, os, sys
        decoy = ctypes.CDLL(sys.argv[1], os.RTLD_GLOBAL | os.RTLD_NOW)
        assert ctypes.CDLL(None).sqlite3_open_v2() == 1  # it comes first for whoever looks it up
        from breccia import _native
        from breccia._breccia import lib
        handle = _native.Handles(sys.argv[2], flags=lib.BRC_OPEN_CREATE).take()
        handle.call(lib.brc_begin, handle.repo)
        handle.call(lib.brc_end, handle.repo, lib.BRC_END_KEEP)
        print("ours")
    """, str(decoy), str(tmp_path / "a.brc"))
    assert said == "ours\n"


def test_the_interpreters_sqlite_for_all(tmp_path: pathlib.Path) -> None:
    said = run("""
        import os, sys
        sys.setdlopenflags(os.RTLD_GLOBAL | os.RTLD_NOW)
        import sqlite3
        from breccia import _native
        from breccia._breccia import lib
        handles = _native.Handles(sys.argv[1], flags=lib.BRC_OPEN_CREATE)
        handles.take().close()
        theirs = sqlite3.connect(sys.argv[1])
        assert theirs.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        handle = handles.take()
        handle.call(lib.brc_begin, handle.repo)
        handle.call(lib.brc_end, handle.repo, lib.BRC_END_KEEP)
        print("both")
    """, str(tmp_path / "a.brc"))
    assert said == "both\n"


# In another process: what becomes of a write while we are in a transaction, with half a second to wait.
OTHER = """
    import sys
    from breccia import _errors, _native
    from breccia._breccia import lib
    handle = _native.Handles(sys.argv[1], wait=0.3).take()
    try:
        handle.call(lib.brc_begin, handle.repo)
    except _errors.BusyError:
        print("busy")
    else:
        handle.call(lib.brc_end, handle.repo, lib.BRC_END_KEEP)
        print("written")
"""


def read_elsewhere(path: str) -> None:
    import sqlite3

    other = sqlite3.connect(path)
    other.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    other.close()


def open_elsewhere(path: str) -> None:
    with open(path, "rb") as file:
        file.read(16)


def copy_elsewhere(path: str) -> None:
    shutil.copy(path, path + ".copy")


@pytest.mark.parametrize("touch", [read_elsewhere, open_elsewhere, copy_elsewhere])
def test_no_close_drops_our_lock(tmp_path: pathlib.Path, touch: "object") -> None:
    path = str(tmp_path / "a.brc")
    handle = _native.Handles(path, flags=lib.BRC_OPEN_CREATE).take()
    assert run(OTHER, path) == "written\n"
    handle.call(lib.brc_begin, handle.repo)
    assert callable(touch)
    touch(path)
    assert run(OTHER, path) == "busy\n"
    handle.call(lib.brc_end, handle.repo, lib.BRC_END_KEEP)
    assert run(OTHER, path) == "written\n"


WRITER = """
    import sys
    import numpy as np, breccia
    repo = breccia.open(sys.argv[1])
    print("ready", flush=True)
    for i in range(40):
        with repo.session("main", message=f"other {i}") as s:
            s["other"][i] = i + 1
"""


def test_two_processes_write_while_files_are_opened_here(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "a.brc")
    repo = breccia.open(path, create=True)
    with repo.session("main", message="first") as s:
        s["ours"], s["other"] = np.zeros(40, "i4"), np.zeros(40, "i4")
    other = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), path],
                             stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "ready\n"
    for i in range(40):
        with repo.session("main", message=f"ours {i}") as s:
            s["ours"][i] = i + 1
            for touch in read_elsewhere, open_elsewhere, copy_elsewhere:
                touch(path)
    assert other.wait(60) == 0
    now = repo.session("main")
    assert now["ours"][:].tolist() == now["other"][:].tolist() == list(range(1, 41))
    assert len(list(repo.log())) == 81
