"""Sessions: the hierarchy at one version, to read or to change."""
from __future__ import annotations

import datetime
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import _display, _dtypes, _errors, _indexing
from ._breccia import ffi, lib
from ._calls import Progress, flags, items, options, records, to_json
from ._casting import array_of
from ._made.calls import GroupCalls, SessionCalls, author_of
from ._native import Handle, Sessions, printable, sized, text
from .array import Array

if TYPE_CHECKING:
    from .repository import Repository
    from .zarr import Store

MODES = {"shared": lib.BRC_SESSION_WRITE, "draft": lib.BRC_SESSION_VIEW,
         "view": lib.BRC_SESSION_VIEW | lib.BRC_SESSION_COMMITS, "at": lib.BRC_SESSION_AT, "ended": lib.BRC_SESSION_AT}


def box_of(path: str | None, key: Any, *sides: Callable[[], Group]) -> Any:
    """Returns the selection of the array at a path, by its shape in the first of the versions that has it; None for
    all."""
    if key is None:
        return None
    if path is None:
        raise _errors.InvalidError("key= selects elements of an array: give its path=, too")
    for side in sides:
        with suppress(_errors.NotFoundError):
            if isinstance(found := side()[path], Array):
                return found._box(key)
            raise _errors.InvalidError(f"{printable(path)} is a group: key= selects elements of an array")
    raise _errors.NotFoundError(f"neither version has an array {printable(path)}")


class Group(GroupCalls, MutableMapping[str, Any]):
    """A group: maps paths below it to arrays and groups. Iteration lists the names of its children."""

    def __init__(self, session: Session | None, path: str) -> None:
        self._of, self.path = session, path
        if session is not None:
            self._pool = session._pool

    @property
    def session(self) -> Session:
        """The session of the group; a session is its own."""
        return cast(Session, self) if self._of is None else self._of

    def _call(self, function: Any, *args: Any, progress: Progress = None) -> None:
        """Makes a call that may change open arrays, so they are opened again."""
        super()._call(function, *args, progress=progress)
        self._pool.era += 1

    def __getitem__(self, path: str) -> Any:
        made = Array(self.session, self._at(path))
        try:  # most paths are arrays, and asking first takes as long as opening
            made._now()
            return made
        except (_errors.NotFoundError, _errors.InvalidError):
            kind = self._kind(path)
        if not kind:
            raise _errors.NotFoundError(printable(f"there is no node {made.path} in {self.session.rev}"))
        return Group(self.session, made.path) if kind == lib.BRC_GROUP else made

    def __setitem__(self, path: str, value: Any) -> None:
        """Writes an array. An array that is missing, or has another shape or type, is made anew."""
        if isinstance(value, Group):
            raise _errors.WrongTypeError("a group is copied by copy()")
        data = array_of(value)
        if data.dtype.kind == "U" and not isinstance(value, (np.ndarray, Array)):
            data = np.array(value, _dtypes.STRING)
        there = Array(self.session, self._at(path)) if self._kind(path) == lib.BRC_ARRAY else None
        if there is not None and there.shape == data.shape and _dtypes.fits(data, there.data_type):
            there[...] = data
            return
        with self.session.transaction():
            attributes = None if there is None else there.attrs.asdict()
            self.create_array(path, data=data, attributes=attributes, overwrite=True)

    def __iter__(self) -> Iterator[str]:
        return iter([node.path.rpartition("/")[2] for node in self._nodes()])

    _ipython_key_completions_ = MutableMapping.keys  # for the TAB key, in brackets

    def walk(self, limit: int | None = None) -> Iterator[Any]:
        """Lists all groups and arrays under this one, by path."""
        for path, kind in self._nodes(deep=True, limit=limit):
            if path != self.path:
                yield Array(self.session, path) if kind == "array" else Group(self.session, path)

    def arrays(self) -> dict[str, Array]:
        """Returns the arrays in this group by name."""
        return {p.rpartition("/")[2]: Array(self.session, p) for p, kind in self._nodes() if kind == "array"}

    def groups(self) -> dict[str, Group]:
        return {p.rpartition("/")[2]: Group(self.session, p) for p, kind in self._nodes() if kind == "group"}

    def create_group(self, path: str, *, attributes: dict[str, Any] | None = None, overwrite: bool = False) -> Group:
        """Makes a group, and missing groups above it. ExistsError if the path exists."""
        with self.session.transaction() if overwrite else nullcontext():
            if overwrite and path in self:
                del self[path]
            made = Group(self.session, self._at(path))
            self._call(lib.brc_group_create, text(made.path), text(to_json(attributes) if attributes else None))
        return made

    def create_array(self, path: str, *, shape: int | Sequence[int] | None = None, dtype: Any = None,
                     chunks: Any = "auto", shards: Sequence[int] | None = None, fill_value: Any = None,
                     compressors: Any = "auto", codecs: Any = None, dimension_names: Sequence[str | None] | None = None,
                     attributes: dict[str, Any] | None = None, chunk_key_encoding: str | None = None,
                     data: Any = None, backend: Any = None, overwrite: bool = False,
                     casting: str = "same_kind") -> Array:
        """Makes an array, and the groups above it that are missing.

        `shape` and `dtype`, or `data`, which is written. `chunks`: "auto" (about 1 MiB), a length for all
        axes, a tuple in which -1 is the whole axis, or False for one chunk. `shards`: the shape of what other
        tools see as one value, a multiple of the chunks. `compressors`: "auto", None, "zstd", {"name": ...,
        "configuration": ...}, a codec of zarr-python, or a list; `codecs`: the whole list of zarr.json in place of
        that. `backend`: where chunks go. `fill_value` None: zero, no text, of dates and times NaT; another one has
        to be an element of the type: floats are rounded, and 1.0 is an integer too. `casting`: of data, as of
        Array.set(). ExistsError if something is there, unless `overwrite`; ValueError for what Zarr does not allow.
        """
        if data is not None and (shape is None or dtype is None):
            made = array_of(data)
            shape = made.shape if shape is None else shape
            dtype = _dtypes.type_of_data(made) if dtype is None else dtype
        if shape is None or dtype is None:
            raise _errors.InvalidError("an array needs a shape and a dtype, or data")
        extents = _indexing.extents(shape)
        for what, each in ("shards", shards), ("dimension_names", dimension_names):
            if each is not None and len(each) != len(extents):
                raise _errors.InvalidError(f"{what} {tuple(each)} for {len(extents)} dimensions")
        name, at = _dtypes.to_zarr(dtype), self._at(path)
        if codecs is not None or isinstance(compressors, str) and compressors == "auto":
            compressors = None
        else:
            given = compressors if isinstance(compressors, (list, tuple)) else [compressors] * (compressors is not None)
            compressors = [{"name": c} if isinstance(c, str) else c for c in given]
        fill = None if fill_value is None else ffi.from_buffer(_dtypes.element(fill_value, name))
        spec = options("brc_array_spec", ndim=len(extents), shape=extents, dtype=name, fill_element=fill, shard=shards,
                       chunk=_chunks(chunks, extents), codecs_json=codecs, compressors_json=compressors,
                       backend_json=backend, dimension_names=dimension_names, attrs_json=attributes or None,
                       chunk_key_encoding=chunk_key_encoding)
        replaces = overwrite and path in self
        at_once = nullcontext if data is None else self.session._in_steps
        if replaces or isinstance(data, np.ndarray) and data.nbytes <= AT_ONCE:
            at_once = self.session.transaction
        with at_once():
            if replaces:
                del self[path]
            with self._pool.at_work() as native:
                opened = native.made(lib.brc_array_create, "brc_array", text(at), spec)
                native.forget(at)
                native.arrays[at] = opened
            array = Array(self.session, at)
            if data is not None and 0 not in extents:
                array.set(..., data, casting=casting)
        return array

    def tree(self) -> str:
        """Lists the groups and arrays under this one, in lines."""
        return _display.tree(self)

    __repr__ = tree

AT_ONCE = 8 << 20  # bytes of a new array that are written in one transaction, for which others wait


def _source_of(source: str | os.PathLike[str]) -> AbstractContextManager[tuple[Any, str]]:
    """Makes (what the library imports, the beginning of a warning that does not hold) of a source. A folder of
    references in Parquet says in its metadata how many a file has."""
    with suppress(OSError, TypeError, ValueError):
        with open(os.path.join(source, ".zmetadata"), "rb") as file:
            is_parquet = "record_size" in json.load(file)
        if is_parquet:
            try:
                from . import _kerchunk
            except ImportError:
                raise _errors.UnsupportedError(f"{os.fspath(source)} has references in Parquet: install pyarrow, "
                                               "which reads them") from None
            return _kerchunk.as_json(os.fspath(source))
    return nullcontext((source, ""))


class Session(SessionCalls, Group, AbstractContextManager["Session", None]):
    """The hierarchy as a version has it. Repository.session(), .draft() and .view() make it. It is the root
    group too.

    `kind`: "private", "child" (a private one that fork() made), "shared", "draft" (the same, to read), "view" (a
    branch's commits, to read) or "at" (one commit). As a context manager a private or shared one commits at the
    end (no changes are not an error), and discards its changes on an exception; a child only discards.

    All pickle, with their arrays, groups and stores; a copy opens the file when it is used. In any process or
    thread of this machine, a copy of a private one is on the same draft: what one writes, commits or discards,
    the others see. The draft belongs to its first process; others that end, or are killed, take nothing with
    them.
    """

    def __init__(self, repository: Repository, kind: str, rev: str, about: tuple[Any, Any, Any] = (None,) * 3,
                 key: str = "") -> None:
        """`about`: message, author and metadata of the commit at the end. `key`: the token of a private session, or
        the id of a commit."""
        self.repository, self.kind, self.rev, self._about = repository, kind, rev, about
        self.read_only, self.fixed = kind in ("draft", "view", "at") or repository.read_only, kind == "at"
        is_copy, key = bool(key), key or rev
        if kind == "private" and not is_copy:
            with repository.handles.at_work() as handle:  # the first process that changes something begins the draft
                key = handle.take_buf(lib.brc_session_name, handle.repo, text(rev)).decode()
        self._key, self.commit_id = key, key if self.fixed else None
        self._sessions = self._pool = Sessions(repository.handles, partial(_open, kind, key))
        if kind in MODES and not is_copy:
            self._sessions.give(self._sessions.take())
        super().__init__(None, "/")  # not itself, because a circle would keep open what nobody uses

    @property
    def store(self) -> Store:
        """A store for zarr-python that shows and changes this session."""
        from .zarr import Store
        return Store.of_session(self)

    # ---- changes ----

    def commit(self, message: str | None = None, author: str | None = None, *,
               metadata: dict[str, Any] | None = None, time: datetime.datetime | None = None,
               amend: bool = False, allow_empty: bool = False, merge: bool = True) -> str:
        """Makes the changes a commit on the branch, whose id it returns; the session goes on from it.

        `message`, `author` and `metadata` are those of session() where they are not given. A commit needs a message, as
        the command's does: InvalidError for none and for a blank one. Without an author it is BRECCIA_AUTHOR, or the
        user's name and the host's.

        Where the branch has moved, the changes are merged onto it: ConflictError (`.conflicts` lists what) if that
        cannot be, BusyError if others were first for all of `wait`, StaleError with `merge` False; the changes
        are kept. MisuseError if there is nothing to
        commit. `amend`: in place of the branch's last commit, whose message and the like stay if not given.
        """
        about: list[Any] = [b if a is None else a for a, b in zip((message, author, metadata), self._about)]
        how = options("brc_commit_opts", message=about[0], author=about[1] if amend else author_of(about[1]),
                      meta_json=about[2] or None, time_us=time, conflicts=(found := ffi.new("brc_iter **")),
                      flags=flags("COMMIT", amend=amend, allow_empty=allow_empty, no_merge=not merge))
        with self._working() as native:
            try:
                native.call_out(lib.brc_session_commit, made := ffi.new("brc_oid *"), how)
            except _errors.ConflictError as error:
                error.conflicts = tuple(items(native, records.Conflict, found)) if found[0] else ()
                raise
        self._sessions.era += 1
        return records.oid(made[0])

    def discard(self) -> None:
        """Drops all uncommitted changes of this session. An ended session has none."""
        if self._sessions.opener.args[0] != "ended":
            super().discard()

    def diff(self, a: str | None = None, *, path: str | None = None, key: Any = None, elements: bool = False,
             chunks: bool = False, values: int = 0, atol: float = 0, rtol: float = 0) -> list[records.Change]:
        """Nodes that differ from `a` (None: what the changes are based on) to what this session shows. As
        Repository.diff()."""
        sel = box_of(path, key, lambda: self, lambda: self.repository.view(a or self.rev))
        return self._diff(a, path=path, elements=elements, chunks=chunks, values=values, atol=atol, rtol=rtol, sel=sel)

    def status(self) -> records.Status:
        """Returns whether there are uncommitted changes, and which."""
        if self.kind in ("shared", "draft") and self.rev == self.repository.head:
            return self.repository.status()
        clean, moved = self.fixed or self.clean(), self.kind in ("shared", "draft") and self.repository._moved(self.rev)
        return records.Status(self.rev, clean and not moved, () if clean else tuple(self.diff()), None, moved)

    # ---- many processes ----

    def fork(self) -> Session:
        """A child of a private session, for a worker: it begins with all that this one shows, uncommitted
        changes too; then neither sees what the other writes, until join(). A child cannot commit, and may
        have children. It belongs to this session's process. MisuseError in a transaction, and where this
        session is shared.
        """
        with self._working() as native:
            with ffi.gc(native.made(lib.brc_session_fork, "brc_session"), lib.brc_session_free) as child:
                token = native.take_buf(lib.brc_session_token, child).decode()
        return Session(self.repository, "child", self.rev, self._about, token)

    def join(self, *children: Session | Iterable[Session]) -> None:
        """Brings what children (or copies of them that workers returned) wrote into this session: all, or
        nothing.

        They are merged by element, in whatever order they are given. Where two wrote different values to one
        element it is a ConflictError whose `.conflicts` say of which `child`. All are as they were then.
        Joined children are gone: StaleError from then on, also for a second join. MisuseError in a
        transaction, with a savepoint open, and for a session that is not a child of this one.
        """
        given = [c for some in children for c in ([some] if isinstance(some, Session) else some)]
        of = {c._token(): c for c in given}
        tokens, out = [text(c._token()) for c in given], ffi.new("brc_iter **")
        with self._sessions.at_work() as native:
            try:
                native.call_out(lib.brc_session_join, out, ffi.new("const char *[]", tokens), len(tokens), 0)
            except _errors.ConflictError as error:
                drafts = {int(token.split(":")[1]): child for token, child in of.items()}
                error.conflicts = tuple(c._replace(child=drafts.get(c.child))
                                        for c in items(native, records.Conflict, out))
                raise
        self._sessions.era += 1

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Makes all changes of this thread in the block one transaction: all of them, or none if the block fails.
        Other writers wait meanwhile. zarr works in another thread, so its calls raise MisuseError."""
        with self._sessions.pin() as native, native.transaction():
            yield

    @contextmanager
    def _in_steps(self) -> Iterator[None]:
        """Makes all writes of this thread in the block, or none if the block fails. Others need not wait."""
        with self._sessions.pin() as native, native.bulk():
            yield

    @contextmanager
    def savepoint(self, name: str | None = None) -> Iterator[None]:
        """Takes back this thread's changes in the block if the block fails. Others need not wait: if they have
        changed the same draft meanwhile, nothing is taken back, and the block raises ConflictError."""
        label = text(name or "breccia")
        with self._sessions.pin() as native:
            native.call(lib.brc_savepoint, native.session, lib.BRC_SAVEPOINT_SET, label)
            try:
                yield
            except BaseException:
                native.call(lib.brc_savepoint, native.session, lib.BRC_SAVEPOINT_ROLLBACK, label)
                self._sessions.era += 1
                raise
            finally:
                native.call(lib.brc_savepoint, native.session, lib.BRC_SAVEPOINT_RELEASE, label)

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Makes what this thread changes in the block one operation, which Repository.undo() takes back as a whole, and
        draft_log() lists as `name` (1 to 200 bytes). Of Repository.draft() alone: MisuseError for other sessions. An
        exception takes nothing back. Changes outside of such blocks end what undo() could take back."""
        with self._sessions.pin() as native:
            native.call(lib.brc_session_log, native.session, text(name))
            try:
                yield
            finally:
                native.call(lib.brc_session_log, native.session, text(None))

    # ---- exchange ----

    def _exchange(self, function: Any, one: Any, other: Any, progress: Progress, wrong: str = "",
                  **how: Any) -> list[str]:
        """Returns the path of the imported node, and the parts that were left out; the library's warnings become
        warnings of the caller, but for those that begin with `wrong`."""
        placed, left, told = (ffi.gc(sized("brc_buf"), lib.brc_buf_dispose) for _ in range(3))
        self._call(function, *(text(os.fsencode(name) if name else None) for name in (one, other)),
                   options("brc_xfer_opts", placed=placed, left_out=left, warnings=told, **how), progress=progress)
        *found, lines = (bytes(ffi.buffer(b.data, b.len)).decode() if b.len else "" for b in (placed, left, told))
        for line in lines.splitlines():
            if not wrong or not line.startswith(wrong):
                warnings.warn(_errors.said(line), stacklevel=4)
        return found

    def import_(self, source: str | os.PathLike[str], path: str | None = None, *, into: bool = False,
                chunks: Sequence[int] | None = None, codecs: Any = None, exclude: Sequence[str] = (),
                rename: Mapping[str, str] | None = None, skip_unsupported: bool = False,
                external: bool = False, hdf5_plugins: str | None = None, progress: Progress = None) -> Any:
        """Imports a Zarr folder or .zip (v3, v2), .npy, .npz, IDX, NetCDF or HDF5 file, or Kerchunk references in JSON
        or, with pyarrow, Parquet, as the node `path` (None: named after it; `into`: a group that it comes into), all or
        nothing. The node's path. What there is to
        know of it, such as documents that differ from the consolidated metadata, is a warning.
        `exclude`: patterns of nodes, "/a/b", and attributes, "/a@b", to leave out; `rename`: new names of nodes.
        `skip_unsupported`: what cannot be kept is left out, and listed in place of the path: dicts of "path",
        "kind", "message" and "remedy". `external`: chunks stay in the files of the source wherever they are whole
        ranges of bytes there, and the files must stay as they are. `hdf5_plugins`: the folders of HDF5's filters,
        "A:B"; None: those in HDF5_PLUGIN_PATH."""
        names = [(text(old), text(new)) for old, new in (rename or {}).items()]
        with _source_of(source) as (file, wrong):
            node, left = self._exchange(lib.brc_import, file, path, progress, wrong, chunk=chunks, codecs_json=codecs,
                                        exclude=exclude, rename=ffi.new("brc_rename[]", names or 1), nrename=len(names),
                                        hdf5_plugins=hdf5_plugins, flags=flags(
                                            "XFER", into=into, external=external, skip_unsupported=skip_unsupported))
        return json.loads(left) if skip_unsupported else node or path or "/"

    def export(self, dest: str | os.PathLike[str], path: str = "/", *, format: str | None = None,
               consolidated: bool = False, nan_tokens: bool = False, unequal_dimensions: bool = False,
               progress: Progress = None) -> None:
        """Writes a node as a Zarr folder or .zip, .npy, .npz, NetCDF or HDF5 file, by the name's ending or `format`.
        Attributes that are NaN or infinite, for which JSON has no text, are marked texts in Zarr, and a warning names
        the nodes; `nan_tokens`: they are what zarr-python and xarray read as numbers. Zarr and NetCDF are refused where
        arrays of a data set have one dimension with two lengths, but for `unequal_dimensions`."""
        self._exchange(lib.brc_export, path, dest, progress, format=format, flags=flags(
            "XFER", consolidated=consolidated, nan_tokens=nan_tokens, unequal_dimensions=unequal_dimensions))

    # ---- its life ----

    def close(self) -> None:
        """Closes the session's handles. Uncommitted changes stay in the file, as a draft."""
        self._sessions.close()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and not self.read_only:
            self.discard()
        elif not self.read_only and self.kind != "child" and not self.clean():
            self.commit()
        if self.kind == "private":  # other threads must not go on writing to a draft that nobody reads
            with suppress(_errors.BusyError, _errors.ReadOnlyError):  # children that were not joined end too
                self._call(lib.brc_session_finish)
            with suppress(_errors.NotFoundError):  # a branch without a commit
                self._sessions.opener = partial(_open, "ended", self.repository.resolve(self.rev))
        self.close()

    def __enter__(self) -> Session:
        self._sessions.opener = partial(_open, self.kind, self._key)
        self.close()
        return self

    def _token(self) -> str:
        """Returns the text by which another process opens this session."""
        if self.kind in MODES:
            raise _errors.MisuseError(f"{self.rev} is not a child of a session: session.fork() makes one")
        return self._key

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the state that the session shows too, because dask and others take objects with equal pickles for
        the same."""
        given = self.repository, self.kind, self.rev, self._about, self._key
        return Session, given, (self._sessions.opener.args, None if self.kind in ("at", "child") else self._info())

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        self._sessions.opener = partial(_open, *state[0])


def _open(kind: str, key: str, handle: Handle) -> Any:
    """Opens a native session of a branch or a commit or, in any process, of a draft by its token."""
    handle.ended = kind == "ended"
    if kind in MODES:
        return handle.made(lib.brc_session_open, "brc_session", text(key), MODES[kind])
    return handle.made(lib.brc_session_open, "brc_session", text(key), lib.BRC_SESSION_TOKEN)


def _chunks(chunks: Any, shape: tuple[int, ...]) -> list[int] | None:
    """Returns the chunks' shape in the library's form; None: the library chooses."""
    if chunks is None or chunks is True or isinstance(chunks, str) and chunks == "auto":
        return None
    given = -1 if chunks is False else chunks
    lengths = list(given) if np.iterable(given) else [given] * len(shape)
    made = [max(n, 1) if c == -1 else int(c) if isinstance(c, (int, np.integer)) else 0 for c, n in zip(lengths, shape)]
    if len(lengths) != len(shape) or min(made, default=1) < 1:
        raise _errors.InvalidError(f'chunks are "auto", False, a length or {len(shape)} of them, not {chunks!r}')
    return made
