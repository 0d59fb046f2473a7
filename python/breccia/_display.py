"""Prints groups and arrays as text. The module does not import their classes, which import it."""
from __future__ import annotations

import math
from typing import Any

from ._errors import Error
from ._native import printable

MOST_NODES = 200  # the most nodes of a printed tree


def bytes_of(n: float) -> str:
    """1536 -> "1.5 KiB"."""
    power = min(4, max(0, int(n).bit_length() - 1) // 10)
    return f"{n / 1024**power:.{power and 1}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def tree(group: Any) -> str:
    """Lists the groups and arrays under a group, one per line."""
    try:
        nodes, top = list(group.walk(limit=MOST_NODES + 2)), group.path.rstrip("/").count("/") + 1
    except Error as error:  # a damaged or missing node is printed too
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


def array_rows(array: Any) -> list[tuple[str, str]]:
    """Lists the facts about an array."""
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


def array_info(array: Any) -> str:
    return "\n".join(f"{name:14} {printable(value)}" for name, value in array_rows(array))
