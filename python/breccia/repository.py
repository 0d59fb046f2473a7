"""A repository: one file with the whole history of a hierarchy of arrays."""
from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from ._breccia import ffi, lib
from ._calls import Progress, flags, records
from ._errors import InvalidError, NotFoundError, ReadOnlyError
from ._made.calls import RepositoryCalls
from ._native import Handles, printable
from .session import Session

if TYPE_CHECKING:
    from .zarr import Store


class Repository(RepositoryCalls, AbstractContextManager["Repository", None]):
    """The file at `path`, open. Every method may be called from any thread, and in a child of fork().

    `create`: makes the file where there is none; None: nothing is opened before it is used, as of a copy of pickle's.
    `wait`: seconds that a call waits for other processes (None: 30). `memory`: bytes of chunks that a call
    has in flight at most (0: 256 MiB). `threads`: of the pool that codecs run on (0: one per core).
    `progress`: True (tqdm, if it is there) or a function(phase, done, total), which long calls tell how far
    they are. `readback`: whether a chunk that was encoded is decoded again and compared before it is stored.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool | None = False, read_only: bool = False,
                 wait: float | None = None, memory: int = 0, threads: int = 0,
                 progress: Progress = None, readback: bool = True) -> None:
        how = flags("OPEN", readonly=read_only, create=create and not os.path.exists(path), no_readback=not readback)
        self.handles = self._pool = Handles(path, flags=how, wait=wait, memory=memory, threads=threads)
        self.path, self.read_only, self.handles.progress = self.handles.path, read_only, progress
        self._given = dict[str, Any](read_only=read_only, wait=wait, memory=memory, threads=threads, readback=readback)
        if create is not None:
            self.handles.give(self.handles.take())

    def close(self) -> None:
        """Closes the file. A later call opens it again."""
        self.handles.close()

    def __exit__(self, *_: object) -> None:
        self.close()

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
        """The changes of a branch that all its users share, over the commit at which they began: what one writes
        the others see at once. Of a repository that is open for reading only they can be read."""
        return Session(self, "draft" if self.read_only else "shared", branch or self.head, (message, author, metadata))

    def view(self, rev: str | None = None) -> Session:
        """What a version has, to read: a commit or a tag as it is; a branch as its newest commit is, whenever it
        is read. What is uncommitted is in draft() and in the sessions that made it."""
        rev = rev or self.head
        if rev != "HEAD":
            with suppress(NotFoundError, InvalidError):  # it is no branch
                return Session(self, "view", rev)
        return Session(self, "at", rev, key=self.resolve(rev))

    def store(self, rev: str = "main", *, mode: str = "r") -> Store:
        """A store for zarr-python and what builds on it: mode "r" reads any version, as view() does, "r+" shows and
        writes a branch's shared draft, as draft() does."""
        from .zarr import Store
        if mode not in ("r", "r+", "a"):
            raise InvalidError(f'mode is "r" or "r+", not {mode!r}')
        if self.read_only and mode != "r":
            raise ReadOnlyError(f"{self.path} is open for reading only")
        return Store(self.path, rev, read_only=mode == "r")

    # ---- history ----

    def status(self) -> records.Status:
        """The current branch's uncommitted changes, and the merge or the like that is open."""
        changes, state, moved = tuple(self.diff()), self.merge_state(), self._moved(branch := self.head)
        return records.Status(branch, not (changes or state or moved), changes, state, moved)

    # ---- merging ----

    def merge_continue(self, *, message: str | None = None, author: str | None = None,
                       skip: bool = False) -> records.MergeResult | records.PickResult:
        """Ends what is open: the merge, pick or revert becomes a commit, a rebase goes on (`skip`: without
        the commit that is in conflict). ConflictError while something is open."""
        op = state.op if (state := self.merge_state()) else "merge"
        if op == "rebase":
            return self._rebase_continue(skip)
        return (self._merge_continue if op == "merge" else self._pick_continue)(message, author)

    # ---- the file ----

    def fsck(self, *, decode: bool = True, progress: Progress = None) -> records.FsckReport:
        """Reads everything and lists each fault. `decode` False: only what is stored is compared."""
        found: list[records.Damage] = []
        me, checked = ffi.new_handle(found), ffi.new("uint64_t *")
        self._call(lib.brc_fsck, flags("FSCK", no_decode=not decode), lib.py_damage, me, checked, progress=progress)
        return records.FsckReport(int(checked[0]), tuple(found))

    # ---- exchange ----

    def import_(self, source: str | os.PathLike[str], path: str | None = None, *, branch: str | None = None,
                message: str | None = None, author: str | None = None, **options: Any) -> Any:
        """Imports a file or folder as a commit: Session.import_() on a session of its own. The commit's
        id, or with `skip_unsupported` what was left out."""
        with self.session(branch) as made:
            found = made.import_(source, path, **options)
            about = f"Import {printable(os.path.basename(os.fsdecode(source)))}"
            commit = made.commit(message or (f"{about} as {found}" if isinstance(found, str) else about), author)
            return commit if isinstance(found, str) else found

    def export(self, dest: str | os.PathLike[str], path: str = "/", *, rev: str | None = None, **options: Any) -> None:
        """Writes a node of a version as a file or folder: Session.export()."""
        self.view(rev).export(dest, path, **options)


@ffi.def_extern(name="py_damage", error=1)
def _damage(me: Any, damage: Any) -> int:
    ffi.from_handle(me).append(records.Damage.of(damage))
    return 0


open = Repository
