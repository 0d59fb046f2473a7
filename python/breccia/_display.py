"""How things print: trees and arrays in a terminal, and as HTML in a notebook, where whatever comes from a
file is escaped."""
from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import Error
from ._native import printable

if TYPE_CHECKING:
    from .array import Array
    from .repository import Repository
    from .session import Group

MOST_NODES = 200        # of a tree that is printed
MOST_BYTES = 1 << 24    # of an array that a picture is made of
THUMBNAIL = 160         # its longer side


def bytes_of(n: float) -> str:
    """1536 -> "1.5 KiB"."""
    power = min(4, max(0, int(n).bit_length() - 1) // 10)
    return f"{n / 1024**power:.{power and 1}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def tree(group: Group) -> str:
    """The groups and arrays under a group, in lines."""
    try:
        nodes, top = list(group.walk(limit=MOST_NODES + 2)), group.path.rstrip("/").count("/") + 1
    except Error as error:  # what is damaged or gone prints all the same
        return printable(f"{group.path} ({group.session.rev}): {error}")
    lines = ["..."] * (len(nodes) > MOST_NODES)
    open_at: set[int] = set()  # depths at which another node follows further down
    for node in reversed(nodes[:MOST_NODES]):
        depth, what = node.path.count("/") - top, ""
        if not hasattr(node, "create_array"):
            what = f"  {'×'.join(map(str, node.shape)) or 'scalar'} {node.data_type}"
        bars = "".join("│   " if d in open_at else "    " for d in range(depth))
        bars += "├── " if depth in open_at else "└── "
        lines.append(bars + printable(node.name + what))
        open_at = {d for d in open_at if d < depth} | {depth}
    lines.append(f"{printable(group.path)} ({group.session.rev})")
    return "\n".join(reversed(lines))


def array_rows(array: Array) -> list[tuple[str, str]]:
    """What there is to say of an array."""
    stored, chunks = array.nbytes_stored, math.prod(array.cdata_shape)
    rows = [("path", array.path), ("version", array.session.rev), ("data type", array.data_type),
            ("shape", str(array.shape)), ("chunks", str(array.chunks)), ("shards", str(array.shards or "none")),
            ("codecs", ", ".join(c["name"] for c in array.codecs)), ("backend", array.backend["name"]),
            ("chunks stored", f"{array.nchunks_initialized} of {chunks}"), ("bytes stored", bytes_of(stored))]
    if array._form.item:
        size = array.size * array._form.item
        rows.append(("bytes", bytes_of(size) + (f", {size / stored:.1f} times as many" if stored else "")))
    if array.dimension_names:
        rows.append(("dimensions", ", ".join(n or "-" for n in array.dimension_names)))
    return rows


def array_info(array: Array) -> str:
    return "\n".join(f"{name:14} {printable(value)}" for name, value in array_rows(array))


def _table(rows: list[tuple[str, str]]) -> str:
    cell = "<t{0} style='text-align:left'>{1}</t{0}>".format
    return "<table>" + "".join(f"<tr>{cell('h', html.escape(name))}{cell('d', html.escape(value))}</tr>"
                               for name, value in rows) + "</table>"


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """A grey picture, (height, width) of uint8, as a PNG file."""
    raw = np.pad(pixels, ((0, 0), (1, 0))).tobytes()  # before each line the filter: none
    parts = [(b"IHDR", struct.pack(">IIBBBBB", *pixels.shape[::-1], 8, 0, 0, 0, 0)),
             (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)


def picture(array: Array) -> str:
    """A thumbnail of an array with two dimensions (of more, its first plane), or a line of one with one. ""
    where there is nothing to draw."""
    shape, dtype = array.shape, array._form.dtype
    if dtype is None or dtype.kind not in "biuf" or not shape or not 0 < array.nbytes <= MOST_BYTES:
        return ""
    steps = [slice(None, None, -(-n // (THUMBNAIL * 2))) for n in shape[-2:]]
    data = np.asarray(array[(0,) * (len(shape) - 2) + (...,)], "f8")[tuple(steps)]
    finite = np.isfinite(data)
    if not finite.any():
        return ""
    low, high = float(data[finite].min()), float(data[finite].max())
    scaled = np.where(finite, data / 2 - low / 2, 0) / ((high / 2 - low / 2) or 1)
    if data.ndim == 2:
        height, width = np.multiply(data.shape, max(1, THUMBNAIL // max(data.shape)))
        image = base64.b64encode(png(np.rint(scaled * 255).astype(np.uint8))).decode()
        return (f"<img src='data:image/png;base64,{image}' width='{width}' height='{height}' "
                f"style='image-rendering:pixelated' alt='{low:g} to {high:g}'>")
    points = " ".join(f"{i * 300 / max(1, len(data) - 1):.1f},{98 - 96 * scaled[i]:.1f}"
                      for i in np.flatnonzero(finite))
    return (f"<svg width='300' height='100' role='img'><title>{low:g} to {high:g}</title><polyline "
            f"fill='none' stroke='currentColor' points='{points}'/></svg>")


def html_of(thing: Any) -> str:
    """An array, a group or a repository in a notebook."""
    try:
        inner = repository_tables(thing) if hasattr(thing, "branches") else _table(array_rows(thing)) + picture(
            thing) if hasattr(thing, "data_type") else f"<pre>{html.escape(tree(thing))}</pre>"
    except Error as error:
        inner = f"<pre>{html.escape(f'{thing!r}: {error}')}</pre>"
    return f"<div><b>breccia.{type(thing).__name__}</b>{inner}</div>"


def repository_tables(repository: Repository) -> str:
    """Branches, tags, sizes, and the last commits of the current branch."""
    info, branches = repository.info(), repository.branches()
    sizes = f"{bytes_of(info.file_bytes)} in the file, {bytes_of(info.logical_bytes)} decoded"
    rows = [("file", repository.path), ("branches", ", ".join(branches)), ("commits", str(info.commits)),
            ("tags", ", ".join(repository.tags()) or "none"), ("chunks", str(info.chunks)), ("bytes", sizes)]
    log = [(c.id[:8], f"{c.time:%Y-%m-%d %H:%M} {c.author}: {c.message.partition(chr(10))[0]}")
           for c in (repository.log(limit=10) if branches.get(repository.head) else [])]
    return _table(rows) + _table(log)
