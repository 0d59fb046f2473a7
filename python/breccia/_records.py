"""What calls give back: small records that cannot be changed, as the build makes them of C's structures, and
how they print. Times are in UTC, ids lower-case hex digits. Imported when the first record is made."""
from __future__ import annotations

import math
from typing import Any, Self

from ._breccia import lib
from ._native import printable
from ._made import records as made
from ._made.records import *
from ._made.records import KINDS as KINDS, oid as oid


class Commit(made.BaseCommit):
    def __repr__(self) -> str:
        first = self.message.partition("\n")[0]
        return printable(f"<Commit {self.id[:8]} {self.time:%Y-%m-%d %H:%M:%S} {self.author}: {first}>")


class Change(made.BaseChange):
    @classmethod
    def of(cls, c: Any) -> Self:
        if not (c.flags & lib.BRC_CHANGE_ELEMENTS or c.elements_why):
            return super().of(c)
        how = Elements.of(c)
        return super().of(c)._replace(elements=how if how.changed else how._replace(first=(), last=()))

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
        return printable(f"<Change {'; '.join(parts)}>")


class Conflict(made.BaseConflict):
    @classmethod
    def of(cls, c: Any) -> Self:
        sides = {0: None, lib.BRC_MERGE_OURS: "ours", lib.BRC_MERGE_THEIRS: "theirs"}
        return super().of(c)._replace(settled=sides.get(c.settled, "by hand"), child=c.draft or None)

    def __repr__(self) -> str:
        settled = self.settled and f"settled: {self.settled}"
        return printable(f"<Conflict {' '.join(w for w in (self.kind, self.path, self.key, settled) if w)}>")


class OpenState(made.BaseOpenState):
    @property
    def open(self) -> tuple[made.BaseConflict, ...]:
        """The conflicts that are not settled."""
        return tuple(c for c in self.conflicts if c.settled is None)
