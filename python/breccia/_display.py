"""How things print: trees and arrays in a terminal, and as HTML in a notebook, where whatever comes from a
file is escaped."""
from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .array import Array
    from .repository import Repository
    from .session import Group

MOST_NODES = 200        # of a tree that is printed
MOST_BYTES = 1 << 24    # of an array that a picture is made of
THUMBNAIL = 160         # its longer side


def bytes_of(n: float) -> str:
    """1536 -> "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024 or unit == "TiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return ""


def printable(text: str) -> str:
    """A name for a terminal: what could steer it is shown as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _lines(group: Group) -> tuple[list[tuple[int, bool, str, Any]], bool]:
    """(depth, is it the last, name, array or group) of each node, and whether there are more."""
    rows: list[tuple[int, bool, str, Any]] = []

    def visit(node: Any, depth: int) -> bool:
        children: list[Any] = [*node.groups().values(), *node.arrays().values()]
        for i, child in enumerate(sorted(children, key=lambda c: c.path)):
            if len(rows) == MOST_NODES:
                return True
            rows.append((depth, i == len(children) - 1, child.name, child))
            if hasattr(child, "create_array") and visit(child, depth + 1):
                return True
        return False

    return rows, visit(group, 0)


def tree(group: Group) -> str:
    """The groups and arrays under a group, in lines."""
    rows, more = _lines(group)
    bars: list[str] = []
    lines = [f"{printable(group.path)} ({group.session.rev})"]
    for depth, last, name, node in rows:
        del bars[depth:]
        text = printable(name)
        if not hasattr(node, "create_array"):
            text += f"  {'×'.join(map(str, node.shape)) or 'scalar'} {printable(node.data_type)}"
        lines.append("".join(bars) + ("└── " if last else "├── ") + text)
        bars.append("    " if last else "│   ")
    return "\n".join(lines + ["..."] * more)


def array_rows(array: Array) -> list[tuple[str, str]]:
    """What there is to say of an array."""
    stored = array.nbytes_stored
    rows = [("path", array.path), ("version", array.session.rev), ("data type", array.data_type),
            ("shape", str(array.shape)), ("chunks", str(array.chunks)),
            ("shards", str(array.shards or "none")), ("codecs", ", ".join(c["name"] for c in array.codecs)),
            ("backend", str(array.backend.get("name"))),
            ("chunks stored",
             f"{array.nchunks_initialized} of {int(np.prod(array.cdata_shape, dtype=object))}"),
            ("bytes stored", bytes_of(stored))]
    if array._form.item:
        size = array.size * array._form.item
        rows.append(("bytes", bytes_of(size) + (f", {size / stored:.1f} times as many" if stored else "")))
    if array.dimension_names:
        rows.append(("dimensions", ", ".join(n or "-" for n in array.dimension_names)))
    return rows


def array_info(array: Array) -> str:
    return "\n".join(f"{name:14} {printable(value)}" for name, value in array_rows(array))


def _table(rows: list[tuple[str, str]]) -> str:
    left = "style='text-align:left'"
    cells = "".join(f"<tr><th {left}>{html.escape(n)}</th><td {left}>{html.escape(v)}</td></tr>"
                    for n, v in rows)
    return f"<table>{cells}</table>"


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """A grey picture, (height, width) of uint8, as a PNG file."""
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = pixels.shape
    raw = np.zeros((height, width + 1), np.uint8)  # before each line the filter: none
    raw[:, 1:] = pixels
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + part(b"IDAT", zlib.compress(raw.tobytes(), 6)) + part(b"IEND", b""))


def picture(array: Array) -> str:
    """A thumbnail of an array with two dimensions (of more, its first plane), or a line of one with one. ""
    where there is nothing to draw."""
    shape, dtype = array.shape, array._form.dtype
    if dtype is None or dtype.kind not in "biuf" or not shape or not all(shape):
        return ""
    if array.size * dtype.itemsize > MOST_BYTES:
        return ""
    data = np.asarray(array[(0,) * (len(shape) - 2)] if len(shape) > 2 else array[...], "f8")
    data = data[tuple(slice(None, None, -(-n // (THUMBNAIL * 2))) for n in data.shape)]
    finite = np.isfinite(data)
    if not finite.any():
        return ""
    low, high = float(data[finite].min()), float(data[finite].max())
    scaled = np.where(finite, data / 2 - low / 2, 0) / ((high / 2 - low / 2) or 1)
    if data.ndim == 2:
        height, width = data.shape
        zoom = max(1, THUMBNAIL // max(height, width))
        image = base64.b64encode(png(np.rint(scaled * 255).astype(np.uint8))).decode()
        return (f"<img src='data:image/png;base64,{image}' width='{width * zoom}' height='{height * zoom}' "
                f"style='image-rendering:pixelated' alt='{low:g} to {high:g}'>")
    points = " ".join(f"{i * 300 / max(1, len(data) - 1):.1f},{98 - 96 * y:.1f}"
                      for i, (y, ok) in enumerate(zip(scaled, finite)) if ok)
    return (f"<svg width='300' height='100' role='img'><title>{low:g} to {high:g}</title><polyline "
            f"fill='none' stroke='currentColor' points='{points}'/></svg>")


def array_html(array: Array) -> str:
    return f"<div><b>breccia.Array</b>{_table(array_rows(array))}{picture(array)}</div>"


def group_html(group: Group) -> str:
    return f"<div><b>breccia.{type(group).__name__}</b><pre>{html.escape(tree(group))}</pre></div>"


def repository_html(repository: Repository) -> str:
    """Branches, tags, sizes, and the last commits of the current branch."""
    info = repository.info()
    rows = [("file", repository.path), ("branches", ", ".join(repository.branches())),
            ("tags", ", ".join(repository.tags()) or "none"), ("commits", str(info.commits)),
            ("chunks", str(info.chunks)), ("bytes", f"{bytes_of(info.file_bytes)} in the file, "
                                                    f"{bytes_of(info.logical_bytes)} decoded")]
    history = repository.log(limit=10) if repository.branches().get(repository.head) else []
    lines = "".join(f"<tr><td><code>{c.id[:8]}</code></td><td>{c.time:%Y-%m-%d %H:%M}</td>"
                    f"<td>{html.escape(c.author)}</td>"
                    f"<td style='text-align:left'>{html.escape(c.message.partition(chr(10))[0])}</td></tr>"
                    for c in history)
    return f"<div><b>breccia.Repository</b>{_table(rows)}<table>{lines}</table></div>"
