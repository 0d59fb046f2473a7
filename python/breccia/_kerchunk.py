"""Kerchunk references in Parquet, as the set in JSON that the library reads. pyarrow reads Parquet."""
from __future__ import annotations

import base64
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow import parquet

from . import _errors


def _rows(file: str) -> Iterator[tuple[Any, Any, Any, Any]]:
    """(path, offset, size, raw) of each reference of a file."""
    table = parquet.read_table(file)
    columns = [table[name].to_pylist() if name in table.column_names else [None] * table.num_rows
               for name in ("path", "offset", "size", "raw")]
    yield from zip(*columns)


def _key(number: int, grid: list[int], separator: str) -> str:
    """The key of a chunk by its number in C order."""
    index: list[str] = []
    for extent in reversed(grid):
        number, at = divmod(number, extent)
        index.append(str(at))
    return separator.join(reversed(index)) or "0"


def _chunks(folder: str, array: str, document: dict[str, Any], size: int) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """(key, path, offset, size, raw) of each chunk of an array. A file has `size` rows, in the order of the chunks."""
    grid = [-(-extent // chunk) for extent, chunk in zip(document["shape"], document["chunks"])]
    separator = document.get("dimension_separator", ".")
    total = math.prod(grid)
    for name in sorted(os.listdir(os.path.join(folder, array))):  # a file may be missing, as its chunks are then
        if found := re.fullmatch(r"refs\.(\d+)\.parq", name):
            for number, row in enumerate(_rows(os.path.join(folder, array, name)), int(found[1]) * size):
                if number < total:
                    yield _key(number, grid, separator), *row


def _place(folder: str, path: str) -> str:
    """A relative path begins at the folder of the set, as it does in a set in JSON."""
    return path if "://" in path or "::" in path or os.path.isabs(path) else os.path.join(folder, path)


def references(folder: str) -> dict[str, Any]:
    """Returns the references of a set as kerchunk has them in JSON."""
    with open(os.path.join(folder, ".zmetadata"), "rb") as file:
        about = json.load(file)
    documents, size, above = about["metadata"], about["record_size"], os.path.dirname(os.path.abspath(folder))
    if not isinstance(documents, dict) or type(size) is not int or size < 1:
        raise ValueError("its metadata say neither documents nor the number of rows of a file")
    refs: dict[str, Any] = {key: json.dumps(document) for key, document in documents.items()}
    for key, document in documents.items():
        name, _, last = key.rpartition("/")
        if last != ".zarray":
            continue
        if ".." in name.split("/") or os.path.isabs(name):
            raise ValueError(f"{key} leads out of the folder")
        for chunk, path, offset, length, raw in _chunks(folder, name, document, size):
            at = f"{name}/{chunk}" if name else chunk
            if raw is not None:
                refs[at] = "base64:" + base64.b64encode(raw).decode()
            elif path:
                refs[at] = [_place(above, path), offset, length] if offset or length else [_place(above, path)]
    return {"version": 1, "refs": refs}


def _is_outside(folder: str, refs: dict[str, Any]) -> bool:
    """Returns whether a file lies outside of the folder of the set."""
    above = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(folder))), "")
    files = {value[0] for value in refs.values() if isinstance(value, list)}
    return any(not os.path.realpath(file.removeprefix("file://")).startswith(above) for file in files)


@contextmanager
def as_json(folder: str) -> Iterator[tuple[str, str]]:
    """Makes the set in JSON of a set in Parquet: its file, and the beginning of a warning that does not hold, which is
    that the files lie outside of the folder of the set; "" if they do."""
    name = os.path.splitext(os.path.basename(os.path.abspath(folder)))[0] + ".json"
    try:
        made = references(folder)
    except (ArithmeticError, KeyError, TypeError, ValueError, OSError) as error:  # pyarrow's are among these
        raise _errors.CorruptError(f"{folder} has references that cannot be read: {error}") from None
    with tempfile.TemporaryDirectory(prefix="breccia-") as here:
        file = os.path.join(here, name)
        with open(file, "w", encoding="utf-8") as out:
            json.dump(made, out)
        yield file, "" if _is_outside(folder, made["refs"]) else f"{file}: chunks come from files outside"
