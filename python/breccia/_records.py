"""What calls give back: small records that cannot be changed. Times are in UTC, ids lower-case hex digits."""
from __future__ import annotations

import datetime
import json
import math
from typing import Any, NamedTuple

from ._breccia import ffi, lib
from ._native import string

UTC = datetime.timezone.utc
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
MERGED = {1: "up to date", 2: "fast-forward", 3: "merged", 4: "conflict"}
PICKED = {1: "nothing", 2: "fast-forward", 3: "committed", 4: "uncommitted", 5: "conflict"}
_SIDES = {0: None, lib.BRC_MERGE_OURS: "ours", lib.BRC_MERGE_THEIRS: "theirs", 1: "by hand"}
_WHAT = {1: "added", 2: "removed", 3: "moved", 4: "changed"}
_KIND = {1: "group", 2: "array"}
_KEPT = {"tip": 1, "tag": 2, "in use": 4, "last": 8, "daily": 16, "weekly": 32, "monthly": 64}
_STATES = "none", "waiting", "next", "found", "open"


def time_of(microseconds: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=microseconds)


def microseconds(time: datetime.datetime | None) -> int:
    """0 for None: now. A time without a zone is local."""
    return 0 if time is None else (time.astimezone(UTC) - _EPOCH) // datetime.timedelta(microseconds=1)


def oid(value: Any) -> str:
    """An id's hex digits; "" for none."""
    if not any(ffi.buffer(ffi.addressof(value))):
        return ""
    out = ffi.new("char[65]")
    return string(lib.brc_oid_format(out, ffi.addressof(value)))


def _words(names: Any, n: int) -> tuple[str, ...]:
    return tuple(string(names[i]) for i in range(n))


class Commit(NamedTuple):
    id: str
    message: str
    author: str
    time: datetime.datetime
    parents: tuple[str, ...]
    metadata: dict[str, Any]
    expired: bool = False  # its parents have expired: `parents` are the nearest ancestors that are kept

    @classmethod
    def of(cls, c: Any) -> Commit:
        return cls(oid(c.id), string(c.message), string(c.author), time_of(c.time_us),
                   tuple(oid(c.parents[i]) for i in range(c.nparents)),
                   json.loads(string(c.meta_json) or "{}"), bool(c.flags & lib.BRC_PAST_EXPIRED))

    def __repr__(self) -> str:
        first = self.message.partition("\n")[0]
        return f"<Commit {self.id[:8]} {self.time:%Y-%m-%d %H:%M:%S} {self.author}: {first}>"


class Ref(NamedTuple):
    """A branch or tag. `id` is "" for a branch without a commit."""

    name: str
    id: str
    is_tag: bool
    current: bool
    message: str

    @classmethod
    def of(cls, r: Any) -> Ref:
        return cls(string(r.name), oid(r.id), bool(r.flags & lib.BRC_REF_TAG),
                   bool(r.flags & lib.BRC_REF_CURRENT), string(r.message))


class Elements(NamedTuple):
    """How elements differ. `first` and `last` are corners of the box around those that changed; `why` says
    why they could not be compared."""

    changed: int
    added: int
    removed: int
    max_abs: float
    first: tuple[int, ...]
    last: tuple[int, ...]
    why: str | None


class Change(NamedTuple):
    """A node that differs between two versions."""

    path: str
    what: str  # "added", "removed", "moved", "changed"
    kind: str  # "group", "array"
    moved_from: str | None
    metadata: tuple[str, ...]  # JSON pointers into zarr.json
    storage_only: bool         # codecs or backend: no value differs
    chunks_added: int
    chunks_removed: int
    chunks_changed: int
    elements: Elements | None

    @classmethod
    def of(cls, c: Any) -> Change:
        elements = None
        if c.flags & lib.BRC_CHANGE_ELEMENTS or c.elements_why:
            corner = c.ndim if c.elements_changed else 0
            elements = Elements(c.elements_changed, c.elements_added, c.elements_removed, c.max_abs,
                                tuple(c.first[i] for i in range(corner)),
                                tuple(c.last[i] for i in range(corner)), string(c.elements_why) or None)
        return cls(string(c.path), _WHAT[c.what], _KIND[c.kind], string(getattr(c, "from")) or None,
                   _words(c.metadata, c.nmetadata), bool(c.flags & lib.BRC_CHANGE_STORAGE), c.chunks_added,
                   c.chunks_removed, c.chunks_changed, elements)

    def __repr__(self) -> str:
        parts = [f"{self.what} {self.kind} {self.path}"]
        if self.moved_from:
            parts += [f"from {self.moved_from}"]
        parts += [f"{n} chunks {w}" for w,
                  n in (("added", self.chunks_added), ("removed", self.chunks_removed),
                                                 ("changed", self.chunks_changed)) if n]
        parts += [", ".join(self.metadata)] if self.metadata else []
        if self.elements is not None and not self.elements.why:
            e = self.elements
            size = "" if math.isnan(e.max_abs) or not e.changed else f" by up to {e.max_abs:g}"
            parts += [f"{e.changed} elements changed{size}"]
        return f"<Change {'; '.join(parts)}>"


class Conflict(NamedTuple):
    """Something that a merge cannot decide. `settled`: None while it is open, "ours", "theirs", "by hand".
    `child`: of Session.join(), what it was given."""

    path: str
    kind: str
    key: str | None
    settled: str | None
    child: Any = None

    @classmethod
    def of(cls, c: Any) -> Conflict:
        return cls(string(c.path), string(c.kind), string(c.key) or None, _SIDES.get(c.settled, "by hand"))

    def __repr__(self) -> str:
        settled = self.settled and f"settled: {self.settled}"
        return f"<Conflict {' '.join(w for w in (self.kind, self.path, self.key, settled) if w)}>"


class MergeResult(NamedTuple):
    """`result`: "up to date", "fast-forward", "merged" or "conflict"."""

    result: str
    commit: str
    conflicts: tuple[Conflict, ...]
    draft: int


class PickResult(NamedTuple):
    """`result`: "nothing", "fast-forward", "committed", "uncommitted" or "conflict"."""

    result: str
    commit: str
    at: str
    made: int
    skipped: int
    left: int
    conflicts: tuple[Conflict, ...]
    draft: int


class OpenState(NamedTuple):
    """A merge, cherry-pick, revert or rebase that is neither done nor dropped."""

    op: str
    rev: str
    other: str
    at: str
    draft: int
    conflicts: tuple[Conflict, ...]
    made: int
    skipped: int
    left: int

    @property
    def open(self) -> tuple[Conflict, ...]:
        return tuple(c for c in self.conflicts if c.settled is None)


class Draft(NamedTuple):
    """Uncommitted changes. `owner`: "alive", "dead", "unknown", or None for what a branch's sessions
    share. `parent`: of a child of Session.fork() the draft whose it is, else 0."""

    id: int
    branch: str
    owner: str | None
    pid: int
    time: datetime.datetime
    nodes: int
    stale: bool
    op: str | None
    rewriting: str | None
    parent: int = 0

    @classmethod
    def of(cls, d: Any) -> Draft:
        owner = ("unknown", "alive", "dead")[d.owner] if d.flags & lib.BRC_DRAFT_OWNED else None
        return cls(d.id, string(d.branch), owner, d.owner_pid, time_of(d.time_us), d.nodes,
                   bool(d.flags & lib.BRC_DRAFT_STALE), string(d.op) or None, string(d.array) or None,
                   d.parent)


class Operation(NamedTuple):
    """One change of a branch or tag. Those of one call have one `operation`."""

    id: int
    operation: int
    time: datetime.datetime
    what: str
    name: str
    is_tag: bool
    before: str
    after: str
    undoes: int
    restores: int
    draft: int

    @classmethod
    def of(cls, o: Any) -> Operation:
        return cls(o.id, o.operation, time_of(o.time_us), string(o.what), string(o.name),
                   bool(o.flags & lib.BRC_OP_TAG), oid(getattr(o, "from")), oid(o.to), o.undoes, o.restores,
                   o.draft)


class Bisection(NamedTuple):
    """`state`: "none", "waiting", "next" (look at `at`), "found" (`at` brought the change) or "open" (only
    versions that were skipped are left)."""

    state: str
    at: str
    left: int
    good: int
    skipped: int
    has_bad: bool

    @classmethod
    def of(cls, b: Any) -> Bisection:
        return cls(_STATES[b.state], oid(b.at), b.left, b.good, b.skipped,
                   bool(b.flags & lib.BRC_BISECT_HAS_BAD))


class Blamed(NamedTuple):
    """A chunk by its place in the grid, or `count` elements from `first` on, and the commit that changed
    it last."""

    first: tuple[int, ...]
    count: int  # type: ignore[assignment]
    commit: str
    time: datetime.datetime
    author: str
    before: bool  # or a commit before it that has expired

    @classmethod
    def of(cls, b: Any) -> Blamed:
        return cls(tuple(b.first[i] for i in range(b.ndim)), b.count, oid(b.commit), time_of(b.time_us),
                   string(b.author), bool(b.flags & lib.BRC_BLAME_BEFORE))


class Expired(NamedTuple):
    """A commit that was looked at: `kept` says why it stays; empty: it expires."""

    id: str
    time: datetime.datetime
    kept: tuple[str, ...]

    @classmethod
    def of(cls, e: Any) -> Expired:
        return cls(oid(e.id), time_of(e.time_us), tuple(n for n, bit in _KEPT.items() if e.reasons & bit))


class ExpireReport(NamedTuple):
    kept: int
    expired: int
    bytes: int
    commits: tuple[Expired, ...]


class GcReport(NamedTuple):
    objects_removed: int
    bytes_freed: int
    file_bytes: int


class Held(NamedTuple):
    """What an array (`path`) or a commit (`id`) holds, and what of it nothing else does, in bytes."""

    path: str | None
    id: str
    bytes: int
    alone: int

    @classmethod
    def of(cls, i: Any) -> Held:
        return cls(string(i.path) or None, oid(i.id), i.bytes, i.alone)


class Usage(NamedTuple):
    """What the file's bytes are for."""

    versions: int
    uncommitted: int
    log: int
    garbage: int
    stored: int
    items: tuple[Held, ...]


class Damage(NamedTuple):
    id: str
    kind: str
    missing: bool
    used_by: tuple[str, ...]
    message: str

    @classmethod
    def of(cls, d: Any) -> Damage:
        return cls(oid(d.id), string(d.kind), bool(d.flags & lib.BRC_DAMAGE_MISSING),
                   _words(d.used_by, d.nused_by), string(d.message))


class FsckReport(NamedTuple):
    """`damage` is empty where the file is whole."""

    checked: int
    damage: tuple[Damage, ...]


class Info(NamedTuple):
    """Of the whole file; sizes in bytes."""

    commits: int
    objects: int
    chunks: int
    stored_bytes: int
    logical_bytes: int
    file_bytes: int
    chunk_refs: int
    log_bytes: int


class Shown(NamedTuple):
    """A commit and what it changed, from its first parent."""

    commit: Commit
    changes: tuple[Change, ...]


class Status(NamedTuple):
    """Of uncommitted changes."""

    branch: str
    clean: bool
    changes: tuple[Change, ...]
    state: OpenState | None = None
