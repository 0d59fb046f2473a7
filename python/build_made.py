"""Makes what follows from the C headers alone: breccia/_made/errors.py, records.py and calls.py.

An exception stands for each code, with what the header says of it. A record is a structure of the header as a
NamedTuple: its fields' types, and how they are read, come from the structure. A call is a method that is no more than a
function of the header: what it passes on, and in which order, comes from the function. `setup.py` runs this.

`python3 build_made.py FOLDER` writes all there.
"""
import pathlib
import re
import sys

import build_ffi

# By code: the class, and what Python's users catch as well.
ERRORS = {
    "EINVAL": "InvalidError ValueError", "EMISUSE": "MisuseError RuntimeError", "ENOTFOUND": "NotFoundError KeyError",
    "EEXISTS": "ExistsError FileExistsError", "EAMBIGUOUS": "AmbiguousError ValueError", "ECONFLICT": "ConflictError",
    "ESTALE": "StaleError", "EBUSY": "BusyError TimeoutError", "EREADONLY": "ReadOnlyError PermissionError",
    "ECORRUPT": "CorruptError", "EFORMAT": "FormatError ValueError",
    "EUNSUPPORTED": "UnsupportedError NotImplementedError", "ELIMIT": "LimitError ValueError",
    "ENOMEM": "NoMemoryError MemoryError", "EIO": "InputOutputError OSError", "ENOSPACE": "NoSpaceError OSError",
    "EINTERRUPT": "InterruptError", "EINTERNAL": "InternalError RuntimeError", "ECOLLISION": "CollisionError",
}

# By name (Base...: _records.py adds to it): the structure, its fields in their order, and what the record is.
#   name, name=member     a member (of another name); "?" behind it: None where it is NULL
#   name=FLAG             whether BRC_FLAG is set
#   name=PREFIX|word|...  the word of an enumerator: "up to date" is BRC_PREFIX_UP_TO_DATE; of bits, a tuple
#   name[Record]          what the call lists beside the structure
#   name: type            what _records.py sets, or who makes a record without a structure
RECORDS = '''
BaseCommit brc_commit: id, message, author, time, parents, metadata=meta_json, expired=PAST_EXPIRED, path?
    A version: who made it, when, and from what. `expired`: its parents have expired, and `parents` are
    the nearest ancestors that are kept. `path`: of a log of one node, where that was in this version.
Ref brc_ref: name, id, is_tag=REF_TAG, current=REF_CURRENT, message
    A branch or tag. `id` is "" for a branch without a commit.
Elements brc_change: changed=elements_changed, added=elements_added, removed=elements_removed, max_abs,
        mean_abs, rms, first, last, why=elements_why?, boxes: Any=None, chunks: Any=None
    How elements differ. `first` and `last` are corners of the box around those that changed; `boxes` are
    pairs of corners of boxes that hold them all, and `chunks` pairs of a chunk's index and how many changed in the
    chunk. `mean_abs` and `rms` are of the differences of those that changed. `why` says why they could not be
    compared.
Differing: index: tuple[int; ...], before: Any, now: Any, theirs: Any=None
    An element in two versions; of a conflict in the base, ours and theirs.
BaseChange brc_change: path, what=|added|removed|moved|changed, kind=|group|array, moved_from=from?, metadata,
        storage_only=CHANGE_STORAGE, chunks_added, chunks_removed, chunks_changed,
        elements: Elements | None=None, values: Any=None, more: Any=None
    A node that differs between two versions. `metadata` are JSON pointers into zarr.json; `storage_only`:
    codecs or backend, no value differs. `values` are the first elements that
    differ, each a Differing; `more`: there are others.
BaseConflict brc_conflict: path, kind, key?, settled: str | None=None, child: Any=None, elements: Any=None,
        values: Any=None
    Something that a merge cannot decide. `settled`: None while it is open, "ours", "theirs", "by hand".
    `child`: of Session.join(), what it was given. `elements`: of one of the first chunks, how many elements both
    sides changed; `values` are the first of them, each a Differing.
MergeResult brc_merge_result: result=MERGE|up to date|fast-forward|merged|conflict, commit,
        conflicts[Conflict], draft
    `result`: "up to date", "fast-forward", "merged" or "conflict".
PickResult brc_pick_result: result=PICK|nothing|fast-forward|committed|uncommitted|conflict, commit, at,
        made, skipped, left, conflicts[Conflict], draft
    `result`: "nothing", "fast-forward", "committed", "uncommitted" or "conflict".
BaseOpenState brc_open_state: op, rev, other, at, draft, conflicts[Conflict], made, skipped, left
    A merge, cherry-pick, revert or rebase that is neither done nor dropped.
Draft brc_draft: id, branch, owner=OWNER|unknown|alive|dead?DRAFT_OWNED, pid=owner_pid, time, nodes,
        stale=DRAFT_STALE, op?, rewriting=array?, parent, orphan=DRAFT_ORPHAN
    Uncommitted changes. `owner`: "alive", "dead", "unknown", or None for what a branch's sessions share.
    `parent`: of a child of Session.fork() the draft whose it is, else 0; `orphan`: that is gone, and what the
    child holds is left of it: adopt() takes it.
Operation brc_op: id, operation, time, what, name, is_tag=OP_TAG, before=from, after=to, undoes, restores,
        draft
    One change of a branch or tag. Those of one call have one `operation`.
DraftOperation brc_draft_op: id, branch, text, time, after, undone=DRAFT_OP_UNDONE
    One operation on what is not committed, which undo(expect=-id) takes back; `undone`: that was done, and
    redo() restores it. `after`: the id of the last Operation before it.
Bisection brc_bisect_result: state=BISECT|none|waiting|next|found|open, at, left, good, skipped,
        has_bad=BISECT_HAS_BAD
    `state`: "none", "waiting", "next" (look at `at`), "found" (`at` brought the change) or "open" (only
    versions that were skipped are left).
Blamed brc_blamed: first, count, commit, time, author, before=BLAME_BEFORE
    A chunk by its place in the grid, or `count` elements from `first` on, and the commit that changed it
    last; `before`: or a commit before it that has expired.
BaseStats: of: str, count: int, nan: int, infinite: int, fill: int, min: Any, max: Any, mean: Any, std: float,
        histogram: tuple[Any; Any], values: dict[Any; int]
    What the elements of an array come to. `of`: "values", "magnitudes" (of complex numbers) or "lengths" (of
    texts and bytes). NaN and not-a-time are in `nan` and perhaps in `fill`, and nowhere else; without other
    elements, `min` and `max` are None. `histogram` is (counts, edges), as np.histogram() gives; `values` says
    how often each value is there, of integers and booleans that lie within 256 of each other.
Expired brc_expired: id, time, kept=KEPT|tip|tag|in use|last|daily|weekly|monthly
    A commit that was looked at: `kept` says why it stays; empty: it expires.
ExpireReport brc_expire_report: kept, expired, bytes, commits[Expired]
    How many commits stay and go. `bytes`: of a dry run, what would be free.
BackupReport brc_backup_report: bytes_copied, objects_copied, objects_checked, file_bytes,
        incremental=BACKUP_INCREMENTAL
    What a backup copied, and how many objects were read back from it. `incremental`: it was an older backup.
GcReport brc_gc_report: objects_removed, bytes_freed, file_bytes, past_versions
    What went, and the file's length afterwards.
RepackReport brc_repack_report: objects, bytes_before, bytes_after, sampled, unreadable, rows, misfits
    How many objects were stored again, and their bytes before and after; of a dry run `bytes_after` is estimated from
    `sampled` objects where encodings change. `rows`: how many were put together. `misfits`: arrays, by their documents,
    that the codecs do not fit.
Held brc_du_item: path?, id, bytes, alone
    What an array (`path`) or a commit (`id`) holds, and what of it nothing else does, in bytes.
Usage brc_du_report: versions, uncommitted, log, garbage, stored, items[Held], outside
    What the file's bytes are for. `outside`: how many of `stored` lie outside of the file.
Damage brc_damage: id, kind, missing=DAMAGE_MISSING, used_by, message
    A fault that was found, and who uses what is damaged.
Info brc_stats: commits, objects, chunks, stored_bytes, logical_bytes, file_bytes, chunk_refs, log_bytes,
        outside_chunks, outside_bytes, deltas, delta_depth
    Of the whole file; sizes in bytes.
SessionInfo brc_session_info: mode, commit, draft, changes
    What a session shows: a commit, and what is uncommitted: its number (0: there is none), and a count that grows.
Node brc_node: path, kind=|group|array
    A node of a list.
FsckReport: checked: int, damage: tuple[Damage; ...]
    `damage` is empty where the file is whole.
Server brc_server: kind, endpoint, bucket, region, standard=SERVER_STANDARD
    A server that the chunks of a repository lie on, as its file says. `standard`: it is Amazon's own of the region.
Shown: commit: BaseCommit, changes: tuple[BaseChange; ...]
    A commit and what it changed, from its first parent.
Status: branch: str, clean: bool, changes: tuple[BaseChange; ...], state: BaseOpenState | None=None, moved: bool=False
    Of uncommitted changes. `moved`: the branch has commits since they began, which they hide from the shared
    draft and from views of the branch until a commit merges them; `clean` is False then.
'''

# By class: methods, the function of each, and what it does.
#   name, name?           text; "?": None is the default. In a function's order, or members of its options
#   name~                 who it is: text; None: whoever runs this, as of the command
#   name@, name@="/"      a path from the group
#   name/, name!          a file's name; a version, whose id is passed on
#   name: type=default    a value of another type
#   name=FLAG, NAME=FLAG  sets BRC_FLAG where it is true; always
#   name=!FLAG, name*     sets BRC_FLAG where it is false; one path or more
#   name{}, name{}?       JSON of any value, or text; "?": None is NULL
#   name?=PREFIX|word|... the enumerator of a word; None: of the first
#   limit, progress, time how many are listed; who is told how far it is; of a commit
# `-> [Record]` is listed, `-> Record` written; else a number, as Python's type. Conflicts in a result are an exception,
# unless `keep` is set. `:=` stands before what is no more than an expression, of a method or a property.
# `name: type = member` is a property that an array's description says, and
# `, function` sets.
CALLS = '''
Array:
name: str := str(self.path.rpartition("/")[2])
    The last part of its path.
attrs: Attributes := Attributes(self.session, self.path)
    The attributes, as a mapping that can be changed.
__reduce__() -> tuple[Any, ...] := (type(self), (self.session, self.path))
    In another process it is opened when it is used.
__repr__() -> str := printable(f"<breccia.Array {self.path} {'×'.join(map(str, self._form.shape)) or 'scalar'}
        {self._form.name}>")
    Its shape and type.
__float__() -> float := float(np.asarray(self).item())
    Of one element.
__int__() -> int := int(np.asarray(self).item())
    Of one element.
__dlpack_device__() -> tuple[int, int] := (1, 0)
    The processor's memory.
shape: tuple[int, ...] := self._now().shape
    How long each axis is.
dtype: np.dtype[Any] := self._form.check(self.path)
    NumPy's type of the elements. Raises UnsupportedError where there is none.
data_type: str := self._form.name
    Zarr's name of the type, or its JSON object.
ndim: int := len(self._form.shape)
    How many axes there are.
size: int := math.prod(self.shape)
    How many elements there are.
nbytes: int := self.size * self.dtype.itemsize
    Bytes of the elements in memory; of variable length, of NumPy's array of them.
metadata: dict[str, Any] := json.loads(self.session._buf(lib.brc_node_json, text(self.path)))
    The array's zarr.json.
dimension_names: tuple[str | None, ...] | None := None if (n := self.metadata.get("dimension_names")) is None
        else tuple(n)
    The names of the axes; None: they have none.
nchunks_initialized: int := self._stat()[0]
    How many chunks are stored: those of fill values alone are not.
nbytes_stored: int := self._stat()[1]
    How many bytes the chunks take in the file.
chunks: tuple[int, ...] = chunk
    The shape of the chunks: of a sharded array of those within the shards, of an irregular grid of the
    largest.
shards: tuple[int, ...] | None = shard
    The shape of the shards; None: chunks are stored by themselves.
cdata_shape: tuple[int, ...] = grid
    How many chunks there are along each axis.
codecs: list[dict[str, Any]] = codecs_json, set_codecs
    The codecs of chunks that are written from now on, as zarr.json has them. Setting them leaves stored
    chunks as they are; `set_codecs(codecs, rewrite=True)` stores them anew.
backend: dict[str, Any] = backend_json, _set_backend
    Where chunks go that are written from now on: {"name": ..., "configuration": ...}. Can be set, also by
    the name alone.
set_codecs(value{}, *, rewrite: bool=False, progress) = brc_array_set_codecs
    Codecs for chunks that are written from now on; with `rewrite` also for those that are stored.
_set_backend(value{}?) = brc_array_set_backend
    Sets `backend`.

Repository:
__reduce__() -> Any := (partial(self.__class__, self._name, create=None, **self._given), ())
    In another process it is opened when it is used.
__eq__(other: object) -> bool := isinstance(other, RepositoryCalls) and self._same() == other._same()
    Of the same file, with the same options.
__hash__() -> int := hash(self.path)
    As equal ones have.
_same() -> Any := (self._name, self._given)
    What equal ones have in common.
__repr__() -> str := f"<breccia.Repository {self.path}>"
    The file.
_moved(branch) -> bool := any(d.stale and d.owner is d.op is None and d.branch == branch for d in self.drafts())
    Whether it has commits since its shared changes began.
merge_state() -> records.OpenState | None := (s if (s := self._report(records.OpenState,
        lib.brc_merge_state)).draft else None)
    The merge, cherry-pick, revert or rebase that is open on the current branch.
_side(side) -> int := word("MERGE", "side", side, "ours", "theirs")
    For whom something is settled.
merge_settle(side, paths*) -> int := self._out("uint64_t", lib.brc_merge_settle, self._side(side), (o :=
        options("brc_merge_opts", paths=paths)).paths, o.npaths)[0]
    Settles what is open for "ours" or "theirs", at and under `paths` or everywhere. How many conflicts.
config: Config := Config(self)
    The repository's settings: "journal", "window", "codecs", "verify", "backend".
head: str := self._text(lib.brc_head)
    The name of the current branch.
branches() -> dict[str, str] := {ref.name: ref.id for ref in self.refs() if not ref.is_tag}
    Their commits by their names; "" for a branch without one.
tags() -> dict[str, str] := {ref.name: ref.id for ref in self.refs() if ref.is_tag}
    The commits of tags by their names.
commit(rev="HEAD") -> records.Commit := self.log(self.resolve(rev), limit=1)[0]
    The commit of a version.
show(rev="HEAD", *, elements: bool=False) -> records.Shown := records.Shown(self.commit(rev),
        tuple(self.diff(None, rev, elements=elements)))
    A commit and what it changed.
refs() -> [Ref] = brc_refs
    Branches, then tags, by name.
branch(name, rev?) = brc_ref_create
    Makes a branch at a version (None: the current branch's).
delete_branch(name, *, force=DELETE_FORCE) = brc_ref_delete
    Without `force` only a branch whose commits another branch or tag has, and without uncommitted
    changes.
rename_branch(name, to) = brc_ref_rename
    Gives a branch another name.
tag(name, rev?, message?, TAG=REF_TAG) = brc_ref_create
    Makes a tag at a version (None: the current branch's).
delete_tag(name, *, force=DELETE_FORCE, TAG=REF_TAG) = brc_ref_delete
    As delete_branch().
rename_tag(name, to, TAG=REF_TAG) = brc_ref_rename
    Gives a tag another name.
switch(branch, *, discard=SWITCH_DISCARD, carry=SWITCH_CARRY) = brc_switch
    Makes another branch the current one, for everyone who uses the file. ConflictError if the current one
    has uncommitted changes, which `discard` drops.
log(rev?, *, path?, full=LOG_FULL, limit) -> [Commit] = brc_log
    Commits, the newest first: all that `rev` (None: the current branch) has, or "A..B". With `path` those
    that changed that node or something under it; `full`: also what a merge gave up.
_log(rev?, *, path?, sel: Any=None, limit) -> [Commit] = brc_log
    Those that changed the selected elements.
_diff(a?, b?, *, path?, elements=DIFF_ELEMENTS, chunks=DIFF_CHUNKS, moved=DIFF_MOVED, added=DIFF_ADDED,
        values: int=0, atol: float=0, rtol: float=0, sel: Any=None, progress) -> [Change] = brc_diff
    As diff(). `moved`: from where the node was; `added`: `values` of one version alone are listed, too.
drafts() -> [Draft] = brc_drafts
    Uncommitted changes in the whole file, the oldest first.
adopt(draft: int) = brc_draft_adopt
    Makes private changes, of a process that has ended, part of what their branch shares.
drop(draft: int) = brc_draft_drop
    Drops uncommitted changes. BusyError where they are another process's, which is running. A private session
    of this one goes on without them, as after discard(); its children are StaleError from then on.
merge(rev, *, ours=MERGE_OURS, theirs=MERGE_THEIRS, paths*, concat=MERGE_CONCAT, fast_forward=!MERGE_NO_FF,
        dry_run=MERGE_DRY_RUN, keep=MERGE_KEEP, message?, author~, time, progress) -> MergeResult =
        brc_merge
    Merges a version into the current branch, element by element.

    `ours`, `theirs` settle conflicts for the branch or for what is merged, with `paths` only at and under
    these. `concat`: what both appended to an array comes one after the other. `dry_run`: nothing is
    changed. Conflicts that are left are a ConflictError that lists them, and nothing has changed; with
    `keep` the merge stays open: settle it (merge_settle, or by writing), then merge_continue() or
    merge_abort().
cherry_pick(rev, *, ours=PICK_OURS, theirs=PICK_THEIRS, paths*, keep=PICK_KEEP, no_commit=PICK_NO_COMMIT,
        mainline: int=0, message?, author?, time, progress) -> PickResult = brc_pick
    Does what a commit changed again on the current branch. `mainline`: of a merge, the parent (from 1)
    from which its change is told. `no_commit`: the change is uncommitted. Conflicts are as in merge().
revert(rev, *, ours=PICK_OURS, theirs=PICK_THEIRS, paths*, keep=PICK_KEEP, no_commit=PICK_NO_COMMIT,
        mainline: int=0, message?, author~, time, REVERT=PICK_REVERT, progress) -> PickResult = brc_pick
    Takes back what a commit changed, by a new commit. Options are those of cherry_pick().
rebase(onto, *, ours=PICK_OURS, theirs=PICK_THEIRS, paths*, keep=PICK_KEEP, progress) -> PickResult =
        brc_rebase
    Moves the current branch to `onto` with its own commits done again there.
_continue(message?, author?, skip=PICK_SKIP) -> PickResult = brc_continue
    Goes on with the merge, cherry-pick, revert or rebase that is open.
merge_abort() = brc_abort
    Drops the merge, cherry-pick, revert or rebase that is open.
bisect(mark?=BISECT|look|start|good|bad|skip|reset, rev?) -> Bisection = brc_bisect
    Finds the commit that brought a change: "start", then "good" and "bad" versions (None: the one that was to
    be looked at, or the current branch), "skip" for one that cannot be judged, "reset" at the end. What is
    known.
resolve(rev) -> oid = brc_resolve
    The id of the commit that a name, an abbreviated id, BRANCH~2 or BRANCH@{TIME} means.
redo(expect: int=0, REDO=UNDO_REDO) -> int = brc_undo
    Takes back the last undo().
reset(rev, *, hard=RESET_HARD, expect!) = brc_reset
    Moves the current branch to a version; with `hard` uncommitted changes go. StaleError if the branch is
    not at `expect`.
undo(expect: int=0) -> int = brc_undo
    Takes back the last operation on branches and tags, or on what is not committed (draft_log()), whichever came
    later; again: one further back. Its number, which is below 0 for what is not committed. `expect`: the operation
    that is to be taken back, else StaleError.
oplog(limit) -> [Operation] = brc_oplog
    Changes of branches and tags, the newest first.
draft_log(limit) -> [DraftOperation] = brc_draft_log
    Operations on what is not committed that undo() can take back or redo() restore, the newest first: the
    command's, and those of Session.operation().
expire(*, keep_last: int=0, keep_daily: int=0, keep_weekly: int=0, keep_monthly: int=0,
        dry_run=EXPIRE_DRY_RUN, progress) -> ExpireReport = brc_expire
    Thins history: of each branch the newest `keep_last` commits stay, and the newest of so many days,
    weeks and months. gc() frees what has expired.
backup(dest/, *, progress) -> BackupReport = brc_backup
    Copies the file while others write it; an older backup of the file gets what it lacks.
gc(*, dry_run=GC_DRY_RUN, expunge=GC_EXPUNGE, keep?, progress) -> GcReport = brc_gc
    Removes what nothing needs any more. `keep`: how long operations can be undone, this time ("7d", "0").
    `expunge`: what went leaves no trace in the file.
repack(*, backend: Any=None, codecs: Any=None, path?, older_than: datetime.datetime | None=None,
        delta=REPACK_DELTA, delta_depth: int=0, whole=REPACK_WHOLE, dry_run=REPACK_DRY_RUN,
        progress) -> RepackReport = brc_repack
    Stores chunks of all versions again, in another backend or with other codecs: "inline" makes the repository one file
    again. `path`: only of this node. `older_than`: only chunks that no version since then uses. `delta`: chunks
    of older versions become differences from newer ones, at most `delta_depth` (8) to read one; `whole`: no more.
    Without any of these, small objects are put together. gc() then frees what was left.
du(*, progress) -> Usage = brc_du
    What the file's bytes are for, and what each array and each commit holds.
info() -> Info = brc_stat
    How many commits, objects and chunks there are, and their bytes.

Group:
__eq__(other: object) -> bool := isinstance(other, GroupCalls) and self._same() == other._same()
    Of one place.
__hash__() -> int := hash(self._same())
    As equal ones have.
_same() -> Any := (self.session, self.path)
    What equal ones have in common.
name: str := str(self.path.rpartition("/")[2])
    The last part of its path.
attrs: Attributes := Attributes(self.session, self.path)
    The attributes, as a mapping that can be changed.
__reduce__() -> tuple[Any, ...] := (type(self), (self.session, self.path))
    In another process it is opened when it is used.
__len__() -> int := len(self._nodes())
    How many nodes are in it.
__contains__(path: object) -> bool := isinstance(path, str) and self._kind(path) != 0
    Whether there is a node at a path.
__delitem__(path@) = brc_node_remove
    Deletes a node and all under it.
_kind(path@) -> int = brc_node_kind
    BRC_GROUP, BRC_ARRAY, or 0 where there is no node.
_nodes(path@="", deep=LIST_RECURSE, limit) -> [Node] = brc_list
    What is in a group, or with `deep` the group and all under it, by path.
move(source@, dest@) = brc_node_move
    Gives a node another path. No chunk is copied.
copy(source@, dest@, COPY=NODE_COPY) = brc_node_move
    Copies a node and all under it. No chunk is copied: both have them.
restore(path@="/", rev?) = brc_node_restore
    Makes a node and all under it what they were at a version (None: the branch's tip).

Session:
__eq__(other: object) -> bool := isinstance(other, SessionCalls) and self._same() == other._same()
    Of one place.
__hash__() -> int := hash(self._same())
    As equal ones have.
_same() -> Any := (self.repository, self.kind, self.rev, self._key)
    What equal ones have in common.
_info() -> SessionInfo = brc_session_stat
    Whether it has uncommitted changes, also such without a difference.
clean() -> bool = brc_session_clean
    Whether there are no uncommitted changes.
discard() = brc_session_discard
    Drops every uncommitted change of this session.
_diff(a?, *, path?, elements: bool=False, chunks: bool=False, values: int=0, atol: float=0, rtol: float=0,
        sel: Any=None) -> list[records.Change] := self._list(records.Change, lambda out, s, err:
        lib.brc_diff(out, text(None), text(a), text(None), options("brc_diff_opts", path=path, session=s,
        values=values, atol=atol, rtol=rtol, sel=sel,
        flags=lib.BRC_DIFF_ELEMENTS * elements | lib.BRC_DIFF_CHUNKS * chunks), err))
    As diff().
conflicts() -> list[records.Conflict] := self._list(records.Conflict, lambda out, s, err: lib.brc_session_commit(
        text(None), s, options("brc_commit_opts", conflicts=out, flags=lib.BRC_COMMIT_DRY_RUN), err))
    What keeps the changes from being committed onto the branch as it is now. Ours is the branch.
'''

HEAD = '''"""{what} Made from the C headers by build_made.py."""
'''

ERROR = '''import re
from typing import Any

# Options that the library's sentences name as the command does, and their names here.
WORDS = {
    r"(?<= )--(wait|discard|rewrite|mainline|exclude)\\b": r"\\1=",
    r"(?<= )-D\\b": "force=True",
    r"(?<=[ (])--skip-unsupported\\b": "skip_unsupported=True",
    r"(?<= )--nan-tokens\\b": "nan_tokens=True",
    r"(?<= )--unequal-dimensions\\b": "unequal_dimensions=True",
    r"no --no-recover": "no read_only=",
    r"a commit needs a message$": "a commit needs a message, as in commit(message) or session(branch, message=...); "
                                  "the changes are kept",
    r"'breccia init'": "create=True",
    r"'breccia [a-z-]+ --continue'": "merge_continue()",
    r"'breccia [a-z-]+ --abort'|(?<= )--abort\\b": "merge_abort()",
}


def said(message: str) -> str:
    """A sentence of the library, with Python's names for what the command calls otherwise."""
    for command, python in WORDS.items():
        message = re.sub(command, python, message)
    return message


class Error(Exception):
    """A call of the library failed. The text names the thing and the remedy."""

    code = 0
    detail = 0  # errno, or SQLite's code

    def __str__(self) -> str:  # KeyError would print it in quotes
        return str(self.args[0]) if self.args else type(self).__name__
'''

WRONG_TYPE = '''

class WrongTypeError(InvalidError, TypeError):
    """An InvalidError: an argument is of no type that the call takes."""
'''

CALL = '''from __future__ import annotations

import datetime
import functools
import json
import math
import os
import pwd
import re
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._attributes import Attributes, Config
from .._breccia import lib
from .._calls import Caller, Paths, Progress, json_of, options, records
from .._errors import InvalidError, WrongTypeError
from .._native import printable, string, text

def word(prefix: str, name: str, given: str | None, *words: str) -> int:
    """BRC_PREFIX_WORD of one of the words that an argument may be; None: of the first."""
    if given is not None and given not in words:
        raise InvalidError(f"{name} must be {', '.join(map(repr, words))}, not {given!r}")
    return int(getattr(lib, f"BRC_{prefix}_{(given or words[0]).upper()}"))


def own_setting(key: str) -> str | None:
    """A text of the user's settings for all repositories, which `breccia config --user` changes."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    home = home if home.startswith("/") else os.path.expanduser("~/.config")
    try:
        with open(os.path.join(home, "breccia", "config.json"), encoding="utf-8") as file:
            settings = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as why:
        raise InvalidError(f"{file.name} is not valid JSON: {why}: mend or delete the file") from None
    return settings.get(key) if isinstance(settings, dict) and isinstance(settings.get(key), str) else None


def author_of(given: str | None) -> str:
    """Returns the author of a commit, as the command does: the author that is given, or BRECCIA_AUTHOR, or the user's
    setting, or the user here."""
    if given is None and not (given := os.environ.get("BRECCIA_AUTHOR") or own_setting("author")):
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            user = os.environ.get("USER") or "unknown"
        given = f"{user} <{user}@{os.uname().nodename}>"
    return given


# By the word of an annotation: what the argument may be. What is not here may be anything.
KINDS: dict[str, Callable[[Any], bool]] = {
    "str": lambda v: isinstance(v, str), "int": lambda v: hasattr(v, "__index__"), "None": lambda v: v is None,
    "bool": lambda v: isinstance(v, (bool, np.bool_)) or type(v) is int and v in (0, 1),
    "float": lambda v: hasattr(v, "__float__") and not hasattr(v, "__len__"),
    "datetime.datetime": lambda v: isinstance(v, datetime.datetime), "dict[str, Any]": lambda v: hasattr(v, "items"),
    "os.PathLike[str]": lambda v: isinstance(v, (bytes, os.PathLike)), "Sequence[int]": lambda v: hasattr(v, "__len__"),
    "Sequence[str]": lambda v: not isinstance(v, str) and hasattr(v, "__len__") and all(isinstance(n, str) for n in v),
    "Sequence[str | None]": lambda v: not isinstance(v, str) and hasattr(v, "__len__"),
    "Callable": callable,
}
ALIASES = {"Paths": "str | Sequence[str] | None", "Progress": "bool | Callable | None"}


def checked(function: Any, words: dict[str, list[str]]) -> Any:
    """The function, which names the argument that is of no type that it takes, or no number that C has."""
    code = getattr(function, "__wrapped__", function).__code__
    names = code.co_varnames[:code.co_argcount]

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        given = (*zip(names, args), *named.items())
        for name, value in given:
            if name in words and not any(KINDS[word](value) for word in words[name]):
                raise WrongTypeError(f"{name} must be {' or '.join(words[name])}, not {value!r}")
        try:
            return function(*args, **named)
        except OverflowError:
            said = ", ".join(f"{n}={v}" for n, v in given if "int" in words.get(n, ()) and not 0 <= v < 1 << 31)
            raise InvalidError(f"{said or function.__name__}: a number is negative or too large") from None

    return call


class Checked:
    """Arguments of public methods are what their annotations say."""

    def __init_subclass__(cls) -> None:
        for name, made in [*vars(cls).items()]:
            if isinstance(made, types.FunctionType) and (name[0] != "_" or name == "__init__"):
                kinds = {n: re.split(r" \\| (?![^[]*\\])", str(ALIASES.get(w, w)))
                         for n, w in made.__annotations__.items() if n != "return"}
                words = {n: w for n, w in kinds.items() if KINDS.keys() >= {*w}}
                setattr(cls, name, checked(made, words) if words else made)
'''

CONVERTERS = '''import datetime
import json
from typing import Any, NamedTuple, Self

from .._breccia import ffi, lib
from .._native import string

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
NO_ID = bytes(32)


def time_of(microseconds: int) -> datetime.datetime:
    """Returns the time, or the nearest one that Python can hold: the file may have any year."""
    try:
        return EPOCH + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return (datetime.datetime.max if microseconds > 0 else datetime.datetime.min).replace(tzinfo=UTC)


def oid(value: Any) -> str:
    """An id's hex digits; "" for none."""
    at = ffi.addressof(value)
    return string(lib.brc_oid_format(ffi.new("char[65]"), at)) if ffi.buffer(at)[:] != NO_ID else ""


def object_of(text: str) -> dict[str, Any]:
    """Reads JSON; {} for none."""
    return json.loads(text) if text and text != "{}" else {}
'''


def rows(table):
    """(head, docstring) of each row of a table."""
    for row in re.split(r"\n(?=\S)", table.strip()):
        head, _, said = re.sub(r"\n {8}", " ", row).partition("\n")
        yield head, f'"""{said.strip()}"""'


def errors():
    header = (build_ffi.SOURCE / "src" / "breccia_types.h").read_text()
    codes = re.findall(r"\bBRC_(E[A-Z]+) = (-\d+),?(?: +/\* (.*?) *\*/)?", header)
    assert {name for name, _, _ in codes} == set(ERRORS), "each code of breccia_types.h needs a class in ERRORS"
    text = HEAD.format(what="An exception for each code of the library.") + ERROR
    for name, value, said in codes:
        own, _, other = ERRORS[name].partition(" ")
        text += f"\n\nclass {own}(Error{', ' + other if other else ''}):\n"
        text += f'    """BRC_{name}{": " + said if said else ""}."""\n\n    code = {value}\n'
        if name == "ECONFLICT":
            text += "    conflicts: tuple[Any, ...] = ()  # what has to be decided, where that is known\n"
    text += WRONG_TYPE
    names = ["Error", "WrongTypeError", *(c.partition(" ")[0] for c in ERRORS.values())]
    listed = ", ".join(f'"{name}"' for name in names)
    return text + ("\n\nBY_CODE: dict[int, type[Error]] = {c.code: c for c in Error.__subclasses__()}\n"
                   f"__all__ = [{listed}]\n")


def members(declared, struct):
    """The structure's members: {name: C type}, an array's with "[]"."""
    (body,) = re.findall(rf"typedef struct {struct} \{{([^}}]*)\}} {struct};", declared)
    found = {}
    for line in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        kind = re.match(r"(?:const )?\w+(?: \*const)?", line)[0]
        for name in line[len(kind):].split(","):
            stars, name, array = re.fullmatch(r"\s*(\**)\s*(\w+)(\[\w+\])?", name).groups()
            found[name] = kind + stars + ("[]" if array else "")
    return found


def reading(kind, name, optional):
    """The type of a member in Python, and the expression that reads it."""
    at = f'getattr(c, "{name}")' if name == "from" else f"c.{name}"
    if kind == "brc_oid":
        return "str", f"oid({at})"
    if kind == "const brc_oid*":
        return "tuple[str, ...]", f"tuple(oid({at}[i]) for i in range(c.n{name}))"
    if kind == "const char *const*":
        return "tuple[str, ...]", f"tuple(string({at}[i]) for i in range(c.n{name}))"
    if name.endswith("_json"):
        return "dict[str, Any]", f"object_of(string({at}))"
    if kind in ("const char*", "char[]"):
        return ("str | None", f"string({at}) or None") if optional else ("str", f"string({at})")
    if name.endswith("_us"):
        return "datetime.datetime", f"time_of({at})"
    if kind.endswith("[]"):
        return "tuple[int, ...]", f"tuple({at}[0:c.ndim])"
    return "float" if kind == "double" else "int", at


def field(given, struct):
    """(name, type, expression, default) of a field of RECORDS."""
    if ":" in given:
        name, kind, default = re.fullmatch(r"(\w+): (.*?)(=None)?", given).groups()
        return name, kind.replace(";", ","), "", " = None" if default else ""
    if listed := re.fullmatch(r"(\w+)\[(\w+)\]", given):
        return listed[1], f"tuple[{listed[2].replace('Conflict', 'BaseConflict')}, ...]", "listed", ""
    name, _, source = given.partition("=")
    member, name = (source or name).rstrip("?"), name.rstrip("?")
    if "|" in source:
        prefix, *words = source.partition("?")[0].split("|")
        codes = [f"lib.BRC_{prefix + '_' if prefix else ''}{w.upper().replace(' ', '_').replace('-', '_')}"
                 for w in words]
        table = ",\n             ".join(f'{c}: "{w}"' for c, w in zip(codes, words))
        if name == "kept":
            return name, "tuple[str, ...]", f"tuple(w for b, w in {{{table}}}.items() if c.reasons & b)", ""
        flag = source.partition("?")[2]
        word = f"{{{table}}}[c.{name}]"
        return name, *(("str | None", f"{word} if c.flags & lib.BRC_{flag} else None") if flag else ("str", word)), ""
    if member.isupper():
        return name, "bool", f"bool(c.flags & lib.BRC_{member})", ""
    member = member if member in struct else member + "_us"
    return name, *reading(struct[member], member, given.endswith("?")), ""


def records():
    declared = build_ffi.declarations()
    text = HEAD.format(what="Structures of the library as records that cannot be changed.") + CONVERTERS
    kinds = ""
    for head, said in rows(RECORDS):
        own, name, given = re.fullmatch(r"(\w+) ?(\w*): (.*)", head).groups()
        fields = [field(f, name and members(declared, name)) for f in given.split(", ")]
        listed = "".join(re.findall(r"\[(\w+)\]", given))
        text += f"\n\nclass {own}(NamedTuple):\n    {said}\n\n"
        for label, kind, _, default in fields:
            hides = "  # type: ignore[assignment]" if label in dir(tuple) else ""
            text += f"    {label}: {kind}{default}{hides}\n"
        more = ", listed: Any" if listed else ""
        if not name:
            continue
        text += f"\n    @classmethod\n    def of(cls, c: Any{more}) -> Self:\n        return cls(\n"
        text += "".join(f"            {read},\n" for _, _, read, _ in fields if read)[:-2] + ")\n"
        kinds += f'    "{own.removeprefix("Base")}": ("{name}", "{listed}"),\n'
    return text + ("\n\n# By name: the structure, and what is listed beside it.\n"
                   f"KINDS: dict[str, tuple[str, str]] = {{\n{kinds}}}\n")


def parameter(given):
    """(what stands in the signature, name, what is passed on) of a parameter of CALLS; a flag is passed on as such."""
    if given == "*":
        return "*", "*", ""
    if given == "time":
        return "time: datetime.datetime | None = None", "time_us", "time"
    if given[-1] == "*":
        return f"{given[:-1]}: Paths = None", given[:-1], given[:-1]
    if given in ("limit", "progress"):
        return f"{given}: {'int | None' if given == 'limit' else 'Progress'} = None", given, ""
    if "{}" in given:
        name, _, optional = given.partition("{}")
        return f"{name}: Any", name, f"None if {name} is None else " * bool(optional) + f"json_of({name})"
    if ":" in given:
        name, _, kind = given.partition(": ")
        return f"{name}: {kind.replace('=', ' = ')}", name, name
    if given[-1] == "~":
        return f"{given[:-1]}: str | None = None", given[:-1], f"author_of({given[:-1]})"
    name, _, flag = given.partition("=")
    if "|" in flag:
        prefix, *words = flag.split("|")
        listed = ", ".join(f'"{w}"' for w in words)
        return f"{name[:-1]}: str | None = None", name[:-1], f'word("{prefix}", "{name[:-1]}", {name[:-1]}, {listed})'
    if name[-1] == "@":
        return f"{name[:-1]}: str{' = ' * bool(flag)}{flag}", name[:-1], f"self._at({name[:-1]})"
    if name[-1] in "/!":
        kind = "str | os.PathLike[str]" if name[-1] == "/" else "str | None = None"
        return f"{name[:-1]}: {kind}", name[:-1], f"{'os.fsencode' if name[-1] == '/' else 'self._oid'}({name[:-1]})"
    if flag.startswith('"'):
        return f"{name}: str = {flag}", name, name
    if flag[:1] == "!":
        return f"{name}: bool = True", name, f"lib.BRC_{flag[1:]} * (not {name})"
    if flag:
        return f"{name}: bool = False" * name.islower(), name, f"lib.BRC_{flag}" + f" * {name}" * name.islower()
    text = name[:-1] if name[-1] == "?" else name
    return f"{text}: str" + " | None = None" * (name[-1] == "?"), text, text


def passed(declared, function, own, parameters):
    """The arguments of the function behind the object itself, and whether what it writes comes last."""
    flat = " ".join(declared.split())
    (listed,) = re.findall(rf"\b{function}\(([^)]*)\)", flat)
    bits = " | ".join(value for _, _, value in parameters if "BRC_" in value) or "0"
    rest = [(name, value) for _, name, value in parameters if value and "BRC_" not in value]
    kinds = listed.split(", ")
    written = kinds[0].rpartition(" *")[0]
    arguments = []
    for kind in kinds[next(i for i, k in enumerate(kinds) if k.startswith(own)) + 1:-1]:
        if kind.endswith(" flags"):
            arguments.append(bits)
        elif members := re.match(r"const (\w+_opts) \*", kind):
            flags = f", flags={bits}" if bits != "0" else ""
            arguments.append(f'options("{members[1]}"{flags}' + "".join(f", {n}={v}" for n, v in rest) + ")")
        elif own == "breccia" and kind.startswith("brc_session *") or not rest and "char *" in kind:
            arguments.append("text(None)")  # of the repository's own branch; what this row leaves out
        elif rest and not kind.endswith("*out"):
            at = next((i for i, (name, _) in enumerate(rest) if kind.endswith("*" + name)), 0)
            name, value = rest.pop(at)
            arguments.append(f"text({value})" if "char" in kind else value)
    assert not rest or "options(" in "".join(arguments), f"{function} does not take {rest}"
    return written, arguments, kinds[-2].endswith("*out")


def expression(head, said):
    """The method or property of a row of CALLS that says it all."""
    head, _, value = head.partition(" := ")
    name, given, kind = re.fullmatch(r"(\w+)(?:\((.*)\) ->|:) (.*)", head).groups()
    listed = ", ".join(["self: Any", *(parameter(p)[0] for p in (given or "").split(", ") if p)])
    return (f"\n    @property" * (given is None) + f"\n    def {name}({listed}) -> {kind}:\n        {said}\n"
            f"        made: {kind} = {value}\n        return made\n")


def call(declared, own, head, said):
    """The method of a row of CALLS."""
    name, given, result, function = re.fullmatch(r"(\w+)\((.*)\)(?: -> (\S+))? = (\w+)", head).groups()
    parameters = [parameter(p) for p in given.split(", ") if p]
    on = {"Repository": "breccia", "Array": "brc_array"}.get(own, "brc_session")
    written, arguments, last = passed(declared, function, on, parameters)
    arguments += [f"{p}={p}" for _, p, value in parameters if not value and p != "*"]
    more = "".join(f",\n            {a}" for a in arguments)
    kind, body = "None", f"self._call(lib.{function}{more})"
    if result and result[0] == "[":
        kind, body = f"list[records.{result[1:-1]}]", f"return self._list(records.{result[1:-1]}, lib.{function}{more})"
    elif result and result[0].isupper():
        kind = f"records.{result}"
        body = f"return self._report({kind}, lib.{function}{more}{', last=True' if last else ''})"
        if "Result" in result:
            free = ", keep" * ("keep=" in given)
            body = f"return self._settled({body.removeprefix('return ')}{free})"
    elif result == "oid":
        kind, body = "str", f"return records.oid(self._out(\"{written}\", lib.{function}{more})[0])"
    elif result:
        kind, body = result, f'return {result}(self._out("{written}", lib.{function}{more})[0])'
    head = ", ".join(["self", *(p for p, _, _ in parameters if p)])
    return f"\n    def {name}({head}) -> {kind}:\n        {said}\n        {body}\n"


def described(head, said):
    """The property of a row of CALLS."""
    name, kind, member, change = re.fullmatch(r"(\w+): (.*) = (\w+)(?:, (\w+))?", head).groups()
    text = (f"\n    @property\n    def {name}(self: Any) -> {kind}:\n        {said}\n"
            f"        found: {kind} = self._told(\"{member}\")\n        return found\n")
    if change:
        text += f"\n    @{name}.setter\n    def {name}(self, value: Any) -> None:\n        self.{change}(value)\n"
    return text


def calls():
    declared = build_ffi.declarations()
    text = HEAD.format(what="Methods that are no more than a function of the library.") + CALL
    for head, said in rows(CALLS):
        if head.endswith(":"):
            own = head[:-1]
            text += f'\n\nclass {own}Calls(Checked, Caller):\n    """Of {own}."""\n'
        else:
            said = said.replace("\n    ", "\n        ")
            text += (expression(head, said) if ":=" in head else
                     call(declared, own, head, said) if re.match(r"\w+\(", head) else described(head, said))
    return text


def write(folder):
    """Writes the package `_made` into a folder."""
    made = pathlib.Path(folder) / "_made"
    made.mkdir(parents=True, exist_ok=True)
    (made / "__init__.py").write_text('"""What the build makes of the C headers."""\n')
    (made / "errors.py").write_text(errors())
    (made / "records.py").write_text(records())
    (made / "calls.py").write_text(calls())


if __name__ == "__main__":
    write(sys.argv[1])
