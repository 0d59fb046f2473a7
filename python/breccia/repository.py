"""A repository: one file with the whole history of a hierarchy of arrays."""
from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from ._breccia import ffi, lib
from ._calls import Progress, flags, records
from ._credentials import Credentials, Giver, secret
from ._errors import InvalidError, NotFoundError, ReadOnlyError
from ._made.calls import RepositoryCalls, author_of
from ._native import Handles, Readback, file_and_rev, printable
from ._serve import Page, Serving
from .session import Session, box_of

if TYPE_CHECKING:
    from .zarr import Store


class Repository(RepositoryCalls, AbstractContextManager["Repository", None]):
    """The file at `path`, open. Every method may be called from any thread, and in a child of fork().

    `path`: FILE, or FILE@REV, which is open for reading only: view(), store() and export() show that version
    where they are not told another. `rev` is that REV, or None.
    `create`: makes the file where there is none; None: nothing is opened before it is used, as of a copy of pickle's.
    `wait`: seconds that a call waits for other processes (None: 30). `memory`: bytes of chunks that a call
    has in flight at most (0: 256 MiB). `threads`: of the pool that codecs run on (0: one per core).
    `progress`: True (tqdm, if it is there) or a function(phase, done, total), which long calls tell how far
    they are. `readback`: whether a chunk that was encoded is decoded again and compared before it is stored: True,
    False, or "sampled" (one of 16 chunks); None: as the repository's setting says.
    `credentials`: for chunks in buckets; None: those that the command would use, of the environment or the user's
    files. A mapping has "key" and "secret", perhaps "token" (or the names that s3fs, boto3 and obstore have for them),
    and "endpoint_url", the one server to which they belong (without it the server AWS_ENDPOINT_URL, or Amazon's own).
    A function gets a breccia.Server (endpoint, bucket, region), decides whether it may be connected to, and
    returns a mapping or raises; it is asked again when credentials have expired, on any thread. What it raises,
    the call raises. No text and no repr() has a secret; pickles have them.
    `cache`: a file that keeps chunks of buckets, so that they need not be asked for again, of at most `cache_bytes`
    (0: 1 GiB); repositories and processes may share it. None: BRECCIA_CACHE and BRECCIA_CACHE_BYTES; "": no file.
    `pipeline`: what runs the codecs: "batched" (None), or "serial", the reference, which runs one chunk at a time.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool | None = False, read_only: bool = False,
                 wait: float | None = None, memory: int = 0, threads: int = 0,
                 progress: Progress = None, readback: Readback = None, credentials: Credentials = None,
                 cache: str | os.PathLike[str] | None = None, cache_bytes: int = 0,
                 pipeline: str | dict[str, Any] | None = None) -> None:
        path, self.rev = file_and_rev(path)
        if self.rev is not None:
            if not self.rev:
                raise InvalidError(f"a version is missing behind {os.fsdecode(path)}@")
            read_only = True
        how = flags("OPEN", readonly=read_only, create=create and not os.path.exists(path))
        given = secret(credentials)
        self.handles = self._pool = Handles(path, flags=how, wait=wait, memory=memory, threads=threads,
                                            readback=readback, cache=cache, cache_bytes=cache_bytes,
                                            pipeline=pipeline, giver=None if given is None else Giver(given))
        self.path, self.read_only, self.handles.progress = self.handles.path, read_only, progress
        self._name = f"{self.path}@{self.rev}" if self.rev else self.path
        self._given = dict[str, Any](read_only=read_only, wait=wait, memory=memory, threads=threads, readback=readback,
                                      credentials=given, cache=cache, cache_bytes=cache_bytes, pipeline=pipeline)
        if create is not None:
            self.handles.give(self.handles.take())
            if self.rev is not None:
                try:
                    self.view().close()  # a version that does not exist
                except BaseException:
                    self.close()
                    raise

    def close(self) -> None:
        """Closes the file. A later call opens it again."""
        self.handles.close()

    def _for_servers(self) -> dict[str, Any]:
        """Returns the arguments that another object on this file needs to reach the same servers."""
        return {name: self._given[name] for name in ("credentials", "cache", "cache_bytes")}

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- views ----

    def session(self, branch: str | None = None, *, message: str | None = None, author: str | None = None,
                metadata: dict[str, Any] | None = None) -> Session:
        """Opens a private draft of a branch (None: the current one): nobody sees its changes before they are
        committed. As a context manager it commits at the end with `message`, and discards its changes on an
        exception."""
        branch = branch or self.head
        if self.read_only:
            return Session(self, "at", branch, key=self.resolve(branch))
        return Session(self, "private", branch, (message, author, metadata))

    def draft(self, branch: str | None = None, *, message: str | None = None, author: str | None = None,
              metadata: dict[str, Any] | None = None) -> Session:
        """Opens the changes of a branch that all its users share, over the commit at which they began: each user sees
        at once what another writes. In a repository that is open for reading only, the changes can be read."""
        return Session(self, "draft" if self.read_only else "shared", branch or self.head, (message, author, metadata))

    def view(self, rev: str | None = None) -> Session:
        """Opens a version for reading: a commit or a tag as it is, and a branch as its newest commit is at each read.
        None: the version that the repository was opened for, or the current branch. Uncommitted changes are in
        draft() and in the sessions that made them."""
        rev = rev or self.rev or self.head
        if rev != "HEAD":
            with suppress(NotFoundError, InvalidError):  # the name is not a branch
                return Session(self, "view", rev)
        return Session(self, "at", rev, key=self.resolve(rev))

    def store(self, rev: str | None = None, *, mode: str = "r") -> Store:
        """Returns a store for zarr-python and its users: mode "r" reads any version, as view() does; "r+" shows and
        writes a branch's shared draft, as draft() does. None: the version that the repository was opened for, or
        "main"."""
        from .zarr import Store
        if mode not in ("r", "r+", "a"):
            raise InvalidError(f'mode is "r" or "r+", not {mode!r}')
        if self.read_only and mode != "r":
            raise ReadOnlyError(f"{self.path} is open for reading only")
        return Store(self.path, rev or self.rev or "main", read_only=mode == "r",
                     **self._for_servers())

    def serve(self, *, port: int = 0, token: str | None = None) -> Serving:
        """Starts a server of this file for this machine alone, as the command's `serve` does: `.url` is its address,
        which has a secret part, `token` (None: a new one). It ends with a `with`, with close(), or this process."""
        cache = self._given["cache"]
        options = (f"--cache={os.fsdecode(cache)}",) if cache else ()
        return Serving(os.fsdecode(self.path), port=port, token=token, options=options)

    def ui(self, rev: str | None = None, *, height: int = 640) -> Page:
        """Starts a server and returns its page, which a notebook shows in a frame: history, arrays, changes. `rev`: the
        version that it shows first."""
        return Page(self.serve(), rev or self.rev, height)

    # ---- history ----

    def diff(self, a: str | None = None, b: str | None = None, *, path: str | None = None, key: Any = None,
             elements: bool = False, chunks: bool = False, values: int = 0, atol: float = 0, rtol: float = 0,
             progress: Progress = None) -> list[records.Change]:
        """Nodes that differ. `b` None: the current branch with its uncommitted changes; `a` None: what `b` is based on.
        With `elements` also how many elements differ, and by how much; with `chunks` too, in which chunks. `values`:
        how many of them are listed of an array. `key`: a basic selection of the array at `path`; only these elements
        are compared. `atol`, `rtol`: elements count as equal as np.isclose(a, b, equal_nan=True) has it."""
        sides = [lambda: self.draft() if b is None else self.view(b),
                 lambda: self.view(a or (self.head if b is None else f"{b}~1"))]
        return self._diff(a, b, path=path, elements=elements, chunks=chunks, values=values, atol=atol, rtol=rtol,
                          sel=box_of(path, key, *sides), progress=progress)

    def status(self) -> records.Status:
        """Returns the current branch's uncommitted changes, and the merge, pick or rebase that is open."""
        changes, state, moved = tuple(self.diff()), self.merge_state(), self._moved(branch := self.head)
        return records.Status(branch, not (changes or state or moved), changes, state, moved)

    # ---- merging ----

    def merge_continue(self, *, message: str | None = None, author: str | None = None,
                       skip: bool = False) -> records.MergeResult | records.PickResult:
        """Finishes the open operation: a merge, pick or revert becomes a commit, and a rebase continues (`skip`:
        without the commit that is in conflict). ConflictError while a conflict is open."""
        merges = (state := self.merge_state()) is None or state.op == "merge"
        done = self._continue(message, author_of(author) if merges else author, skip)
        return records.MergeResult("merged", done.commit, done.conflicts, done.draft) if merges else done

    # ---- the file ----

    def fsck(self, *, decode: bool = True, progress: Progress = None) -> records.FsckReport:
        """Reads everything and lists each fault. `decode` False: only stored bytes are compared."""
        found: list[records.Damage] = []
        me, checked = ffi.new_handle(found), ffi.new("uint64_t *")
        self._call(lib.brc_fsck, flags("FSCK", no_decode=not decode), lib.py_damage, ffi.NULL, me, checked,
                   progress=progress)
        return records.FsckReport(int(checked[0]), tuple(found))

    # ---- exchange ----

    def import_(self, source: str | os.PathLike[str], path: str | None = None, *, branch: str | None = None,
                message: str | None = None, author: str | None = None, **options: Any) -> Any:
        """Imports a file or folder as a commit, by Session.import_() on a session of its own. Returns the commit's
        id, or with `skip_unsupported` the parts that were left out."""
        with self.session(branch) as made:
            found = made.import_(source, path, **options)
            about = f"Import {printable(os.path.basename(os.fsdecode(source)))}"
            commit = made.commit(message or (f"{about} as {found}" if isinstance(found, str) else about), author)
            return commit if isinstance(found, str) else found

    def export(self, dest: str | os.PathLike[str], path: str = "/", *, rev: str | None = None, **options: Any) -> None:
        """Writes a node of a version as a file or folder, by Session.export()."""
        self.view(rev).export(dest, path, **options)


@ffi.def_extern(name="py_damage", error=1)
def _damage(me: Any, damage: Any) -> int:
    ffi.from_handle(me).append(records.Damage.of(damage))
    return 0


open = Repository
