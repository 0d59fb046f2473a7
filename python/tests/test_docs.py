"""docs/PYTHON.md is run: its blocks of Python one after the other, as one program in an empty folder.

A block that is followed by one of `text` prints just that, where `...` stands for anything. A block whose
first line is `# NAME.py` is a file, which is run by itself. A block that imports a package that is not installed
is skipped.
"""
from __future__ import annotations

import ast
import contextlib
import fnmatch
import importlib.util
import io
import os
import pathlib
import re
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "PYTHON.md"
TEXT = PAGE.read_text() if PAGE.is_file() else ""
FENCE = re.compile(r"^```python\n(.*?)^```\n(?:\n?^```text\n(.*?)^```\n)?", re.M | re.S)
BLOCKS = [(TEXT[:found.start(1)].count("\n") + 1, found[1], found[2]) for found in FENCE.finditer(TEXT)]


def missing(code: str) -> list[str]:
    """Returns the modules that the block imports, at its top or further in, and that are not installed."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(optional for module, optional in PARTS.items() if module in ast.unparse(node))
    return sorted(name for name in names if importlib.util.find_spec(name) is None)


PARTS = {"breccia.zarr": "zarr", "breccia.torch": "torch", "breccia.xarray": "xarray"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The names that blocks make, and the folder in which they run."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("page"))
    yield {"__name__": "page"}
    os.chdir(before)


def run_block(line: int, code: str, names: dict[str, Any]) -> str:
    file = re.match(r"# (\w+\.py)\n", code)
    if file:
        pathlib.Path(file[1]).write_text(code)
        done = subprocess.run([sys.executable, file[1]], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("line, code, output", BLOCKS, ids=[f"line{line}" for line, *_ in BLOCKS])
def test_block(line: int, code: str, output: str | None, page: dict[str, Any]) -> None:
    if absent := missing(code):
        pytest.skip(f"{', '.join(absent)} is not installed")
    if 'engine="breccia"' in code and not metadata.entry_points(group="xarray.backends", name="breccia"):
        pytest.skip("the package is used from its checkout, where xarray does not find it")
    said = run_block(line, code, page)
    if output is not None:
        wanted = output.replace("[", "[[]").replace("...", "*")
        assert fnmatch.fnmatchcase(said.strip(), wanted.strip()), said


def test_readme(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = PAGE.parents[1] / "README.md"
    if not readme.is_file():
        pytest.skip("the documents are not beside the tests")
    (code,) = re.findall(r"^```python\n(.*?)^```", readme.read_text(), re.M | re.S)
    if missing(code):
        pytest.skip("zarr is not installed")
    monkeypatch.chdir(tmp_path)
    assert run_block(1, code, {}) == "[1 0 1 0] first\n"


def test_the_page_has_blocks() -> None:
    if not PAGE.is_file():
        pytest.skip("the documents are not beside the tests")
    assert len(BLOCKS) >= 20
    assert TEXT.count("```python") == len(BLOCKS)
