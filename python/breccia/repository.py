"""A repository: one file with the whole history of a hierarchy of arrays."""
from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from . import _errors
from ._attributes import Config
from ._breccia import ffi, lib
from ._calls import Progress, flags, options, records
from ._made.calls import RepositoryCalls
from ._native import Handle, Handles, string, text
from .session import Session

if TYPE_CHECKING:
    from .zarr import Store

T = TypeVar("T")
Paths = str | Sequence[str] | None
Merging = TypedDict("Merging", {
    "ours": bool, "theirs": bool, "paths": Paths, "keep": bool, "message": str | None, "author": str | None,
    "time": datetime.datetime | None, "progress": Progress}, total=False)


class Repository(RepositoryCalls):
    """The file at `path`, open. Every method may be called from any thread, and in a child of fork().

    `wait`: seconds that a call waits for other processes (None: 30). `memory`: bytes of chunks that a call
    has in flight at most (0: 256 MiB). `threads`: of the pool that codecs run on (0: one per core).
    `progress`: True (tqdm, if it is there) or a function(phase, done, total), which long calls tell how far
    they are.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, read_only: bool = False,
                 wait: float | None = None, memory: int = 0, threads: int = 0,
                 progress: Progress = None) -> None:
        how = flags("OPEN", readonly=read_only, create=create and not os.path.exists(path))
        self.handles = Handles(path, flags=how, wait=wait, memory=memory, threads=threads)
        self.path: str = self.handles.path
        self.read_only = read_only
        self.progress = progress
        self._options = {"read_only": read_only, "wait": wait, "memory": memory, "threads": threads}
        self.handles.give(self.handles.take())

    def close(self) -> None:
        """Closes the file. A later call opens it again."""
        self.handles.close()

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Repository) and (self.path, self._options) == (other.path, other._options)

    def __hash__(self) -> int:
        return hash(self.path)

    @contextmanager
    def _working(self, progress: Progress = None) -> Iterator[tuple[Handle, Any]]:
        with self.handles.at_work() as handle, self._telling(handle, progress):
            yield handle, handle.repo

    # ---- views ----

    def session(self, branch: str | None = None, *, message: str | None = None, author: str | None = None,
                metadata: dict[str, Any] | None = None) -> Session:
        """A private draft of a branch (None: the current one): nobody sees its changes before they are
        committed. As a context manager it commits at the end with `message`, and discards on an exception."""
        branch = branch or self.head
        if self.read_only:
            return Session(self, "at", branch, key=self.resolve(branch))
        return Session(self, "private", branch, (message, author, metadata))

    def draft(self, branch: str | None = None, *, message: str | None = None, author: str | None = None,
              metadata: dict[str, Any] | None = None) -> Session:
        """The changes of a branch that all its users share: what one writes the others see at once."""
        return Session(self, "shared", branch or self.head, (message, author, metadata))

    def view(self, rev: str | None = None) -> Session:
        """What a version has, to read: a commit or a tag as it is; a branch with its shared uncommitted
        changes."""
        rev = rev or self.head
        if rev in self.branches():
            return Session(self, "view", rev)
        return Session(self, "at", rev, key=self.resolve(rev))

    def store(self, rev: str = "main", *, mode: str = "r") -> Store:
        """A store for zarr-python and what builds on it: mode "r" reads any version, "r+" writes a branch's
        shared draft."""
        from .zarr import Store
        if mode not in ("r", "r+", "a"):
            raise ValueError(f'mode is "r" or "r+", not {mode!r}')
        return Store(self.path, rev, read_only=mode == "r")

    # ---- branches and tags ----

    @property
    def head(self) -> str:
        """The name of the current branch."""
        return string(self._out("const char *", lib.brc_head)[0])

    def branches(self) -> dict[str, str]:
        """Their commits by their names; "" for a branch without one."""
        return {ref.name: ref.id for ref in self.refs() if not ref.is_tag}

    def tags(self) -> dict[str, str]:
        return {ref.name: ref.id for ref in self.refs() if ref.is_tag}

    def reset(self, rev: str, *, hard: bool = False, expect: str | None = None) -> None:
        """Moves the current branch to a version; with `hard` uncommitted changes go. StaleError if the branch
        is not at `expect`."""
        self._call(lib.brc_reset, text(rev), int(hard), ffi.NULL if expect is None else self._oid(expect))

    def _oid(self, rev: str) -> Any:
        return self._out("brc_oid", lib.brc_resolve, text(rev))

    def resolve(self, rev: str) -> str:
        """The id of the commit that a name, an abbreviated id, BRANCH~2 or BRANCH@{TIME} means."""
        return records.oid(self._oid(rev)[0])

    # ---- history ----

    def commit(self, rev: str = "HEAD") -> records.Commit:
        """The commit of a version."""
        found = self._out("brc_commit *", lib.brc_commit_read, self._oid(rev))[0]
        try:
            return records.Commit.of(found)
        finally:
            lib.brc_commit_free(found)

    def show(self, rev: str = "HEAD", *, elements: bool = False) -> records.Shown:
        """A commit and what it changed."""
        return records.Shown(self.commit(rev), tuple(self.diff(None, rev, elements=elements)))

    def status(self) -> records.Status:
        """The current branch's uncommitted changes, and the merge or the like that is open."""
        changes, state = tuple(self.diff()), self.merge_state()
        return records.Status(self.head, not changes and state is None, changes, state)

    # ---- merging ----

    def merge(self, rev: str, *, concat: bool = False, fast_forward: bool = True, dry_run: bool = False,
              **how: Unpack[Merging]) -> records.MergeResult:
        """Merges a version into the current branch, element by element.

        `ours`, `theirs` settle conflicts for the branch or for what is merged, with `paths` only at and under
        these. `concat`: what both appended to an array comes one after the other. `dry_run`: nothing is
        changed. Conflicts that are left are a ConflictError that lists them, and nothing has changed; with
        `keep` the merge stays open: settle it (merge_settle, or by writing), then merge_continue() or
        merge_abort(). `message`, `author`, `time`, `progress` as everywhere.
        """
        special = flags("MERGE", concat=concat, no_ff=not fast_forward, dry_run=dry_run)
        return self._merged(records.MergeResult, lib.brc_merge, rev, special, dry_run, **how)

    def _merged(self, kind: type[T], function: Callable[..., int], rev: str, special: int, trial: bool = False, *,
                ours: bool = False, theirs: bool = False, keep: bool = False, paths: Paths = None,
                time: datetime.datetime | None = None, progress: Progress = None, **about: Any) -> T:
        word = "MERGE" if kind is records.MergeResult else "PICK"
        special |= flags(word, ours=ours, theirs=theirs, keep=keep)
        how = options(f"brc_{word.lower()}_opts", flags=special, time_us=time,
                      paths=[paths] if isinstance(paths, str) else paths or (), **about)
        made = self._report(kind, function, text(rev), how, progress=progress)
        return made if keep or trial else _settled(made)

    def cherry_pick(self, rev: str, *, no_commit: bool = False, mainline: int = 0,
                    **how: Unpack[Merging]) -> records.PickResult:
        """Does what a commit changed again on the current branch. `mainline`: of a merge, the parent (from 1)
        from which its change is told. `no_commit`: the change is uncommitted. The rest is as in merge()."""
        special = flags("PICK", no_commit=no_commit)
        return self._merged(records.PickResult, lib.brc_pick, rev, special, mainline=mainline, **how)

    def revert(self, rev: str, *, no_commit: bool = False, mainline: int = 0,
               **how: Unpack[Merging]) -> records.PickResult:
        """Takes back what a commit changed, by a new commit. Options are those of cherry_pick()."""
        special = flags("PICK", no_commit=no_commit)
        return self._merged(records.PickResult, lib.brc_revert, rev, special, mainline=mainline, **how)

    def rebase(self, onto: str, *, ours: bool = False, theirs: bool = False, paths: Paths = None,
               keep: bool = False, progress: Progress = None) -> records.PickResult:
        """Moves the current branch to `onto` with its own commits done again there."""
        return self._merged(records.PickResult, lib.brc_rebase, onto, 0, ours=ours, theirs=theirs, paths=paths,
                            keep=keep, progress=progress)

    def merge_state(self) -> records.OpenState | None:
        """The merge, cherry-pick, revert or rebase that is open on the current branch."""
        state = self._report(records.OpenState, lib.brc_merge_state)
        return state if state.draft else None

    def merge_settle(self, side: str, paths: Paths = None) -> int:
        """Settles what is open for "ours" or "theirs", at and under `paths` or everywhere. How many
        conflicts."""
        if side not in ("ours", "theirs"):
            raise ValueError(f'side is "ours" or "theirs", not {side!r}')
        at = options("brc_merge_opts", paths=[paths] if isinstance(paths, str) else paths or ())
        return int(self._out("uint64_t", lib.brc_merge_settle, flags("MERGE", **{side: True}), at.paths, at.npaths)[0])

    def merge_continue(self, *, message: str | None = None, author: str | None = None,
                       skip: bool = False) -> records.MergeResult | records.PickResult:
        """Ends what is open: the merge, pick or revert becomes a commit, a rebase goes on (`skip`: without
        the commit that is in conflict). ConflictError while something is open."""
        state = self.merge_state()
        if state is not None and state.op == "rebase":
            how = flags("REBASE", skip=skip)
            return _settled(self._report(records.PickResult, lib.brc_rebase_continue, how))
        if state is not None and state.op != "merge":
            opts = options("brc_pick_opts", message=message, author=author)
            return _settled(self._report(records.PickResult, lib.brc_pick_continue, opts))
        opts = options("brc_merge_opts", message=message, author=author)
        return _settled(self._report(records.MergeResult, lib.brc_merge_continue, opts))

    def redo(self, expect: int = 0) -> int:
        """Takes back the last undo()."""
        return int(self._out("int64_t", lib.brc_undo, lib.BRC_UNDO_REDO, expect)[0])

    def bisect(self, mark: str | None = None, rev: str | None = None) -> records.Bisection:
        """Finds the commit that brought a change: "start", then "good" and "bad" versions (None: the one that
        was to be looked at, or the current branch), "skip" for one that cannot be judged, "reset" at the
        end. What is known."""
        marks = ("look", "start", "good", "bad", "skip", "reset")
        if (mark or "look") not in marks:
            raise ValueError(f"mark is one of {', '.join(marks[1:])}, not {mark!r}")
        return self._report(records.Bisection, lib.brc_bisect, marks.index(mark or "look"), text(rev))

    # ---- the file ----

    def fsck(self, *, decode: bool = True, progress: Progress = None) -> records.FsckReport:
        """Reads everything and lists each fault. `decode` False: only what is stored is compared."""
        found: list[records.Damage] = []
        me, checked = ffi.new_handle(found), ffi.new("uint64_t *")
        self._call(lib.brc_fsck, flags("FSCK", no_decode=not decode), lib.py_damage, me, checked, progress=progress)
        return records.FsckReport(int(checked[0]), tuple(found))

    @property
    def config(self) -> Config:
        """The repository's settings: "journal", "window", "codecs", "verify", "backend"."""
        return Config(self)

    # ---- exchange ----

    def import_(self, source: str | os.PathLike[str], path: str | None = None, *, branch: str | None = None,
                message: str | None = None, author: str | None = None, **options: Any) -> str:
        """Imports a file or folder as a commit: Session.import_() on a session of its own. The commit's
        id."""
        made = self.session(branch)
        try:
            placed = made.import_(source, path, **options)
            return made.commit(message or f"Import {os.path.basename(os.fspath(source))} as {placed}", author)
        except BaseException:
            made.discard()
            raise

    def export(self, dest: str | os.PathLike[str], path: str = "/", *, rev: str | None = None,
               **options: Any) -> None:
        """Writes a node of a version as a file or folder: Session.export()."""
        self.view(rev).export(dest, path, **options)

    def __repr__(self) -> str:
        return f"<breccia.Repository {self.path}>"

    def _repr_html_(self) -> str:
        from ._display import repository_html
        return repository_html(self)


@ffi.def_extern(name="py_damage", error=1)
def _damage(me: Any, damage: Any) -> int:
    ffi.from_handle(me).append(records.Damage.of(damage))
    return 0


def _settled(result: T) -> T:
    made: Any = result
    if made.result == "conflict":
        n = len(made.conflicts)
        error = _errors.ConflictError(f"{n} {'place is' if n == 1 else 'places are'} in conflict: merge with "
                                      "ours=, theirs= or keep=True to settle them")
        error.conflicts = made.conflicts
        raise error
    return result


def _reopen(path: str, options: dict[str, Any]) -> Repository:
    return Repository(path, **options)


def open(path: str | os.PathLike[str], *, create: bool = False, read_only: bool = False,
         wait: float | None = None, memory: int = 0, threads: int = 0,
         progress: Progress = None) -> Repository:
    """Opens a repository; with `create` makes the file if it is not there. See Repository."""
    return Repository(path, create=create, read_only=read_only, wait=wait, memory=memory, threads=threads,
                      progress=progress)
