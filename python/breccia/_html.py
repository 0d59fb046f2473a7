"""Shows arrays, groups and repositories as HTML in notebooks. All text from a file is escaped. A page reads only some
elements for pictures, of chunks of at most MOST_DECODED bytes. The module does not import the classes that it shows."""
from __future__ import annotations

import html
import json
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

from ._display import array_rows, bytes_of, tree
from ._errors import Error
from ._native import printable
from ._pictures import chunk_figure, picture

MOST_ROWS = 100      # of a table: attributes, arrays of a group
MOST_PICTURES = 6    # in the page of a group
MOST_TEXT = 400      # characters of an attribute


def _safe(value: object, most: int = MOST_TEXT) -> str:
    said = printable(str(value))
    return html.escape(said if len(said) <= most else said[:most] + "...")


def _table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    """Rows of texts, which are escaped here; the first of each is its name."""
    cell = "<t{0} style='text-align:left'>{1}</t{0}>".format
    lines = ["".join(cell("h", _safe(text)) for text in head)] * bool(head)
    lines += ["".join(cell("d" if i else "h", _safe(text)) for i, text in enumerate(row)) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _folded(title: str, inner: str, is_open: bool = False) -> str:
    """A part that a click opens. Both are HTML."""
    inner = f"<div style='margin-left:1.5em'>{inner}</div>"
    return f"<details{' open' * is_open}><summary>{title}</summary>{inner}</details>"


def _attributes(attrs: Any) -> str:
    found = attrs.asdict()
    rows = [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for name, value in islice(found.items(), MOST_ROWS)]
    rows += [("...", f"{len(found) - MOST_ROWS} more")] * (len(found) > MOST_ROWS)
    return _folded(f"Attributes ({len(found)})", _table(rows)) if found else ""


def _units(array: Any) -> str:
    units = array.attrs.asdict().get("units")
    return units if isinstance(units, str) else ""


def _units_along(array: Any, name: str | None) -> str:
    """The units of the array that has the name of the dimension, in the same group or in one above it."""
    group = array.path
    with suppress(Error):  # not every name is one of a node
        while name and "/" not in name and group:
            group = group.rpartition("/")[0]
            if (path := f"{group}/{name}") in array.session:
                there = array.session[path]
                return _units(there) if hasattr(there, "data_type") else ""
    return ""


def _signature(array: Any) -> str:
    """(time: 40, x: 480) float32, K: as HTML."""
    names = array.dimension_names or [None] * array.ndim
    dims = ", ".join(f"{_safe(n, 60)}: {e}" if n else str(e) for n, e in zip(names, array.shape, strict=True))
    units = _units(array)
    return f"({dims}) {_safe(array.data_type, 80)}" + (f", {_safe(units, 60)}" if units else "")


def _drawn(array: Any) -> str:
    try:
        return picture(array)
    except (Error, ValueError, MemoryError) as error:  # damaged elements hide nothing else
        return f"<pre>{_safe(error)}</pre>"


def _array(array: Any, drawn: bool = True) -> str:
    """Returns the description of an array, without its name."""
    names = array.dimension_names or [None] * array.ndim
    dims = [(str(n or i), str(e), str(c), str(-(-e // c) if c else 0), _units_along(array, n)) for i, (n, e, c) in
            enumerate(zip(names, array.shape, array.chunks, strict=True))]
    rows = array_rows(array)
    rows[3] = ("shape", "×".join(map(str, array.shape)) or "scalar")
    parts = [_table(dims, ("dimension", "length", "chunk", "chunks", "units"))] if dims else []
    parts += [chunk_figure(array), _drawn(array) if drawn else ""]
    flow = "".join(f"<div style='margin-right:2em'>{part}</div>" for part in parts if part)
    return (f"<div style='display:flex;flex-wrap:wrap;align-items:center'>{flow}</div>" +
            _folded("Storage", _table(rows), not dims) + _attributes(array.attrs))


def _group(group: Any) -> str:
    arrays, groups = group.arrays(), group.groups()
    body, drawn = "", 0
    for name, array in islice(arrays.items(), MOST_ROWS):
        drawn += 1
        try:
            body += _folded(f"<b>{_safe(name, 80)}</b> {_signature(array)}", _array(array, drawn <= MOST_PICTURES))
        except Error as error:
            body += f"<div><b>{_safe(name, 80)}</b> {_safe(error)}</div>"
    if len(arrays) > MOST_ROWS:
        body += f"<div>... and {len(arrays) - MOST_ROWS} more</div>"
    page = f"<div>{_safe(group.path)} of {_safe(group.session.rev)}</div>"
    if arrays:
        page += _folded(f"Arrays ({len(arrays)})", body, True)
    if groups:
        page += _folded(f"Groups ({len(groups)})", f"<pre>{html.escape(tree(group))}</pre>", not arrays)
    return page + _attributes(group.attrs)


def _repository(repository: Any) -> str:
    """Branches, tags, sizes, and the last commits of the current branch."""
    info, branches = repository.info(), repository.branches()
    sizes = f"{bytes_of(info.file_bytes)} in the file, {bytes_of(info.logical_bytes)} decoded"
    rows = [("file", repository.path), ("branches", ", ".join(branches)), ("commits", str(info.commits)),
            ("tags", ", ".join(repository.tags()) or "none"), ("chunks", str(info.chunks)), ("bytes", sizes)]
    log = [(c.id[:8], f"{c.time:%Y-%m-%d %H:%M} {c.author}: {c.message.partition(chr(10))[0]}")
           for c in (repository.log(limit=10) if branches.get(repository.head) else [])]
    return _table(rows) + _table(log)


def html_of(thing: Any) -> str:
    """An array, a group or a repository in a notebook."""
    title = f"<b>breccia.{type(thing).__name__}</b>"
    try:
        if hasattr(thing, "branches"):
            inner = _repository(thing)
        elif hasattr(thing, "data_type"):
            title += f" {_safe(thing.path)} of {_safe(thing.session.rev)} {_signature(thing)}"
            inner = _array(thing)
        else:
            inner = _group(thing)
    except Error as error:
        inner = f"<pre>{_safe(f'{thing!r}: {error}')}</pre>"
    return f"<div>{title}{inner}</div>"
