"""Results of calls: small records that cannot be changed, which the build makes of C's structures, and their printed
forms. Times are in UTC, ids in lower-case hex digits. The module is imported when the first record is made."""
from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any, Self

import numpy as np

from . import _dtypes
from ._breccia import ffi, lib
from ._errors import UnsupportedError
from ._native import printable, string
from ._made import records as made
from ._made.records import *
from ._made.records import KINDS as KINDS, oid as oid


class Commit(made.BaseCommit):
    def __repr__(self) -> str:
        first = self.message.partition("\n")[0]
        return printable(f"<Commit {self.id[:8]} {self.time:%Y-%m-%d %H:%M:%S} {self.author}: {first}>")


def differing(c: Any) -> tuple[Differing, ...]:
    """The elements that a structure lists."""
    if not c.nvalues:
        return ()
    info = lib.brc_array_describe(c.array)
    name, item, dtype = string(info.dtype), info.item_size, None
    with suppress(UnsupportedError):
        dtype = _dtypes.to_numpy(name)

    def element(at: Any) -> Any:
        if at == ffi.NULL:
            return None
        raw = bytes(ffi.buffer(at, item or 4 + int.from_bytes(ffi.buffer(at, 4), "little")))
        if dtype is None or item not in (0, dtype.itemsize):
            return raw
        return (np.frombuffer(raw, dtype) if item else _dtypes.unpack(raw, 1, name))[0]

    listed = [c.values[i] for i in range(c.nvalues)]
    return tuple(Differing(tuple(v.index[0:info.ndim]) if info.ndim else (), element(v.before), element(v.now),
                           element(v.theirs)) for v in listed)


def spread(c: Any) -> dict[str, Any]:
    """Where the elements of a change are: boxes, and chunks."""
    n = c.ndim
    boxes = [tuple(c.boxes[2 * n * i:2 * n * (i + 1)]) for i in range(c.nboxes)] if n else [()] * c.nboxes
    chunks = [tuple(c.chunks[(n + 1) * i:(n + 1) * (i + 1)]) for i in range(c.nchunks)]
    return {"boxes": tuple((box[:n], box[n:]) for box in boxes),
            "chunks": tuple((chunk[:n], chunk[n]) for chunk in chunks)}


class Change(made.BaseChange):
    @classmethod
    def of(cls, c: Any) -> Self:
        change = super().of(c)._replace(values=differing(c), more=bool(c.flags & lib.BRC_CHANGE_MORE))
        if not (c.flags & lib.BRC_CHANGE_ELEMENTS or c.elements_why):
            return change
        how = Elements.of(c)._replace(**spread(c))
        return change._replace(elements=how if how.changed else how._replace(first=(), last=()))

    def __repr__(self) -> str:
        parts = [f"{self.what} {self.kind} {self.path}"] + [f"from {self.moved_from}"] * bool(self.moved_from)
        chunks = {"added": self.chunks_added, "removed": self.chunks_removed, "changed": self.chunks_changed}
        parts += [f"{n} chunk{'s' * (n != 1)} {what}" for what, n in chunks.items() if n]
        parts += [", ".join(self.metadata)] if self.metadata else []
        if self.elements is not None and not self.elements.why:
            counts = [(getattr(self.elements, what), what) for what in ("added", "removed", "changed")]
            said = ", ".join(f"{n} element{'s' * (n != 1)} {what}" for n, what in counts if n) or "no element changed"
            most = self.elements.max_abs if counts[2][0] else math.nan
            parts += [said + (f" by up to {most:g}" if most == most else "")]
        values = self.values or ()
        parts += [f"{list(v.index)} {v.before} → {v.now}" for v in values[:3]]
        parts += ["..."] * bool(self.more or len(values) > 3)
        return printable(f"<Change {'; '.join(parts)}>")


class Conflict(made.BaseConflict):
    @classmethod
    def of(cls, c: Any) -> Self:
        sides = {0: None, lib.BRC_MERGE_OURS: "ours", lib.BRC_MERGE_THEIRS: "theirs"}
        return super().of(c)._replace(settled=sides.get(c.settled, "by hand"), child=c.draft or None,
                                      elements=c.elements, values=differing(c))

    def __repr__(self) -> str:
        settled = self.settled and f"settled: {self.settled}"
        words = " ".join(w for w in (self.kind, self.path, self.key, settled) if w)
        shown = [f"{list(v.index)} base {v.before}, ours {v.now}, theirs {v.theirs}" for v in (self.values or ())[:3]]
        shown += ["..."] * bool(shown and self.elements > len(shown))
        return printable(f"<Conflict {'; '.join([words, *shown])}>")


class Stats(made.BaseStats):
    @classmethod
    def of_array(cls, c: Any, bins: list[tuple[str, str, int]], dtype: Any) -> Self:
        """Makes the record of a structure, the bins listed beside it, and NumPy's type of the elements."""
        of = {lib.BRC_STATS_VALUES: "values", lib.BRC_STATS_MAGNITUDES: "magnitudes", lib.BRC_STATS_LENGTHS: "lengths"}
        kind: Any = dtype if c.of == lib.BRC_STATS_VALUES else None
        is_time = kind is not None and kind.kind in "mM"

        def number(text: str) -> Any:
            if not text:
                return None
            found = json.loads(text)
            if is_time:
                return np.array(found, "i8").view(kind)[()]
            found = float(found) if isinstance(found, str) else found
            return found if kind is None else kind.type(found)

        ranges = [b for b in bins if b[1]]
        edges: Any = np.array([json.loads(b[0]) for b in ranges] + [json.loads(b[1]) for b in ranges[-1:]])
        if is_time:
            edges = edges.astype("i8").view(kind)
        elif edges.dtype.kind not in "iu":
            edges = edges.astype("f8")
        return cls(of[c.of], c.count, c.nan, c.infinite, c.fill, number(string(c.min)), number(string(c.max)),
                   number(string(c.mean_text)) if is_time else c.mean, c.std,
                   (np.array([b[2] for b in ranges], "u8"), edges), {number(b[0]): b[2] for b in bins if not b[1]})

    def __repr__(self) -> str:
        others = {"NaN": self.nan, "infinite": self.infinite, "fill value": self.fill}
        said = "".join(f", {n} {what}" for what, n in others.items() if n)
        mean = f"{self.mean:g}" if isinstance(self.mean, float) else self.mean
        ends = f": {self.min!s} to {self.max!s}, mean {mean}, std {self.std:g}" if self.min is not None else ""
        return printable(f"<Stats of {self.count} {self.of}{said}{ends}>")


class OpenState(made.BaseOpenState):
    @property
    def open(self) -> tuple[made.BaseConflict, ...]:
        """The conflicts that are not settled yet."""
        return tuple(c for c in self.conflicts if c.settled is None)
