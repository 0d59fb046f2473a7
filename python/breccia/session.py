"""Sessions: the hierarchy at one version, to read or to change."""
from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dtypes, _errors
from . import _records as records
from ._attributes import Attributes, to_json
from ._breccia import ffi, lib
from ._native import Native, Private, Sessions, sized, string, text, token_of
from .array import Array

if TYPE_CHECKING:
    from .repository import Repository
    from .zarr import Store


class Group(MutableMapping[str, Any]):
    """A group: a mapping of paths below it to arrays and groups. Iteration lists its children's names."""

    def __init__(self, session: Session | None, path: str) -> None:
        self._of, self.path = session, path

    @property
    def session(self) -> Session:
        """The session that it is of; of a session itself."""
        assert self._of is not None
        return self._of

    def _at(self, path: str) -> str:
        return self.path.rstrip("/") + "/" + path.strip("/") if path.strip("/") else self.path

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def attrs(self) -> Attributes:
        """The attributes, as a mapping that can be changed."""
        return Attributes(self.session, self.path)

    def _kind(self, path: str) -> int:
        out = ffi.new("int *")
        self.session._sessions.call_out(lib.brc_node_kind, out, text(path))
        return int(out[0])

    def __getitem__(self, path: str) -> Any:
        at = self._at(path)
        kind = self._kind(at)
        if kind == lib.BRC_ARRAY:
            return Array(self.session, at)
        if kind == lib.BRC_GROUP:
            return Group(self.session, at)
        raise _errors.NotFoundError(f"there is no node {at} in {self.session.rev}")

    def __setitem__(self, path: str, value: Any) -> None:
        """Writes an array; one that is not there, or of another shape or type, is made anew."""
        at = self._at(path)
        if isinstance(value, Group):
            raise TypeError("a group is copied by copy()")
        data = value[...] if isinstance(value, Array) else np.asarray(value)
        if data.dtype.kind == "U" and not isinstance(value, np.ndarray):
            data = data.astype(_dtypes.STRING)
        if self._kind(at) == lib.BRC_ARRAY:
            there = Array(self.session, at)
            if there.shape == data.shape and there.data_type == _same_type(data, there.data_type):
                there[...] = data
                return
            with self.session.transaction():
                self.create_array(path, data=data, attributes=there.attrs.asdict(), overwrite=True)
            return
        self.create_array(path, data=data, overwrite=True)

    def __delitem__(self, path: str) -> None:
        self.session._sessions.call(lib.brc_node_remove, text(self._at(path)))
        self.session._sessions.era += 1

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._kind(self._at(path)) != 0

    def _list(self, flags: int) -> list[tuple[str, bool]]:
        with self.session._sessions.at_work() as native:
            out = ffi.new("brc_iter **")
            native.call_out(lib.brc_list, out, text(self.path), flags)
            return native.handle.items(out, lib.brc_list_next, "brc_node",
                                       lambda n: (string(n.path), n.kind == lib.BRC_ARRAY))

    def __iter__(self) -> Iterator[str]:
        return iter([path.rpartition("/")[2] for path, _ in self._list(0)])

    def __len__(self) -> int:
        return len(self._list(0))

    def walk(self) -> Iterator[Any]:
        """All groups and arrays under this one, by path."""
        for path, is_array in self._list(lib.BRC_LIST_RECURSE):
            if path != self.path:
                yield Array(self.session, path) if is_array else Group(self.session, path)

    def arrays(self) -> dict[str, Array]:
        """The arrays in this group by name."""
        return {p.rpartition("/")[2]: Array(self.session, p) for p, is_array in self._list(0) if is_array}

    def groups(self) -> dict[str, Group]:
        return {p.rpartition("/")[2]: Group(self.session, p) for p, is_array in self._list(0) if not is_array}

    def create_group(self, path: str, *, attributes: dict[str, Any] | None = None,
                     overwrite: bool = False) -> Group:
        """Makes a group, and the groups above it that are missing. ExistsError if something is there."""
        at = self._at(path)
        with self.session.transaction():
            if overwrite and self._kind(at):
                del self[path]
            self.session._sessions.call(lib.brc_group_create, text(at),
                                        text(to_json(attributes)) if attributes else ffi.NULL)
        return Group(self.session, at)

    def create_array(self, path: str, *, shape: int | Sequence[int] | None = None, dtype: Any = None,
                     chunks: Any = "auto", shards: Sequence[int] | None = None, fill_value: Any = None,
                     compressors: Any = "auto", codecs: Any = None,
                     dimension_names: Sequence[str | None] | None = None,
                     attributes: dict[str, Any] | None = None, chunk_key_encoding: str | None = None,
                     data: Any = None, backend: Any = None, overwrite: bool = False) -> Array:
        """Makes an array, and the groups above it that are missing.

        `shape` and `dtype`, or `data`, which is written. `chunks`: "auto" (about 1 MiB), a length for all
        axes, a tuple in which -1 is the whole axis, or False for one chunk. `shards`: the shape of what other
        tools see as one value, a multiple of the chunks. `compressors`: "auto", None, "zstd", {"name": ...,
        "configuration": ...}, or a list; `codecs`: the whole list of zarr.json in place of that. `backend`:
        where chunks go. ExistsError if something is there, unless `overwrite`; ValueError for what Zarr does
        not allow.
        """
        at = self._at(path)
        if data is not None:
            data = data[...] if isinstance(data, Array) else np.asarray(data)
            shape = data.shape if shape is None else shape
            dtype = _dtypes.type_of_data(data) if dtype is None else dtype
        if shape is None or dtype is None:
            raise ValueError("an array needs a shape and a dtype, or data")
        extents = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
        name = _dtypes.to_zarr(dtype)
        keep: list[Any] = [text(name), text(at)]

        def word(value: str | None) -> Any:
            keep.append(text(value))
            return keep[-1]

        def numbers(value: Any) -> Any:
            keep.append(ffi.new("uint64_t[]", list(value) or [0]))
            return keep[-1]

        spec = sized("brc_array_spec", ndim=len(extents), shape=numbers(extents), dtype=keep[0])
        cut = _chunks(chunks, extents)
        if cut is not None:
            spec.chunk = numbers(cut)
        if shards is not None:
            spec.shard = numbers(shards)
        if fill_value is not None:
            spec.fill = word(_dtypes.fill_json(fill_value, name))
        chain = codecs if codecs is not None else _codecs(compressors, name)
        if chain is not None:
            spec.codecs_json = word(chain if isinstance(chain, str) else json.dumps(chain))
        if attributes:
            spec.attrs_json = word(to_json(attributes))
        if dimension_names is not None:
            if len(dimension_names) != len(extents):
                raise ValueError(f"{len(dimension_names)} dimension names for {len(extents)} dimensions")
            keep.append(ffi.new("const char *[]", [word(n) for n in dimension_names] or [ffi.NULL]))
            spec.dimension_names = keep[-1]
        spec.chunk_key_encoding = word(chunk_key_encoding)
        if backend is not None:
            spec.backend_json = word(backend if isinstance(backend, str) else json.dumps(backend))
        with self.session._changing(overwrite or data is not None):
            if overwrite and self._kind(at):
                self.session._sessions.call(lib.brc_node_remove, text(at))
                self.session._sessions.era += 1
            with self.session._sessions.at_work() as native:
                out = ffi.new("brc_array **")
                native.call_out(lib.brc_array_create, out, keep[1], spec)
                native.forget(at)
                native.arrays[at] = out[0]
            made = Array(self.session, at)
            if data is not None and data.size:
                made[...] = data
        return made

    def move(self, source: str, dest: str) -> None:
        """Gives a node another path. No chunk is copied."""
        self.session._sessions.call(lib.brc_node_move, text(self._at(source)), text(self._at(dest)))
        self.session._sessions.era += 1

    def copy(self, source: str, dest: str) -> None:
        """Copies a node and all under it. No chunk is copied: both have them."""
        self.session._sessions.call(lib.brc_node_copy, text(self._at(source)), text(self._at(dest)))

    def restore(self, path: str = "/", rev: str | None = None) -> None:
        """Makes a node and all under it what they were at a version (None: the branch's tip)."""
        self.session._sessions.call(lib.brc_node_restore, text(self._at(path)), text(rev))
        self.session._sessions.era += 1

    def tree(self) -> str:
        """The groups and arrays under this one, in lines."""
        from ._display import tree
        return tree(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and (self.session, self.path) == (other.session, other.path)

    def __hash__(self) -> int:
        return hash((id(self.session), self.path))

    def __reduce__(self) -> Any:
        return Group, (self.session, self.path)

    def __repr__(self) -> str:
        return self.tree()

    def _repr_html_(self) -> str:
        from ._display import group_html
        return group_html(self)


class Session(Group):
    """The hierarchy as a version has it. Repository.session(), .draft() and .view() make it. It is the root
    group too.

    `kind`: "private", "child" (a private one that fork() made), "shared", "view" (a branch, to read) or "at"
    (a commit). As a context manager a private or shared one commits at the end (nothing is no error), and
    discards its changes on an exception; a child only discards.

    All pickle, with their arrays, groups and stores. In any process or thread of this machine, a copy of a
    private one is on the same draft: what one writes, commits or discards, the others see. The draft belongs
    to its first process; others that end, or are killed, take nothing with them.
    """

    def __init__(self, repository: Repository, kind: str, rev: str, sessions: Sessions, *,
                 message: str | None = None, author: str | None = None,
                 metadata: dict[str, Any] | None = None, commit: str | None = None) -> None:
        self.repository, self.kind, self.rev, self._sessions = repository, kind, rev, sessions
        self.read_only = kind in ("view", "at") or repository.read_only
        self.fixed = kind == "at"
        self.commit_id = commit
        self._about = message, author, metadata
        super().__init__(None, "/")  # no circle: what is open is closed as soon as nobody has it

    @property
    def session(self) -> Session:
        return self

    @property
    def store(self) -> Store:
        """A store for zarr-python of just what this session shows and changes."""
        from .zarr import Store
        return Store.of_session(self)

    # ---- changes ----

    def commit(self, message: str | None = None, author: str | None = None, *,
               metadata: dict[str, Any] | None = None, time: datetime.datetime | None = None,
               amend: bool = False, allow_empty: bool = False, merge: bool = True) -> str:
        """Makes the changes a commit on the branch, whose id it returns; the session goes on from it.

        Where the branch has moved, they are merged onto it: ConflictError (`.conflicts` lists what) if that
        cannot be, StaleError with `merge` False; the changes are kept. MisuseError if there is nothing to
        commit.
        """
        said = message if message is not None else self._about[0]
        who = author if author is not None else self._about[1]
        about = metadata if metadata is not None else self._about[2]
        words = text(said or ""), text(who), text(to_json(about)) if about else ffi.NULL
        flags = (lib.BRC_COMMIT_AMEND * amend | lib.BRC_COMMIT_ALLOW_EMPTY * allow_empty
                 | lib.BRC_COMMIT_NO_MERGE * (not merge))
        options = sized("brc_commit_opts", message=words[0], author=words[1], meta_json=words[2],
                        time_us=records.microseconds(time), flags=flags)
        out = ffi.new("brc_oid *")
        with self._sessions.at_work() as native:
            try:
                native.call_out(lib.brc_session_commit, out, options)
            except _errors.ConflictError as error:
                error.conflicts = tuple(self._conflicts(native))
                raise
        self._sessions.era += 1
        return records.oid(out[0])

    def discard(self) -> None:
        """Drops every uncommitted change of this session."""
        self._sessions.call(lib.brc_session_discard)
        self._sessions.era += 1

    def clean(self) -> bool:
        """Whether there are no uncommitted changes."""
        out = ffi.new("int *")
        self._sessions.call_out(lib.brc_session_clean, out)
        return bool(out[0])

    def diff(self, a: str | None = None, *, path: str | None = None,
             elements: bool = False) -> list[records.Change]:
        """Nodes that differ from `a` (None: what the changes are based on) to what this session shows. As
        Repository.diff()."""
        name, out = text(path), ffi.new("brc_iter **")
        options = sized("brc_diff_opts", path=name, flags=lib.BRC_DIFF_ELEMENTS if elements else 0)
        with self._sessions.at_work() as native:
            native.call_out(lib.brc_session_diff, out, text(a), options)
            return native.handle.items(out, lib.brc_diff_next, "brc_change", records.Change.of)

    def status(self) -> records.Status:
        """Whether there are uncommitted changes, and which."""
        if self.kind in ("shared", "view") and self.rev == self.repository.head:
            return self.repository.status()
        clean = self.fixed or self.clean()
        return records.Status(self.rev, clean, () if clean else tuple(self.diff()))

    def _conflicts(self, native: Native) -> list[records.Conflict]:
        out = ffi.new("brc_iter **")
        native.call_out(lib.brc_session_conflicts, out)
        return native.handle.items(out, lib.brc_conflicts_next, "brc_conflict", records.Conflict.of)

    def conflicts(self) -> list[records.Conflict]:
        """What keeps the changes from being committed onto the branch as it is now. Ours is the branch."""
        with self._sessions.at_work() as native:
            return self._conflicts(native)

    # ---- many processes ----

    def fork(self) -> Session:
        """A child of a private session, for a worker: it begins with all that this one shows, uncommitted
        changes too; then neither sees what the other writes, until join(). A child cannot commit, and may
        have children. It belongs to this session's process. MisuseError in a transaction, and where this
        session is shared.
        """
        with self._sessions.at_work() as native:
            out = ffi.new("brc_session **")
            native.call_out(lib.brc_session_fork, out)
            try:
                token = token_of(native, out[0])
            finally:
                lib.brc_session_free(out[0])
        return _attach(self.repository, "child", self.rev, self._about, token)

    def join(self, *children: Session | Iterable[Session]) -> None:
        """Brings what children (or copies of them that workers returned) wrote into this session: all, or
        nothing.

        They are merged by element, in whatever order they are given. Where two wrote different values to one
        element it is a ConflictError whose `.conflicts` say of which `child`. All are as they were then.
        Joined children are gone: StaleError from then on, also for a second join. MisuseError in a transaction,
        with a savepoint open, and for what is no child of this session.
        """
        given = [c for some in children for c in ([some] if isinstance(some, Session) else some)]
        tokens = [c._token() for c in given]
        keep, out = [text(t) for t in tokens], ffi.new("brc_iter **")
        with self._sessions.at_work() as native:
            try:
                native.call_out(lib.brc_session_join, out, ffi.new("const char *[]", keep), len(keep), 0)
            except _errors.ConflictError as error:
                of = {int(t.split(":")[1]): c for t, c in zip(tokens, given)}
                error.conflicts = tuple(native.handle.items(
                    out, lib.brc_conflicts_next, "brc_conflict",
                    lambda c: records.Conflict.of(c)._replace(child=of.get(c.draft))))
                raise
        self._sessions.era += 1

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What this thread changes in the block is one transaction: all of it, or nothing if the block fails.
        Other writers wait meanwhile."""
        with self._sessions.pin() as native:
            native.handle.call(lib.brc_begin, native.handle.repo)
            done = False
            try:
                yield
                done = True
            finally:
                native.handle.call(lib.brc_end, native.handle.repo, lib.BRC_END_KEEP if done else 0)
                if not done:
                    self._sessions.era += 1

    def _changing(self, needed: bool) -> Any:
        return self.transaction() if needed else nullcontext()

    @contextmanager
    def savepoint(self, name: str | None = None) -> Iterator[None]:
        """What this thread changes in the block is taken back if the block fails. Others are not kept
        waiting."""
        label = text(name or "breccia")
        with self._sessions.pin() as native:
            native.handle.call(lib.brc_savepoint, native.session, label)
            try:
                yield
            except BaseException:
                native.handle.call(lib.brc_savepoint_rollback, native.session, label)
                native.handle.call(lib.brc_savepoint_release, native.session, label)
                self._sessions.era += 1
                raise
            native.handle.call(lib.brc_savepoint_release, native.session, label)

    # ---- exchange ----

    def import_(self, source: str | os.PathLike[str], path: str | None = None, *, into: bool = False,
                chunks: Sequence[int] | None = None, codecs: Any = None, format: str | None = None,
                exclude: Sequence[str] = ()) -> str:
        """Imports a Zarr folder or .zip (v3, v2), .npy, .npz, IDX, NetCDF or HDF5 file as the node `path`
        (None: named after it; `into`: a group that it comes into), all or nothing. The node's path."""
        words = [text(w) for w in exclude]
        names = ffi.new("const char *[]", words) if words else ffi.NULL
        cut = ffi.new("uint64_t[]", list(chunks)) if chunks is not None else ffi.NULL
        others = text(json.dumps(codecs) if codecs is not None and not isinstance(codecs,
                                                                                  str)
                      else codecs), text(format)
        placed = sized("brc_buf")
        options = sized("brc_xfer_opts", chunk=cut, nchunk=len(chunks or ()), flags=lib.BRC_XFER_INTO * into,
                        codecs_json=others[0], format=others[1], placed=placed, exclude=names,
                        nexclude=len(words))
        try:
            self._sessions.call(lib.brc_import, text(os.fspath(source)), text(path), options)
            self._sessions.era += 1
            return bytes(ffi.buffer(placed.data, placed.len)).decode() if placed.len else path or "/"
        finally:
            lib.brc_buf_dispose(placed)

    def export(self, dest: str | os.PathLike[str], path: str = "/", *, format: str | None = None,
               consolidated: bool = False) -> None:
        """Writes a node as a Zarr folder or .zip, .npy, .npz, NetCDF or HDF5 file, by the name's ending or
        `format`."""
        word = text(format)
        options = sized("brc_xfer_opts", format=word, flags=lib.BRC_XFER_CONSOLIDATED * consolidated)
        self._sessions.call(lib.brc_export, text(path), text(os.fspath(dest)), options)

    # ---- its life ----

    def close(self) -> None:
        """Closes what is open of it. Uncommitted changes stay in the file, as a draft."""
        self._sessions.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and not self.read_only:
            self.discard()
        elif not self.read_only and self.kind != "child" and not self.clean():
            self.commit()
        self.close()

    def _token(self) -> str:
        """What another process needs to open this session."""
        if not isinstance(self._sessions, Private):
            raise _errors.MisuseError(f"{self.rev} is no child of a session: session.fork() makes one")
        return self._sessions.token()

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._sessions, Private):
            return _attach, (self.repository, self.kind, self.rev, self._about, self._token())
        rev = self.commit_id if self.fixed else self.rev
        return _again, (self.repository, self.kind, rev, self._about)

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Session):
            return self is other
        if isinstance(self._sessions, Private) and isinstance(other._sessions, Private):
            return self.repository == other.repository and "" != self._sessions.known == other._sessions.known
        return (self.repository, self.kind, self.rev, self.commit_id) == (other.repository, other.kind,
                                                                          other.rev, other.commit_id)

    def __hash__(self) -> int:
        return hash((self.repository, self.kind, self.rev))


def _again(repository: Repository, kind: str, rev: str, about: Any) -> Session:
    if kind == "shared":
        return repository.draft(rev, message=about[0], author=about[1], metadata=about[2])
    return repository.view(rev)


def _attach(repository: Repository, kind: str, rev: str, about: Any, token: str) -> Session:
    return Session(repository, kind, rev, Private(repository.handles, rev, token), message=about[0],
                   author=about[1], metadata=about[2])


def _same_type(data: Any, name: str) -> str:
    try:
        made = _dtypes.to_zarr(_dtypes.type_of_data(data))
    except _errors.Error:
        return ""
    return name if made == name or _dtypes.to_numpy(made) == _dtypes.to_numpy(name) else made


def _chunks(chunks: Any, shape: tuple[int, ...]) -> list[int] | None:
    """The chunks' shape as the library takes it; None: it chooses."""
    if isinstance(chunks, str):
        if chunks != "auto":
            raise ValueError(f'chunks are "auto", a length, a tuple or False, not {chunks!r}')
        return None
    if chunks is None or chunks is True:
        return None
    if chunks is False:
        return [max(n, 1) for n in shape]
    given = [chunks] * len(shape) if isinstance(chunks, (int, np.integer)) else list(chunks)
    if len(given) != len(shape):
        raise ValueError(f"chunks have {len(given)} dimensions, but the array has {len(shape)}")
    made = [max(n, 1) if c == -1 else int(c) for c, n in zip(given, shape)]
    if any(c < 1 for c in made):
        raise ValueError(f"chunks {tuple(given)}: a length is 1 or more, or -1 for the whole axis")
    return made


def _codecs(compressors: Any, name: str) -> Any:
    """The list of codecs for compressors alone; None: the library chooses."""
    if isinstance(compressors, str) and compressors == "auto":
        return None
    given = [] if compressors is None else compressors if isinstance(compressors,
                                                                     (list, tuple)) else [compressors]
    dtype = _dtypes.to_numpy(name)
    first: Any = {"name": "bytes", "configuration": {"endian": "little"}}
    if dtype.kind in "TO" or "zarrs.optional" in name:
        first = {"name": "vlen-utf8" if "string" in name else "vlen-bytes"}
    return [first, *({"name": c} if isinstance(c, str) else c for c in given)]
