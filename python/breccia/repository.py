"""A repository: one file with the whole history of a hierarchy of arrays."""
from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from . import _errors
from . import _records as records
from ._breccia import ffi, lib
from ._native import Handle, Handles, Private, Sessions, sized, string, text

if TYPE_CHECKING:
    from .session import Session
    from .zarr import Store

Progress = bool | Callable[[str, int, int], None] | None
Paths = str | Sequence[str] | None
R = TypeVar("R", records.MergeResult, records.PickResult)


class Repository:
    """The file at `path`, open. Every method may be called from any thread, and in a child of fork().

    `wait`: seconds that a call waits for other processes (None: 30). `memory`: bytes of chunks that a call
    has in flight at most (0: 256 MiB). `threads`: of the pool that codecs run on (0: one per core).
    `progress`: True (tqdm, if it is there) or a function(phase, done, total), which long calls tell how far
    they are.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, read_only: bool = False,
                 wait: float | None = None, memory: int = 0, threads: int = 0,
                 progress: Progress = None) -> None:
        flags = (lib.BRC_OPEN_READONLY if read_only else 0) | (lib.BRC_OPEN_CREATE if create else 0)
        if create and os.path.exists(path):
            flags &= ~lib.BRC_OPEN_CREATE
        self.handles = Handles(path, flags=flags, wait=wait, memory=memory, threads=threads)
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

    def _call(self, function: Callable[..., int], *args: Any) -> int:
        with self.handles.at_work() as handle:
            return handle.call(function, handle.repo, *args)

    def _long(self, progress: Progress = None) -> AbstractContextManager[Handle]:
        return self.handles.at_work(self.progress if progress is None else progress)

    # ---- views ----

    def session(self, branch: str | None = None, *, message: str | None = None, author: str | None = None,
                metadata: dict[str, Any] | None = None) -> Session:
        """A private draft of a branch (None: the current one): nobody sees its changes before they are
        committed. As a context manager it commits at the end with `message`, and discards on an exception."""
        from .session import Session
        branch = branch or self.head
        if self.read_only:
            commit = self.resolve(branch)
            return Session(self, "at", branch, self._sessions(commit, lib.BRC_SESSION_AT), commit=commit)
        return Session(self, "private", branch, Private(self.handles, branch), message=message, author=author,
                       metadata=metadata)

    def draft(self, branch: str | None = None, *, message: str | None = None, author: str | None = None,
              metadata: dict[str, Any] | None = None) -> Session:
        """The changes of a branch that all its users share: what one writes the others see at once."""
        from .session import Session
        branch = branch or self.head
        return Session(self, "shared", branch, self._sessions(branch, lib.BRC_SESSION_WRITE), message=message,
                       author=author, metadata=metadata)

    def view(self, rev: str | None = None) -> Session:
        """What a version has, to read: a commit or a tag as it is; a branch with its shared uncommitted
        changes."""
        from .session import Session
        rev = rev or self.head
        if rev in self.branches():
            return Session(self, "view", rev, self._sessions(rev, lib.BRC_SESSION_VIEW))
        commit = self.resolve(rev)
        return Session(self, "at", rev, self._sessions(commit, lib.BRC_SESSION_AT), commit=commit)

    def _sessions(self, rev: str, mode: int) -> Sessions:
        def opener(handle: Handle) -> Any:
            out = ffi.new("brc_session **")
            handle.call(lib.brc_session_open, out, handle.repo, text(rev), mode)
            return out[0]
        made = Sessions(self.handles, opener)
        made.give(made.take())
        return made

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
        out = ffi.new("const char **")
        with self.handles.at_work() as handle:
            handle.call(lib.brc_head, out, handle.repo)
            return string(out[0])

    def refs(self) -> list[records.Ref]:
        """Branches, then tags, by name."""
        with self.handles.at_work() as handle:
            out = ffi.new("brc_iter **")
            handle.call(lib.brc_refs, out, handle.repo)
            return handle.items(out, lib.brc_refs_next, "brc_ref", records.Ref.of)

    def branches(self) -> dict[str, str]:
        """Their commits by their names; "" for a branch without one."""
        return {ref.name: ref.id for ref in self.refs() if not ref.is_tag}

    def tags(self) -> dict[str, str]:
        return {ref.name: ref.id for ref in self.refs() if ref.is_tag}

    def branch(self, name: str, rev: str | None = None) -> None:
        """Makes a branch at a version (None: the current branch's)."""
        self._call(lib.brc_branch_create, text(name), text(rev))

    def delete_branch(self, name: str, *, force: bool = False) -> None:
        """Without `force` only a branch whose commits another branch or tag has, and without uncommitted
        changes."""
        self._call(lib.brc_branch_delete, text(name), int(force))

    def rename_branch(self, name: str, to: str) -> None:
        self._call(lib.brc_branch_rename, text(name), text(to))

    def tag(self, name: str, rev: str | None = None, message: str | None = None) -> None:
        self._call(lib.brc_tag_create, text(name), text(rev), text(message))

    def delete_tag(self, name: str, *, force: bool = False) -> None:
        self._call(lib.brc_tag_delete, text(name), int(force))

    def rename_tag(self, name: str, to: str) -> None:
        self._call(lib.brc_tag_rename, text(name), text(to))

    def switch(self, branch: str, *, discard: bool = False) -> None:
        """Makes another branch the current one, for everyone who uses the file. ConflictError if the current
        one has uncommitted changes, which `discard` drops."""
        self._call(lib.brc_switch, text(branch), int(discard))

    def reset(self, rev: str, *, hard: bool = False, expect: str | None = None) -> None:
        """Moves the current branch to a version; with `hard` uncommitted changes go. StaleError if the branch
        is not at `expect`."""
        self._call(lib.brc_reset, text(rev), int(hard), ffi.NULL if expect is None else self._oid(expect))

    def _oid(self, rev: str) -> Any:
        out = ffi.new("brc_oid *")
        self._call_out(lib.brc_resolve, out, text(rev))
        return out

    def resolve(self, rev: str) -> str:
        """The id of the commit that a name, an abbreviated id, BRANCH~2 or BRANCH@{TIME} means."""
        return records.oid(self._oid(rev)[0])

    # ---- history ----

    def commit(self, rev: str = "HEAD") -> records.Commit:
        """The commit of a version."""
        out = ffi.new("brc_commit **")
        with self.handles.at_work() as handle:
            handle.call(lib.brc_commit_read, out, handle.repo, self._oid(rev))
            try:
                return records.Commit.of(out[0])
            finally:
                lib.brc_commit_free(out[0])

    def log(self, rev: str | None = None, *, path: str | None = None, full: bool = False,
            limit: int | None = None) -> list[records.Commit]:
        """Commits, the newest first: all that `rev` (None: the current branch) has, or "A..B". With `path`
        those that changed that node or something under it; `full`: also what a merge gave up."""
        name = text(path)
        options = sized("brc_log_opts", path=name, flags=int(full))
        with self._long() as handle:
            out = ffi.new("brc_iter **")
            handle.call(lib.brc_log, out, handle.repo, text(rev), options)
            return handle.items(out, lib.brc_log_next, "brc_commit", records.Commit.of, limit)

    def show(self, rev: str = "HEAD", *, elements: bool = False) -> records.Shown:
        """A commit and what it changed."""
        return records.Shown(self.commit(rev), tuple(self.diff(None, rev, elements=elements)))

    def diff(self, a: str | None = None, b: str | None = None, *, path: str | None = None,
             elements: bool = False, progress: Progress = None) -> list[records.Change]:
        """Nodes that differ. `b` None: the current branch with its uncommitted changes; `a` None: what `b` is
        based on. With `elements` also how many elements differ, and by how much."""
        name = text(path)
        options = sized("brc_diff_opts", path=name, flags=lib.BRC_DIFF_ELEMENTS if elements else 0)
        with self._long(progress) as handle:
            out = ffi.new("brc_iter **")
            handle.call(lib.brc_diff, out, handle.repo, text(a), text(b), options)
            return handle.items(out, lib.brc_diff_next, "brc_change", records.Change.of)

    def status(self) -> records.Status:
        """The current branch's uncommitted changes, and the merge or the like that is open."""
        changes = tuple(self.diff())
        state = self.merge_state()
        return records.Status(self.head, not changes and state is None, changes, state)

    def drafts(self) -> list[records.Draft]:
        """Uncommitted changes in the whole file, the oldest first."""
        with self.handles.at_work() as handle:
            out = ffi.new("brc_iter **")
            handle.call(lib.brc_drafts, out, handle.repo)
            return handle.items(out, lib.brc_drafts_next, "brc_draft", records.Draft.of)

    def adopt(self, draft: int) -> None:
        """Makes private changes, of a process that has ended, part of what their branch shares."""
        self._call(lib.brc_draft_adopt, draft)

    def drop(self, draft: int) -> None:
        """Drops uncommitted changes."""
        self._call(lib.brc_draft_drop, draft)

    # ---- merging ----

    def merge(self, rev: str, *, ours: bool = False, theirs: bool = False, paths: Paths = None,
              concat: bool = False, fast_forward: bool = True, dry_run: bool = False, keep: bool = False,
              message: str | None = None, author: str | None = None, time: datetime.datetime | None = None,
              progress: Progress = None) -> records.MergeResult:
        """Merges a version into the current branch, element by element.

        `ours`, `theirs` settle conflicts for the branch or for what is merged, with `paths` only at and under
        these. `concat`: what both appended to an array comes one after the other. `dry_run`: nothing is
        changed. Conflicts that are left are a ConflictError that lists them, and nothing has changed; with
        `keep` the merge stays open: settle it (merge_settle, or by writing), then merge_continue() or
        merge_abort().
        """
        flags = (lib.BRC_MERGE_OURS * ours | lib.BRC_MERGE_THEIRS * theirs | lib.BRC_MERGE_CONCAT * concat
                 | lib.BRC_MERGE_NO_FF * (not fast_forward) | lib.BRC_MERGE_DRY_RUN * dry_run
                 | lib.BRC_MERGE_KEEP * keep)
        with self._long(progress) as handle, _merge_options(flags, message, author, time, paths) as options:
            result = self._merged(handle, lib.brc_merge, handle.repo, text(rev), options)
        return result if keep or dry_run else _settled(result)

    @staticmethod
    def _merged(handle: Handle, function: Any, *args: Any) -> records.MergeResult:
        out, found = sized("brc_merge_result"), ffi.new("brc_iter **")
        handle.call(function, out, found, *args)
        conflicts = handle.items(found, lib.brc_conflicts_next, "brc_conflict", records.Conflict.of)
        return records.MergeResult(records.MERGED[out.result], records.oid(out.commit), tuple(conflicts),
                                   out.draft)

    @staticmethod
    def _picked(handle: Handle, function: Any, *args: Any) -> records.PickResult:
        out, found = sized("brc_pick_result"), ffi.new("brc_iter **")
        handle.call(function, out, found, *args)
        conflicts = handle.items(found, lib.brc_conflicts_next, "brc_conflict", records.Conflict.of)
        return records.PickResult(records.PICKED[out.result], records.oid(out.commit), records.oid(out.at),
                                  out.made, out.skipped, out.left, tuple(conflicts), out.draft)

    def _pick(self, function: Any, rev: str, ours: bool, theirs: bool, paths: Paths, keep: bool,
              no_commit: bool, mainline: int, message: str | None, author: str | None,
              time: datetime.datetime | None) -> records.PickResult:
        flags = (lib.BRC_PICK_OURS * ours | lib.BRC_PICK_THEIRS * theirs | lib.BRC_PICK_KEEP * keep
                 | lib.BRC_PICK_NO_COMMIT * no_commit)
        with self._long() as handle, _merge_options(flags, message, author, time, paths,
                                                    "brc_pick_opts") as options:
            options.mainline = mainline
            result = self._picked(handle, function, handle.repo, text(rev), options)
        return result if keep else _settled(result)

    def cherry_pick(self, rev: str, *, ours: bool = False, theirs: bool = False, paths: Paths = None,
                    keep: bool = False, no_commit: bool = False, mainline: int = 0,
                    message: str | None = None, author: str | None = None,
                    time: datetime.datetime | None = None) -> records.PickResult:
        """Does what a commit changed again on the current branch. `mainline`: of a merge, the parent (from 1)
        from which its change is told. Conflicts are as in merge()."""
        return self._pick(lib.brc_pick, rev, ours, theirs, paths, keep, no_commit, mainline, message, author,
                          time)

    def revert(self, rev: str, *, ours: bool = False, theirs: bool = False, paths: Paths = None,
               keep: bool = False, no_commit: bool = False, mainline: int = 0, message: str | None = None,
               author: str | None = None, time: datetime.datetime | None = None) -> records.PickResult:
        """Takes back what a commit changed, by a new commit."""
        return self._pick(lib.brc_revert, rev, ours, theirs, paths, keep, no_commit, mainline, message,
                          author, time)

    def rebase(self, onto: str, *, ours: bool = False, theirs: bool = False, paths: Paths = None,
               keep: bool = False) -> records.PickResult:
        """Moves the current branch to `onto` with its own commits done again there."""
        return self._pick(lib.brc_rebase, onto, ours, theirs, paths, keep, False, 0, None, None, None)

    def merge_state(self) -> records.OpenState | None:
        """The merge, cherry-pick, revert or rebase that is open on the current branch."""
        out, found = sized("brc_open_state"), ffi.new("brc_iter **")
        with self.handles.at_work() as handle:
            handle.call(lib.brc_merge_state, out, found, handle.repo)
            conflicts = handle.items(found, lib.brc_conflicts_next, "brc_conflict", records.Conflict.of)
        if out.draft == 0:
            return None
        return records.OpenState(string(out.op), string(out.rev), records.oid(out.other), records.oid(out.at),
                                 out.draft, tuple(conflicts), out.made, out.skipped, out.left)

    def merge_settle(self, side: str, paths: Paths = None) -> int:
        """Settles what is open for "ours" or "theirs", at and under `paths` or everywhere. How many
        conflicts."""
        if side not in ("ours", "theirs"):
            raise ValueError(f'side is "ours" or "theirs", not {side!r}')
        out = ffi.new("uint64_t *")
        which = lib.BRC_MERGE_OURS if side == "ours" else lib.BRC_MERGE_THEIRS
        names, keep = _names(paths)
        self._call_out(lib.brc_merge_settle, out, which, names, len(keep))
        return int(out[0])

    def _call_out(self, function: Any, out: Any, *args: Any) -> int:
        with self.handles.at_work() as handle:
            return handle.call(function, out, handle.repo, *args)

    def merge_continue(self, *, message: str | None = None, author: str | None = None,
                       skip: bool = False) -> records.MergeResult | records.PickResult:
        """Ends what is open: the merge, pick or revert becomes a commit, a rebase goes on (`skip`: without
        the commit that is in conflict). ConflictError while something is open."""
        state = self.merge_state()
        op = state.op if state else "merge"
        with self._long() as handle:
            if op == "rebase":
                return _settled(self._picked(handle, lib.brc_rebase_continue, handle.repo,
                                             lib.BRC_REBASE_SKIP if skip else 0))
            kind = "brc_merge_opts" if op == "merge" else "brc_pick_opts"
            with _merge_options(0, message, author, None, None, kind) as options:
                if op == "merge":
                    return _settled(self._merged(handle, lib.brc_merge_continue, handle.repo, options))
                return _settled(self._picked(handle, lib.brc_pick_continue, handle.repo, options))

    def merge_abort(self) -> None:
        """Drops what is open."""
        self._call(lib.brc_merge_abort)

    # ---- operations ----

    def undo(self, expect: int = 0) -> int:
        """Takes back the last operation on branches and tags; again: one further back. Its number. `expect`:
        the operation that is to be taken back, else StaleError."""
        return self._undo(0, expect)

    def redo(self, expect: int = 0) -> int:
        """Takes back the last undo()."""
        return self._undo(lib.BRC_UNDO_REDO, expect)

    def _undo(self, flags: int, expect: int) -> int:
        out = ffi.new("int64_t *")
        self._call_out(lib.brc_undo, out, flags, expect)
        return int(out[0])

    def oplog(self, limit: int | None = None) -> list[records.Operation]:
        """Changes of branches and tags, the newest first."""
        with self.handles.at_work() as handle:
            out = ffi.new("brc_iter **")
            handle.call(lib.brc_oplog, out, handle.repo)
            return handle.items(out, lib.brc_oplog_next, "brc_op", records.Operation.of, limit)

    def bisect(self, mark: str | None = None, rev: str | None = None) -> records.Bisection:
        """Finds the commit that brought a change: "start", then "good" and "bad" versions (None: the one that
        was to be looked at, or the current branch), "skip" for one that cannot be judged, "reset" at the
        end. What is known."""
        marks = ("", "start", "good", "bad", "skip", "reset")
        if (mark or "") not in marks:
            raise ValueError(f"mark is one of {', '.join(marks[1:])}, not {mark!r}")
        out = sized("brc_bisect_result")
        self._call_out(lib.brc_bisect, out, marks.index(mark or ""), text(rev))
        return records.Bisection.of(out)

    # ---- the file ----

    def expire(self, *, keep_last: int = 0, keep_daily: int = 0, keep_weekly: int = 0, keep_monthly: int = 0,
               dry_run: bool = False, progress: Progress = None) -> records.ExpireReport:
        """Thins history: of each branch the newest `keep_last` commits stay, and the newest of so many days,
        weeks and months. gc() frees what has expired."""
        options = sized("brc_expire_opts", keep_last=keep_last, keep_daily=keep_daily,
                        keep_weekly=keep_weekly, keep_monthly=keep_monthly, flags=int(dry_run))
        out, found = sized("brc_expire_report"), ffi.new("brc_iter **")
        with self._long(progress) as handle:
            handle.call(lib.brc_expire, out, found, handle.repo, options)
            commits = handle.items(found, lib.brc_expire_next, "brc_expired", records.Expired.of)
        return records.ExpireReport(out.kept, out.expired, out.bytes, tuple(commits))

    def gc(self, *, dry_run: bool = False, expunge: bool = False, keep: str | None = None,
           progress: Progress = None) -> records.GcReport:
        """Removes what nothing needs any more. `keep`: how long operations can be undone, this time ("7d",
        "0"). `expunge`: what went leaves no trace in the file."""
        window = text(keep)
        options = sized("brc_gc_opts", flags=lib.BRC_GC_DRY_RUN * dry_run | lib.BRC_GC_EXPUNGE * expunge,
                        keep=window)
        out = sized("brc_gc_report")
        with self._long(progress) as handle:
            handle.call(lib.brc_gc, handle.repo, options, out)
        return records.GcReport(out.objects_removed, out.bytes_freed, out.file_bytes)

    def du(self, *, progress: Progress = None) -> records.Usage:
        """What the file's bytes are for, and what each array and each commit holds."""
        out, found = sized("brc_du_report"), ffi.new("brc_iter **")
        with self._long(progress) as handle:
            handle.call(lib.brc_du, out, found, handle.repo)
            items = handle.items(found, lib.brc_du_next, "brc_du_item", records.Held.of)
        return records.Usage(out.versions, out.uncommitted, out.log, out.garbage, out.stored, tuple(items))

    def fsck(self, *, decode: bool = True, progress: Progress = None) -> records.FsckReport:
        """Reads everything and lists each fault. `decode` False: only what is stored is compared."""
        found: list[records.Damage] = []
        me = ffi.new_handle(found)
        checked = ffi.new("uint64_t *")
        with self._long(progress) as handle:
            handle.call(lib.brc_fsck, handle.repo, 0 if decode else lib.BRC_FSCK_NO_DECODE, lib.py_damage, me,
                        checked)
        return records.FsckReport(int(checked[0]), tuple(found))

    def info(self) -> records.Info:
        """How many commits, objects and chunks there are, and their bytes."""
        out = sized("brc_stats")
        self._call(lib.brc_stat, out)
        return records.Info(*(getattr(out, name) for name in records.Info._fields))

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


class Config(MutableMapping[str, str]):
    """Settings by name. Deleting one sets its default."""

    NAMES = "journal", "window", "codecs", "verify", "backend"

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def __getitem__(self, name: str) -> str:
        with self._repository.handles.at_work() as handle:
            return handle.take_buf(lib.brc_config_get, handle.repo, text(name)).decode()

    def __setitem__(self, name: str, value: Any) -> None:
        given = value if isinstance(value, str) else json.dumps(value)
        self._repository._call(lib.brc_config_set, text(name), text(given))

    def __delitem__(self, name: str) -> None:
        self._repository._call(lib.brc_config_set, text(name), ffi.NULL)

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)

    def __len__(self) -> int:
        return len(self.NAMES)

    def __repr__(self) -> str:
        return repr(dict(self))


@ffi.def_extern(name="py_damage", error=1)
def _damage(me: Any, damage: Any) -> int:
    ffi.from_handle(me).append(records.Damage.of(damage))
    return 0


def _names(paths: Paths) -> tuple[Any, list[Any]]:
    """Paths for C, and what keeps them."""
    keep = [text(p) for p in ([paths] if isinstance(paths, str) else paths or ())]
    return ffi.new("const char *[]", keep) if keep else ffi.NULL, keep


@contextmanager
def _merge_options(flags: int, message: str | None, author: str | None, time: datetime.datetime | None,
                   paths: Paths, kind: str = "brc_merge_opts") -> Iterator[Any]:
    names, keep = _names(paths)
    words = text(message), text(author)
    yield sized(kind, flags=flags, message=words[0], author=words[1], time_us=records.microseconds(time),
                paths=names, npaths=len(keep))


def _settled(result: R) -> R:
    if result.result == "conflict":
        n = len(result.conflicts)
        raise _errors.ConflictError(f"{n} {'place is' if n == 1 else 'places are'} in conflict: merge with "
                                    "ours=, theirs= or keep=True to settle them", result.conflicts)
    return result


def _reopen(path: str, options: dict[str, Any]) -> Repository:
    return Repository(path, **options)


def open(path: str | os.PathLike[str], *, create: bool = False, read_only: bool = False,
         wait: float | None = None, memory: int = 0, threads: int = 0,
         progress: Progress = None) -> Repository:
    """Opens a repository; with `create` makes the file if it is not there. See Repository."""
    return Repository(path, create=create, read_only=read_only, wait=wait, memory=memory, threads=threads,
                      progress=progress)
