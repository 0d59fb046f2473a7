"""The life of a repository: history, merging, sessions, arrays that change."""
import datetime
import gc
import pathlib
import pickle
import shutil
import sys
import types
import zipfile

import numpy as np
import pytest

import breccia
from breccia import _calls
from breccia._breccia import lib

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


@pytest.fixture
def grid(repo):
    """One commit with an array of 10 x 10 zeros in chunks of 5 x 5."""
    with repo.session("main", message="first", author="Ada") as s:
        s.create_array("x", data=np.zeros((10, 10), "i4"), chunks=5)
    return repo


def write(repo, branch, at, value, message=None):
    with repo.session(branch, message=message or f"{branch} {value}") as s:
        s["x"][at] = value


def test_commits(grid):
    (first,) = grid.log()
    assert first.message == "first" and first.author == "Ada" and first.parents == ()
    assert first.time.tzinfo is datetime.timezone.utc
    assert abs(first.time - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=10)
    assert first.id == grid.resolve("main") == grid.resolve("HEAD") == grid.commit("main").id
    assert "first" in repr(first) and first.id[:8] in repr(first)
    when = datetime.datetime(2001, 2, 3, 4, 5, 6, 7, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    s = grid.session("main")
    s["x"][0, 0] = 1
    second = s.commit("second", "Bob", metadata={"run": 7, "big": 2**63}, time=when)
    made = grid.commit(second)
    assert made.time == when and made.metadata == {"run": 7, "big": 2**63} and made.parents == (first.id,)
    assert [c.id for c in grid.log()] == [second, first.id] and len(grid.log(limit=1)) == 1
    assert [c.id for c in grid.log(f"{first.id[:8]}..main")] == [second]
    shown = grid.show()
    assert shown.commit == made and [c.path for c in shown.changes] == ["/x"]
    with pytest.raises(breccia.MisuseError):
        s.commit("nothing")
    with pytest.raises(KeyError):
        grid.commit("nowhere")


def test_context_managers(grid):
    with pytest.raises(RuntimeError):
        with grid.session("main", message="no") as s:
            s["x"][0] = 5
            raise RuntimeError
    assert len(grid.log()) == 1 and not any(d.nodes for d in grid.drafts())
    with grid.session("main", message="nothing"):
        pass
    assert len(grid.log()) == 1
    s = grid.session("main")
    s["x"][0] = 5
    assert not s.clean() and s.status().clean is False
    assert grid.view("main")["x"][0, 0] == 0
    assert [d.owner for d in grid.drafts() if d.nodes] == ["alive"]
    s.discard()
    assert s.clean() and s["x"][0, 0] == 0


def test_a_view_shows_commits_and_a_draft_what_is_uncommitted(grid):
    """Also what others commit beneath the draft, which the draft hides."""
    view, default, draft = grid.view("main"), grid.view(), grid.draft("main")
    draft["x"][1] = 3
    draft["d"] = [1]
    assert view["x"][1, 0] == default["x"][1, 0] == 0 and "d" not in view and draft["x"][1, 0] == 3
    write(grid, "main", 2, 5)
    assert view["x"][2, 0] == default["x"][2, 0] == 5 and view["x"][1, 0] == 0 and draft["x"][2, 0] == 0
    assert grid.status().moved and draft.status().moved and not view.status().moved and view.status().clean
    with breccia.open(grid.path, read_only=True) as other:
        read = other.draft("main")
        assert read["x"][1, 0] == 3 and other.view("main")["x"][2, 0] == 5 and read.status() == draft.status()
        with pytest.raises(breccia.ReadOnlyError):
            read["x"][0] = 1
    draft.commit("both")
    assert view["x"][1, 0] == 3 and view["x"][2, 0] == draft["x"][2, 0] == 5 and "d" in view


def test_shared_drafts_and_views(grid):
    view, first = grid.view("main"), grid.resolve("main")
    with grid.draft(message="second") as s:
        s["x"][1] = 3
        s.create_group("g", attributes={"a": 1})
        assert view["x"][1, 0] == 0 and "g" not in view
        assert grid.view(first)["x"][1, 0] == 0
        assert {c.path for c in grid.status().changes} == {"/g", "/x"} and not grid.status().clean
        assert s.status().changes == grid.status().changes
    assert grid.status().clean
    for read_only in view, grid.view(first):
        with pytest.raises(breccia.ReadOnlyError):
            read_only["x"][0] = 1
    assert "g" in view and "g" not in grid.view(first)
    view["x"]
    s = grid.draft()
    s["x"].resize(4, 10)
    seen = grid.draft()["x"]
    s["x"].resize(20, 10)
    s["x"][15] = 8
    assert seen.shape == (20, 10) and seen[15, 0] == 8 and seen[...].shape == (20, 10) and len(seen) == 20
    s["x"] = np.ones((3, 3), "f8")
    assert seen[...].tolist() == [[1.0] * 3] * 3 and seen.dtype == "f8"


@pytest.mark.parametrize("branch", ["main", "side"])
def test_changes_without_a_difference_hide_what_is_new(grid, branch):
    """Somebody wrote what was there already, to a draft that is shared; then others committed."""
    grid.branch("side")
    shared = grid.draft(branch)
    shared["x"][0, 0] = shared["x"][0, 0]
    shared["x"][0, 0] = 7
    shared["x"][0, 0] = 0
    assert shared.status().clean and not shared.status().moved
    write(grid, branch, 1, 5)
    if shared.status().moved:  # that nothing differs is seen at once, or at the commit
        assert not shared.status().clean and shared.status().changes == ()
        assert grid.status().moved is (branch == "main")
        assert grid.view(branch)["x"][1, 0] == 5 and shared["x"][1, 0] == 0
        assert shared.commit("what there is") == grid.resolve(branch)
    assert grid.view(branch)["x"][1, 0] == 5 and shared.status().clean and not shared.status().moved


def test_a_block_that_changes_nothing_leaves_nothing(grid):
    """A process that goes on for long would have more and more drafts, and each makes all calls a little slower."""
    tip = grid.resolve("main")
    with grid.session("main", message="the same") as s:
        s["x"][...] = s["x"][...]
        assert s.clean() and len(grid.drafts()) == 1
    assert grid.drafts() == []
    with grid.session("main", message="by a child") as s:
        one, two = s.fork(), s.fork()
        one["x"][0] = 1
        s.join(one, two)
    assert grid.drafts() == [] and grid.view("main")["x"][0, 0] == 1 and grid.commit("main~1").id == tip
    with pytest.raises(LookupError), grid.session("main") as s:
        s.join(s.fork())
        raise LookupError
    assert grid.drafts() == []
    with grid.session("main") as s:
        kept = s.fork()  # what it holds stays
        kept["x"][0] = 2
    assert [(d.nodes, d.orphan) for d in grid.drafts()] == [(1, True)]


def test_a_process_drops_what_a_conflict_has_kept(grid):
    def in_conflict():
        with grid.session("main", message="second") as late:
            late["x"][0] = 1
            write(grid, "main", 0, 2)
    with pytest.raises(breccia.ConflictError):
        in_conflict()
    (kept,) = grid.drafts()
    assert kept.stale and kept.owner == "alive"
    grid.drop(kept.id)
    assert grid.drafts() == [] and grid.view("main")["x"][0, 0] == 2


def test_messages_name_arguments(grid):
    write(grid, "main", 0, 1)
    with grid.draft():
        pass
    grid.branch("side")
    grid.draft()["x"][3] = 3
    with pytest.raises(breccia.ConflictError, match="drop them with discard="):
        grid.switch("side")
    other = breccia.open(grid.path, wait=0)
    with grid.session("side") as s, s.transaction(), pytest.raises(breccia.BusyError, match="wait longer with wait="):
        other.tag("v1")
    grid.branch("third", "side")
    grid.draft("third")["x"][3] = 3
    with pytest.raises(breccia.MisuseError, match="changes: force=True deletes it all the same"):
        grid.delete_branch("third")
    grid.delete_branch("third", force=True)
    with pytest.raises(breccia.NotFoundError, match="'a--wait'"):  # a name of the user's
        grid.view("a--wait")


def test_a_name_of_a_file_and_a_version(grid, tmp_path):
    grid.tag("v1")
    write(grid, "main", (0, 0), 5)
    name = f"{grid.path}@v1"
    with breccia.open(name) as old:
        assert old.rev == "v1" and old.read_only and old.path == grid.path
        assert old.view()["x"][0, 0] == 0 and old.view("main")["x"][0, 0] == 5
        assert pickle.loads(pickle.dumps(old)).view()["x"][0, 0] == 0
        with pytest.raises(breccia.ReadOnlyError):
            old.tag("v2")
    assert breccia.open(f"{grid.path}@main@{{{datetime.datetime.now().isoformat()}Z}}").rev.startswith("main@{")
    for wrong in "@v3", "@":
        with pytest.raises(breccia.Error):
            breccia.open(grid.path + wrong)
    other = breccia.open(tmp_path / "data.brc@v1", create=True)  # a file of that name comes first
    shutil.copy(other.path, name)
    assert breccia.open(name).rev is None
    with pytest.raises(breccia.NotFoundError):
        breccia.open(f"{tmp_path / 'none.brc'}@v1")


def test_what_is_in_the_way_of_a_new_file_is_named(tmp_path):
    """A file in the way is not taken for a repository that somebody else has just made."""
    (tmp_path / "new.brc-journal").write_bytes(b"of an earlier file")
    with pytest.raises(breccia.ExistsError, match="new.brc-journal is in the way"):
        breccia.open(tmp_path / "new.brc", create=True)
    assert [path.name for path in tmp_path.iterdir()] == ["new.brc-journal"]


def test_refs(grid, tmp_path):
    assert breccia.open(tmp_path / "new.brc", create=True).branches() == {"main": ""}
    first = grid.resolve("main")
    grid.branch("trial")
    grid.tag("v1", message="the first")
    assert grid.branches() == {"main": first, "trial": first} and grid.tags() == {"v1": first}
    assert [r.message for r in grid.refs() if r.is_tag] == ["the first"]
    grid.rename_branch("trial", "other")
    grid.rename_tag("v1", "v2")
    assert "other" in grid.branches() and "v2" in grid.tags()
    assert grid.head == "main"
    grid.switch("other")
    assert grid.head == "other"
    write(grid, "other", 0, 1)
    grid.switch("main")
    with pytest.raises(breccia.MisuseError):
        grid.delete_branch("other")
    grid.delete_branch("other", force=True)
    grid.delete_tag("v2")
    assert list(grid.branches()) == ["main"] and grid.tags() == {}
    with pytest.raises(breccia.ExistsError):
        grid.branch("main")


def test_diff(grid):
    grid.branch("trial")
    write(grid, "trial", np.s_[2:4, 3], 7)
    (change,) = grid.diff("main", "trial", elements=True)
    assert (change.path, change.what, change.kind) == ("/x", "changed", "array")
    assert change.chunks_added == 1 and change.chunks_changed == 0
    assert change.elements.changed == 2 and change.elements.max_abs == 7.0
    assert change.elements.first == (2, 3) and change.elements.last == (3, 3)
    assert "2 elements changed by up to 7" in repr(change)
    assert grid.diff("main", "trial")[0].elements is None
    assert grid.diff("main", "main") == []
    assert change.elements.mean_abs == 7 and change.elements.rms == 7 and change.values == () and not change.more
    assert change.elements.boxes == (((2, 3), (3, 3)),)
    (change,) = grid.diff("main", "trial", values=1)
    assert change.more and change.elements is None
    assert [(v.index, v.before, v.now, v.theirs) for v in change.values] == [((2, 3), 0, 7, None)]
    assert type(change.values[0].now) is type(grid.view("trial")["x"][2, 3])
    (change,) = grid.diff("main", "trial", elements=True, chunks=True, values=9, atol=7)
    assert change.elements.changed == 0 and change.values == () and change.elements.chunks == ()
    (change,) = grid.diff("main", "trial", elements=True, chunks=True, values=9, rtol=0.9)
    assert sum(n for _, n in change.elements.chunks) == 2 and len(change.values) == 2 and not change.more
    with grid.draft("trial") as draft:
        assert draft.diff("main", values=2)[0].values == grid.diff("main", "trial", values=2)[0].values
    with pytest.raises(breccia.InvalidError):
        grid.diff("main", "trial", atol=-1.0)
    with pytest.raises(KeyError):
        grid.diff("main", "trial", path="/nowhere")


def diverged(repo, ours, theirs, at=np.s_[0, 0]):
    repo.branch("trial")
    write(repo, "main", at if ours == theirs else np.s_[0, 0], ours)
    write(repo, "trial", at, theirs)


def test_merge(grid):
    diverged(grid, 1, 2, np.s_[0, 1])
    assert grid.merge("trial", dry_run=True).result == "merged" and len(grid.log()) == 2
    made = grid.merge("trial", message="joined", author="Eve")
    assert made.result == "merged" and made.commit == grid.resolve("main") and made.conflicts == ()
    assert grid.view("main")["x"][0, :2].tolist() == [1, 2] and grid.commit().author == "Eve"
    assert grid.merge("trial").result == "up to date"
    grid.branch("ahead")
    write(grid, "ahead", 5, 5)
    assert grid.merge("ahead").result == "fast-forward"


def test_merge_conflicts(grid):
    diverged(grid, 1, 2)
    with pytest.raises(breccia.ConflictError) as caught:
        grid.merge("trial")
    (conflict,) = caught.value.conflicts
    assert conflict[:5] == ("/x", "chunk", "c/0/0", None, None)
    assert repr(conflict) == "<Conflict chunk /x c/0/0; [0, 0] base 0, ours 1, theirs 2>"
    assert conflict.elements == 1 and conflict.values == (((0, 0), 0, 1, 2),)
    assert conflict.values[0].before == 0 and conflict.values[0].theirs == 2
    assert grid.merge_state() is None
    assert grid.merge("trial", dry_run=True, keep=True).conflicts == (conflict,)
    kept = grid.merge("trial", keep=True)
    assert kept.result == "conflict" and kept.draft
    state = grid.merge_state()
    assert (state.op, state.rev, state.open) == ("merge", "trial", (conflict,)) and not grid.status().clean
    with pytest.raises(breccia.ConflictError):
        grid.merge_continue()
    assert grid.merge_settle("theirs", "/x") == 1
    assert grid.merge_state().conflicts[0].settled == "theirs"
    assert grid.merge_continue(message="settled").result == "merged"
    assert grid.view("main")["x"][0, 0] == 2 and grid.commit().message == "settled"
    grid.undo()
    grid.merge("trial", keep=True)
    grid.merge_abort()
    assert grid.merge_state() is None
    with pytest.raises(breccia.MisuseError):
        grid.merge_abort()
    assert grid.merge("trial", ours=True, paths=["/x"]).result == "merged"
    assert grid.view("main")["x"][0, 0] == 1
    with pytest.raises(ValueError):
        grid.merge_settle("both")


def test_merge_by_hand(grid):
    diverged(grid, 1, 2)
    grid.merge("trial", keep=True)
    grid.draft()["x"][0, 0] = 9
    assert grid.merge_state().conflicts[0].settled == "by hand"
    grid.merge_continue()
    assert grid.view("main")["x"][0, 0] == 9


def test_merge_concat(grid):
    grid.branch("trial")
    for branch, value in ("main", 1), ("trial", 2):
        with grid.session(branch, message=branch) as s:
            s["x"].append(np.full((2, 10), value, "i4"))
    assert grid.merge("trial", concat=True).result == "merged"
    x = grid.view("main")["x"]
    assert x.shape == (14, 10) and x[:, 0].tolist() == [0] * 10 + [1, 1, 2, 2]


def test_pick_revert_rebase(grid):
    grid.branch("trial")
    write(grid, "trial", np.s_[0, 1], 5, "picked")
    write(grid, "main", np.s_[7, 7], 1)
    made = grid.cherry_pick("trial")
    assert made.result == "committed" and made.made == 1 and grid.commit().message == "picked"
    assert grid.view("main")["x"][0, 1] == 5
    assert grid.revert("HEAD").result == "committed" and grid.view("main")["x"][0, 1] == 0
    grid.reset("HEAD~2", hard=True)
    write(grid, "main", np.s_[0, 1], 6)
    with pytest.raises(breccia.ConflictError):
        grid.cherry_pick("trial")
    assert grid.rebase("trial", keep=True).result == "conflict"
    assert grid.merge_state().op == "rebase"
    grid.merge_settle("ours")
    done = grid.merge_continue(skip=True)
    assert done.result in ("committed", "fast-forward") and grid.view("main")["x"][0, 1] == 5
    assert grid.view("main")["x"][7, 7] == 1
    with pytest.raises(breccia.StaleError):
        grid.reset("HEAD~1", expect=grid.resolve("HEAD~1"))


def test_undo_and_oplog(grid):
    first = grid.resolve("main")
    write(grid, "main", 0, 1)
    second = grid.resolve("main")
    number = grid.undo()
    assert grid.resolve("main") == first
    assert grid.oplog()[0].what == "undo" and grid.oplog(1)[0].operation == number
    grid.redo()
    assert grid.resolve("main") == second
    assert {o.what for o in grid.oplog()} >= {"commit", "undo"}
    with pytest.raises(breccia.MisuseError):
        grid.redo()


def test_operations_of_a_draft_are_undone_one_by_one(grid):
    write(grid, "main", 0, 1)
    draft = grid.draft()
    with draft.operation("row 1"):
        draft["x"][1] = 2
        draft["x"][2] = 2
    with draft.operation("remove"):
        del draft["x"]
    assert [(o.text, o.undone) for o in grid.draft_log()] == [("remove", False), ("row 1", False)]
    last = grid.draft_log(1)[0]
    with pytest.raises(breccia.StaleError):
        grid.undo(expect=grid.oplog(1)[0].id)
    assert grid.undo(expect=-last.id) == -last.id
    assert draft["x"][1, 0] == draft["x"][2, 0] == 2 and grid.draft_log(1)[0].undone
    grid.undo()
    assert draft["x"][1, 0] == draft["x"][2, 0] == 0 and draft["x"][0, 0] == 1 and grid.status().clean
    grid.redo()
    assert draft["x"][1, 0] == draft["x"][2, 0] == 2
    grid.redo()
    assert "x" not in draft
    grid.undo()
    with pytest.raises(ZeroDivisionError), draft.operation("fails"):
        draft["x"][3] = 3
        raise ZeroDivisionError
    assert draft["x"][3, 0] == 3  # an operation is not a transaction
    grid.undo()
    assert draft["x"][3, 0] == 0 and draft["x"][1, 0] == 2
    draft["x"][4] = 4  # it belongs to no operation, and ends the log
    assert grid.draft_log() == []


def test_an_operation_needs_a_name_and_a_shared_draft(grid):
    for name in "", "x" * 201:
        with pytest.raises(breccia.InvalidError), grid.draft().operation(name):
            pass
    with grid.session("main", message="m") as s:
        with pytest.raises(breccia.MisuseError), s.operation("rows"):
            pass


def test_bisect(grid):
    for i in range(8):
        write(grid, "main", np.s_[i % 10, 5], i + 1, f"step {i}")
    grid.bisect("start")
    grid.bisect("bad", "main")
    found = grid.bisect("good", "main~8")
    while found.state == "next":
        found = grid.bisect("bad" if grid.view(found.at)["x"][5, 5] else "good")
    assert found.state == "found" and grid.commit(found.at).message == "step 5"
    grid.bisect("reset")
    assert grid.bisect().state == "none"
    with pytest.raises(ValueError):
        grid.bisect("maybe")
    for word in "start", "reset", None:
        with pytest.raises(ValueError, match="take a version"):
            grid.bisect(word, "main")


def test_repack(grid):
    for i in range(3):
        write(grid, "main", np.s_[i], i)
    listed = [c.id for c in grid.log()]
    told = grid.repack(backend="pack", dry_run=True)
    assert told.objects > 0 and grid.info().outside_chunks == 0
    moved = grid.repack(backend={"name": "pack"}, path="/x")
    assert moved.objects == told.objects == grid.info().outside_chunks and grid.du().outside == moved.bytes_after
    assert grid.repack(codecs=["gzip"], older_than=datetime.datetime(1971, 1, 1)).objects == 0
    grid.repack(codecs=["gzip"])
    assert grid.repack(backend="inline").objects == moved.objects and grid.info().outside_chunks == 0
    assert grid.repack().rows > 0 and grid.repack().rows == 0
    assert [c.id for c in grid.log()] == listed and grid.fsck().damage == ()
    with pytest.raises(breccia.InvalidError):
        grid.repack(path="/x")


def test_expire_gc_du_fsck(grid):
    for i in range(5):
        write(grid, "main", np.s_[:], np.random.default_rng(i).integers(0, 1 << 30, (10, 10)))
    trial = grid.expire(keep_last=2, dry_run=True)
    assert trial.expired > 0 and len(grid.log()) == 6
    done = grid.expire(keep_last=2)
    assert done.kept + done.expired == len(done.commits) == 6 and any("tip" in c.kept for c in done.commits)
    assert grid.log()[-1].expired
    usage = grid.du()
    assert usage.stored > 0 and {i.path for i in usage.items if i.path} == {"/x"}
    assert grid.gc(dry_run=True, keep="0").objects_removed > 0
    removed = grid.gc(keep="0")
    assert removed.objects_removed > 0 and removed.bytes_freed > 0
    assert grid.gc(keep="0").objects_removed == 0
    report = grid.fsck()
    assert report.checked > 0 and report.damage == ()
    assert grid.info().commits == len(grid.log())
    with pytest.raises(breccia.InvalidError):
        grid.expire()


def test_fsck_finds_damage(grid, tmp_path):
    import sqlite3
    grid.close()
    with sqlite3.connect(grid.path) as db:
        db.execute("UPDATE blob SET data = zeroblob(length(data)) WHERE length(data) > 0")
    db.close()
    found = breccia.open(grid.path).fsck().damage
    assert found and all(isinstance(d.message, str) and d.message for d in found)


def test_no_commit_has_no_id(repo):
    assert repo.branches() == {"main": ""} and repo.bisect().at == ""


def test_amend_keeps_what_is_not_given(grid):
    s = grid.session()
    s["x"][0, 0] = 1
    s.commit(amend=True)
    assert [(c.message, c.author) for c in grid.log()] == [("first", "Ada")]
    s["x"][0, 0] = 2
    s.commit("second", amend=True)
    assert [(c.message, c.author) for c in grid.log()] == [("second", "Ada")]


def test_config(repo):
    assert set(repo.config) == {"journal", "window", "codecs", "verify", "backend"}
    repo.config["journal"] = "wal"
    assert repo.config["journal"] == "wal"
    del repo.config["journal"]
    assert repo.config["journal"] == "rollback"
    repo.config["codecs"] = [LITTLE, {"name": "zstd", "configuration": {"level": 5, "checksum": False}}]
    s = repo.session()
    s["a"] = np.zeros(3)
    assert [c["name"] for c in s["a"].codecs] == ["bytes", "zstd"]
    with pytest.raises(breccia.Error):
        repo.config["nonsense"] = "1"
    repo.config.clear()
    assert repo.config["codecs"] == "chosen"


def test_conflicting_sessions(grid):
    one, two = grid.session("main"), grid.session("main")
    one["x"][0, 0], two["x"][0, 0] = 1, 2
    one.commit("one")
    with pytest.raises(breccia.ConflictError) as caught:
        two.commit("two")
    assert caught.value.conflicts == tuple(two.conflicts()) != ()
    assert two["x"][0, 0] == 2
    with pytest.raises(breccia.StaleError):
        two.commit("two", merge=False)
    two.discard()
    assert two["x"][0, 0] == 1
    three, four = grid.session("main"), grid.session("main")
    three["x"][0, 1], four["x"][0, 2] = 1, 2
    three.commit("three")
    four.commit("four")
    assert grid.view("main")["x"][0, :3].tolist() == [1, 1, 2]


def test_drafts(grid):
    s = grid.session("main")
    s["x"][3] = 3
    (draft,) = (d for d in grid.drafts() if d.nodes)
    assert draft.branch == "main" and draft.nodes == 1
    with pytest.raises(breccia.BusyError):
        grid.adopt(draft.id)


def test_a_collector_of_garbage_ends_sessions_in_any_order(repo):
    """The collector found sessions in a circle and closed a session's handles, which others then got."""
    import gc

    with repo.session("main", message="m") as s:
        s["a"] = np.arange(4)
    first = repo.view("main")  # has the first handle of the file
    for n in range(20):
        circle = [(s, s["a"]) for s in (repo.view("main"), repo.view("main"))]
        if n % 2:
            circle.reverse()
        circle.append(circle)
        del circle
        gc.collect()
        assert all(handle.repo for handle in repo.handles._idle)
        views = [repo.view("main") for _ in range(3)]
        assert all(view["a"][3] == first["a"][3] == 3 for view in views)


def test_savepoints_and_transactions(session):
    session["a"] = np.zeros(4)
    with pytest.raises(KeyError):
        with session.savepoint():
            session["a"][0] = 1
            session["b"] = np.ones(3)
            raise KeyError
    assert session["a"][0] == 0 and "b" not in session
    with session.savepoint("kept"):
        session["a"][0] = 1
    with pytest.raises(KeyError):
        with session.transaction():
            session["a"][1] = 1
            session.create_array("c", shape=3, dtype="f4")
            session["nowhere"]
    assert session["a"][:2].tolist() == [1, 0] and "c" not in session
    with session.transaction():
        with session.transaction():
            session["a"][1] = 1
        session["d"] = session["a"]
    assert session["d"][:2].tolist() == [1, 1]


def test_hierarchy(session):
    session["g/h/a"] = np.arange(6).reshape(2, 3)
    session["g/b"] = np.float32(4)
    assert list(session) == ["g"] and list(session["g"]) == ["b", "h"] and len(session["g"]) == 2
    assert "g/h/a" in session and "h/a" in session["g"] and "/g/h" in session and "x" not in session
    assert session["g"]["h"]["a"] == session["g/h/a"] or session["g/h/a"].path == "/g/h/a"
    assert [n.path for n in session.walk()] == ["/g", "/g/b", "/g/h", "/g/h/a"]
    session.move("g/h", "moved")
    session.copy("moved/a", "copied")
    assert session["copied"][1, 2] == 5 and "g/h" not in session
    session.commit("all")
    del session["moved"]
    session["copied"][0] = 9
    session.restore("copied")
    session.restore("moved")
    assert session["copied"][0, 0] == 0 and "moved/a" in session
    for wrong in "nowhere", "g/nowhere":
        with pytest.raises(KeyError, match="nowhere"):
            session[wrong]
        with pytest.raises(KeyError):
            del session[wrong]
    with pytest.raises(breccia.ExistsError):
        session.create_group("g")
    with pytest.raises(breccia.ExistsError):
        session.create_array("g/b", shape=1, dtype="i4")
    session["g/b"] = np.arange(3)  # of another shape: it is replaced
    assert session["g/b"].shape == (3,)
    session["g/b"].attrs["keep"] = 1
    session["g/b"] = np.arange(3.5)
    assert session["g/b"].dtype == "f8" and session["g/b"].attrs == {"keep": 1}


def test_create_array(session):
    make = session.create_array
    assert make("auto", shape=(4000, 4000), dtype="f4").chunks[0] < 4000
    assert make("int", shape=(10, 20), dtype="f4", chunks=7).chunks == (7, 7)
    assert make("all", shape=(10, 20), dtype="f4", chunks=(-1, 5)).chunks == (10, 5)
    assert make("one", shape=(10, 20), dtype="f4", chunks=False).chunks == (10, 20)
    a = make("full", shape=(10, 20), dtype="f4", chunks=(2, 5), shards=(4, 10), compressors="zstd",
             fill_value=1, dimension_names=("y", None), attributes={"a": 1})
    assert a.chunks == (2, 5) and a.shards == (4, 10) and a.dimension_names == ("y",
                                                                                None) and a.attrs["a"] == 1
    assert a[0, 0] == 1 and a.size == 200 and a.ndim == 2 and a.nbytes == 800 and a.name == "full"
    gzip = {"name": "gzip", "configuration": {"level": 3}}
    assert [c["name"] for c in make("g", shape=9, dtype="i2", compressors=gzip).codecs] == ["bytes", "gzip"]
    assert [c["name"] for c in make("n", shape=9, dtype="i2", compressors=None).codecs] == ["bytes"]
    assert [c["name"] for c in make("v", shape=9, dtype=str, compressors=[gzip]).codecs] == ["vlen-utf8",
                                                                                             "gzip"]
    whole = [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}]
    assert make("w", shape=(3, 4), dtype="u1", codecs=whole).codecs[0]["name"] == "transpose"
    with pytest.raises(ValueError):
        make("bad", shape=(3, 4), dtype="u1", chunks=(3,))
    with pytest.raises(ValueError):
        make("bad", shape=(3, 4), dtype="u1", chunks=(0, 3))
    with pytest.raises(ValueError):
        make("bad", dtype="u1")
    with pytest.raises(ValueError):
        make("bad", shape=3, dtype="u1", dimension_names=("a", "b"))
    with pytest.raises(TypeError):
        make("bad", shape=(3, 4), dtype="u1", dimension_names="yx")
    with pytest.raises(ValueError, match="no length is negative"):
        make("bad", shape=(3, -4), dtype="u1")
    with pytest.raises(TypeError):
        make("bad", shape=(3, 4.5), dtype="u1")
    with pytest.raises(breccia.Error):
        make("bad", shape=3, dtype="u1", compressors="nonsense")
    with pytest.raises(TypeError):
        make(5, shape=3, dtype="u1")
    assert "bad" not in session


def test_arrays_change(session):
    a = session.create_array("a", data=np.arange(12).reshape(3, 4), chunks=2)
    assert a.append(np.ones((2, 4), "i8")) == (5, 4)
    assert a.append([[7]] * 5, axis=1) == (5, 5)
    a.resize((2, 5))
    a.resize(4, 5)
    assert a[...].tolist() == [[0, 1, 2, 3, 7], [4, 5, 6, 7, 7], [0] * 5, [0] * 5]
    with pytest.raises(ValueError):
        a.append(np.ones((2, 4)))
    with pytest.raises(ValueError):
        a.resize(3)
    a.codecs = [LITTLE, {"name": "gzip", "configuration": {"level": 1}}]
    assert [c["name"] for c in a.codecs] == ["bytes", "gzip"]
    a.set_codecs([LITTLE], rewrite=True)
    assert a[1, 3] == 7 and a.backend["name"] == "inline"
    a.backend = "inline"
    assert a.nbytes_stored > 0 and a.nchunks_initialized == 3 and a.cdata_shape == (2, 3)
    assert "inline" in a.info and "(4, 5)" in a.info
    other = session["a"]
    a.resize(9, 9)
    assert other.shape == (9, 9) and other[8, 8] == 0
    line = session.create_array("line", shape=3, dtype="i4")
    line.resize(np.int64(5))
    assert line.shape == (5,)
    with pytest.raises(ValueError, match="no length is negative"):
        line.resize(-1)
    with pytest.raises(ValueError, match="does not go behind"):
        line.append(7)


def test_blame(grid):
    first = grid.resolve("main")
    write(grid, "main", np.s_[0, :3], 1)
    x = grid.view(grid.resolve("main"))["x"]
    assert [(b.first, b.commit) for b in x.blame()] == [((0, 0), grid.resolve("main"))]
    runs = x.blame(np.s_[0, :], elements=True)
    assert [(b.first, b.count, b.commit) for b in runs] == [((0, 0), 3, grid.resolve("main")),
                                                            ((0, 3), 7, first)]
    assert runs[0].author == grid.commit().author and runs[1].author == "Ada"
    grid.draft()["x"][0, 5] = 3
    assert grid.view("main")["x"].blame(np.s_[0, :], elements=True) == runs


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16",
                                   "M8[s]", "m8[D]"])
def test_stats(repo, dtype):
    random = np.random.default_rng(5)
    data = random.integers(0, 100, (50, 37)).astype("i8").astype(dtype)
    if np.dtype(dtype).kind in "fc":
        data = (random.normal(280, 15, data.shape)).astype(dtype)
        data[3, 4:9] = np.nan
    elif np.dtype(dtype).kind in "mM":
        data[3, 4:9] = "NaT"
    with repo.session("main", message="data") as s:
        s.create_array("x", data=data, chunks=16)
    found = repo.view("main")["x"].stats()
    known = data[data == data]
    if np.dtype(dtype).kind == "c":
        known = np.abs(known)
    assert found.count == data.size and found.nan == data.size - known.size and found.infinite == 0
    fill = repo.view("main")["x"].fill_value
    assert found.fill == (np.count_nonzero(data == fill) if fill == fill else found.nan)
    counts, edges = found.histogram
    if np.dtype(dtype).kind == "c":
        assert found.of == "magnitudes" and np.allclose([found.min, found.max], [known.min(), known.max()])
    else:
        assert found.of == "values" and found.min == known.min() and found.max == known.max()
        assert type(found.min) is type(known.min())
        numbers = known.view("i8") if np.dtype(dtype).kind in "mM" else known.astype("f8")
        wanted = np.histogram(numbers, edges.view("i8") if np.dtype(dtype).kind in "mM" else edges)[0]
        assert counts.tolist() == wanted.tolist() and len(edges) == len(counts) + 1 <= 21
    assert counts.sum() == known.size
    if np.dtype(dtype).kind in "mM":
        assert found.mean == np.array(known.view("i8").mean().round(), "i8").view(dtype)
        assert np.isclose(found.std, known.view("i8").std())
    else:
        assert np.isclose(found.mean, known.mean(dtype="f8")) and np.isclose(found.std, known.std(dtype="f8"))
    if np.dtype(dtype).kind in "?biu":
        values, times = np.unique(known, return_counts=True)
        assert found.values == dict(zip(values.tolist(), times.tolist()))
    assert repr(found).startswith(f"<Stats of 1850 {found.of}")
    again = repo.view("main")["x"].stats()
    assert again[:9] == found[:9] and again.values == found.values


def test_stats_without_numbers(repo):
    s = repo.draft()
    s.create_array("none", shape=(0, 3), dtype="f8")
    found = s["none"].stats()
    assert found.min is None and found.max is None and np.isnan(found.mean) and found.histogram[0].size == 0
    assert repr(found) == "<Stats of 0 values>"
    s.create_array("big", shape=10**15, dtype="i4", chunks=1000, fill_value=3)
    s["big"][5] = -1
    found = s["big"].stats()
    assert found.count == 10**15 and found.values == {-1: 1, 3: 10**15 - 1}
    s.create_array("words", data=np.array(["a", "", "ccc"], dtype=np.dtypes.StringDType()))
    assert s["words"].stats().of == "lengths" and s["words"].stats().max == 3
    s.create_array("pairs", shape=3, dtype=[("a", "i4")])
    with pytest.raises(NotImplementedError, match="elements have fields"):
        s["pairs"].stats()


def check_stats(found, data):
    data = np.asarray(data)
    known = data[data == data]
    assert (found.count, found.nan) == (data.size, data.size - known.size)
    if known.size == 0:
        assert found.min is None
        return
    assert (found.min, found.max) == (known.min(), known.max()) and found.histogram[0].sum() == known.size
    if known.dtype.kind == "M":
        assert all(np.count_nonzero(known == value) == n for value, n in found.values.items())
        known = known.astype("i8").astype("f8")
        assert found.mean.view("i8") == known.mean().round()
    else:
        assert np.isclose(found.mean, known.mean(dtype="f8"))
    assert np.isclose(found.std, known.std(dtype="f8"))
    if known.dtype.kind in "biu":
        values, times = np.unique(known, return_counts=True)
        assert found.values == dict(zip(values.tolist(), times.tolist()))


@pytest.mark.parametrize("dtype", ["i2", "u1", "f4", "f8", "M8[s]"])
def test_stats_of_a_part(repo, dtype):
    random = np.random.default_rng(7)
    data = random.integers(0, 100, (70, 37)).astype("i8").astype(dtype)
    if data.dtype.kind in "fM":
        data[3, 4:9] = np.array("NaN" if data.dtype.kind == "f" else "NaT").astype(dtype)
    s = repo.draft()
    s.create_array("x", data=data, chunks=(16, 8), fill_value=data[0, 0])
    for key in [np.s_[16:48, 8:24], np.s_[5:61:7, ::-3], np.s_[3], np.s_[3, 4:9], np.s_[..., -1], np.s_[2, 2], 0,
                np.s_[5:5], ...] * 2:
        found = s["x"].stats(key)
        check_stats(found, data[key])
        assert found.fill == np.count_nonzero(data[key] == data[0, 0])
        whole = s["x"].stats()  # keeps what whole chunks come to
        check_stats(whole, data)
    for wrong in [70, (0, 0, 0), [1, 2]]:
        with pytest.raises(IndexError):
            s["x"].stats(wrong)


def test_stats_of_fields(repo):
    dtype = np.dtype([("depth", "f4"), ("name", "U2"), ("at", [("x", "i2"), ("when", "M8[D]")]), ("at.x", "?")])
    data = np.zeros((40, 3), dtype)
    data["depth"] = np.arange(120).reshape(40, 3) / 8
    data["depth"][7, 2] = np.nan
    data["at"]["x"] = np.arange(120).reshape(40, 3) - 50
    data["at"]["when"] = np.datetime64("2026-01-01") + np.arange(120).reshape(40, 3)
    data["at.x"][3:9] = True
    s = repo.draft()
    s.create_array("table", data=data, chunks=(16, 2))
    for key in [..., np.s_[3:30:4, 1:], np.s_[16:32, :2]] * 2:
        part = data[key]
        check_stats(s["table"].stats(key, field="depth"), part["depth"])
        check_stats(s["table"].stats(key, field="at.when"), part["at"]["when"])
        check_stats(s["table"].stats(key, field="at.x"), part["at.x"])  # the field of that very name
    for wrong in ["", "x", "at.", "at.y", "depth.x"]:
        with pytest.raises(ValueError, match="no field"):
            s["table"].stats(field=wrong)
    for other in ["name", "at"]:
        with pytest.raises(NotImplementedError):
            s["table"].stats(field=other)
    s.create_array("plain", shape=2, dtype="i4")
    with pytest.raises(ValueError, match="no field"):
        s["plain"].stats(field="x")


def test_exchange(repo, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    commit = repo.import_(tmp_path / "a.npy")
    assert repo.resolve("main") == commit and repo.view()["a"][1, 2] == 5 and "a.npy" in repo.commit().message
    repo.export(tmp_path / "out", "/")
    repo.export(tmp_path / "b.npy", "a")
    assert np.load(tmp_path / "b.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    s = repo.session("main")
    assert s.import_(tmp_path / "out", "copy") == "/copy" and s["copy/a"][1, 2] == 5
    with pytest.raises(KeyError):
        repo.import_(tmp_path / "nowhere.npy")
    with pytest.raises(breccia.ExistsError):
        repo.export(tmp_path / "out", "/")


def test_opening(tmp_path):
    path = tmp_path / "x.brc"
    with pytest.raises(KeyError, match="create=True makes a repository"):
        breccia.open(path)
    repo = breccia.open(path, create=True)
    breccia.open(path, create=True)
    with repo.session(message="a") as s:
        s["a"] = np.arange(3)
    repo.close()
    assert repo.view()["a"][2] == 2  # a closed one opens again
    for read in breccia.open(path, read_only=True), breccia.open(str(path), wait=0.5, memory=1 << 20,
                                                                 threads=2):
        assert read.session("main")["a"][1] == 1 and pathlib.Path(read.path) == path
    with pytest.raises(breccia.ReadOnlyError, match="no read_only=$"):
        breccia.open(path, read_only=True).branch("b")
    pytest.importorskip("zarr")
    with pytest.raises(breccia.ReadOnlyError):
        breccia.open(path, read_only=True).store(mode="r+")
    assert breccia.open(bytes(path)).path == str(path)
    (tmp_path / "text").write_text("no repository" * 100)
    with pytest.raises(breccia.FormatError):
        breccia.open(tmp_path / "text")
    with pytest.raises(ValueError):
        repo.view("nul\0")


def test_pipelines_by_name(grid):
    with (breccia.open(grid.path, pipeline="serial") as serial,
          breccia.open(grid.path, pipeline={"name": "batched"}) as b):
        assert pickle.loads(pickle.dumps(serial)) == serial != grid
        write(serial, "main", (0, 1), 7)
        assert b.view("main")["x"][0, 1] == grid.view("main")["x"][0, 1] == 7
    with pytest.raises(breccia.UnsupportedError, match=r"\(known: batched, serial\)"):
        breccia.open(grid.path, pipeline="cuda")


def test_pickling(grid):
    assert pickle.loads(pickle.dumps(grid)) == grid
    with breccia.open(grid.path, readback=False) as fast:
        again = pickle.loads(pickle.dumps(fast))
        for repo, wanted in (grid, 0), (fast, lib.BRC_READBACK_NONE), (again, lib.BRC_READBACK_NONE):
            assert repo.handles.readback == wanted and (repo == fast) == bool(wanted)
        write(again, "main", (0, 1), 1)
        assert grid.view("main")["x"][0, 1] == 1
        again.close()
    at = grid.view(grid.resolve("main"))
    for made in at, grid.view("main"), grid.draft("main"), grid.session("main"):
        again = pickle.loads(pickle.dumps(made))
        assert again == made and again["x"].shape == (10, 10) and again.kind == made.kind
        array = pickle.loads(pickle.dumps(made["x"]))
        assert array.path == "/x" and array[0, 0] == 0
    grid.tag("v1")
    tagged = pickle.dumps(grid.view("v1"))
    write(grid, "main", 0, 4)
    grid.delete_tag("v1", force=True)
    grid.tag("v1", "main")
    assert pickle.loads(tagged)["x"][0, 0] == 0  # the commit that it was, not the name


def test_the_collector_of_cycles_finishes_no_handle_that_was_given_back(grid):
    """An exception that is kept is such a cycle, with all that its frames had."""
    for _ in range(5):
        view = grid.view("main")
        with view._sessions.at_work(), view._sessions.at_work():
            pass
        view.me = view
        del view
        gc.collect()
        assert all(handle.repo for handle in grid.handles._idle)
        assert grid.resolve("main") == grid.log(limit=1)[0].id


def test_progress(grid):
    told = []
    grid.fsck(progress=lambda *said: told.append(said))
    assert told and all(phase and done <= total for phase, done, total in told if total)
    with pytest.raises(ZeroDivisionError):
        grid.fsck(progress=lambda *_: 1 / 0)
    assert grid.fsck(progress=True).damage == ()
    repo = breccia.open(grid.path, progress=lambda *said: told.append(said))
    told.clear()
    repo.gc()
    assert told
    told.clear()
    with repo.session("main") as s:
        s.export(f"{grid.path}.npy", "x")
    assert told[-1][0] == "export" and told[-1][1] == told[-1][2] == 400
    s = repo.session("main")
    with pytest.raises(ZeroDivisionError):
        s.import_(f"{grid.path}.npy", "y", progress=lambda *_: 1 / 0)
    assert "y" not in s
    told.clear()
    assert s.import_(f"{grid.path}.npy", "y", progress=False) == "/y" and not told
    s["y"].set_codecs([LITTLE], rewrite=True)
    assert told
    s.close()


def test_a_phase_has_one_bar(grid, monkeypatch):
    bars = []

    class Bar:  # as tqdm where it is switched off: with no more than this
        n = 0

        def __init__(self, desc, **_):
            bars.append(desc)

        update = close = lambda *_: None

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    grid.fsck(progress=True)
    assert bars and len(bars) == len(set(bars))


def test_display(repo):
    evil = "<script>alert(1)</script>&"
    with repo.session("main", message=evil, author=evil) as s:
        s.create_group(evil, attributes={evil: evil})
        s[evil + "/image"] = np.outer(np.arange(20.0), np.arange(30.0))
        s["line"] = np.array([1.0, np.nan, np.inf, 3.0])
        s["deep/er/x"] = np.zeros((2, 3, 4), "u1")
        s["words"] = ["a"]
        s["none"] = np.zeros((0, 4))
        s["bell\x07\x1b[31m"] = 1
    repo.tag("v1")
    view = repo.view("main")
    text = repr(view)
    assert "└── " in text and "2×3×4 uint8" in text and "\x07" not in text and "\x1b" not in text
    assert "breccia.Array /line" in repr(view["line"])
    with repo.session("main", message="\x1b[2J\u202egnp", author="e\x07 <e@example.org>") as s:
        s["bell\x07\x1b[31m"] = 2
    (change,) = repo.diff("HEAD~1", "HEAD")
    said = repr([view[change.path], change, *repo.log(limit=1), breccia.Conflict(change.path, "chunk", "c/0")])
    assert "\\x1b[31m" in said and said.isprintable()
    bell = repo.draft("main")[change.path]
    for wrong in (lambda: bell.resize(1, 2), lambda: bell["field"], lambda: repo.view("main")["\x1b[31m"],
                  lambda: breccia._dtypes.to_numpy("\x1b[31m")):
        with pytest.raises((ValueError, LookupError, breccia.UnsupportedError), match=r"\\x1b") as error:
            wrong()
        assert str(error.value).isprintable()
    assert set(view._ipython_key_completions_()) == set(view)
    pages = [repo._repr_html_(), view._repr_html_()] + [a._repr_html_() for a in view.walk()]
    for page in pages:
        assert "<script" not in page and page.startswith("<div>")
    assert "&lt;script&gt;" in pages[0] and "v1" in pages[0]
    image = view[evil + "/image"]._repr_html_()
    import base64, re, struct, zlib
    png = base64.b64decode(re.search("base64,([^']*)'", image)[1])
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (30, 20)
    at = png.index(b"IDAT")
    (size,) = struct.unpack(">I", png[at - 4:at])
    pixels = np.frombuffer(zlib.decompress(png[at + 4:at + 4 + size]), "u1").reshape(20, 31)[:, 1:]
    assert pixels[0, 0] == 0 and pixels[-1, -1] == 255
    line = view["line"]._repr_html_()
    assert "<svg" in line and "nan" not in line and "inf" not in line.lower().replace("info", "")


def test_no_paths_are_not_all(grid):
    diverged(grid, 1, 2)
    with pytest.raises(ValueError, match="paths is empty"):
        grid.merge("trial", theirs=True, paths=[])
    grid.merge("trial", keep=True)
    with pytest.raises(ValueError, match="paths is empty"):
        grid.merge_settle("theirs", [])
    assert len(grid.merge_state().open) == 1 and grid.view("main")["x"][0, 0] == 1


def test_messages_name_what_python_has(grid):
    diverged(grid, 1, 2)
    with pytest.raises(breccia.MisuseError, match="force=True"):
        grid.delete_branch("trial")
    grid.merge("trial", keep=True)
    for call in grid.merge_continue, lambda: grid.draft().commit("no"):
        with pytest.raises(breccia.ConflictError, match=r"merge_(settle|continue)\(\)") as caught:
            call()
        assert "--" not in str(caught.value)


def test_times_at_the_ends(grid):
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    for i, (given, told) in enumerate([(epoch, epoch + datetime.timedelta(microseconds=1)),  # 0 means now
                                       (2**62, datetime.datetime.max), (-2**62, datetime.datetime.min)], 1):
        s = grid.session()
        s["x"][0, 0] = i
        s.commit("m", time=given) if given is epoch else s._out("brc_oid", lib.brc_session_commit, _calls.options(
            "brc_commit_opts", message="m", time_us=given))
        assert grid.log()[0].time == told.replace(tzinfo=datetime.timezone.utc)
    assert "9999" in repr(grid.log()[1]) and len(grid.log()) == 4


def test_what_is_gone_or_damaged_prints(grid):
    import sqlite3
    grid.branch("gone")
    view, group = grid.view("gone"), grid.draft("gone").create_group("g")
    grid.delete_branch("gone", force=True)
    for thing in view, group:
        assert "no branch 'gone'" in repr(thing) and "no branch &#x27;gone" in thing._repr_html_()
    with grid.session(message="image") as s:
        s["image"] = np.random.default_rng(0).random((20, 20))
    grid.close()
    with sqlite3.connect(grid.path) as db:
        db.execute("UPDATE blob SET data = zeroblob(length(data)) WHERE length(data) > 2000")
    db.close()
    image = grid.view("main")["image"]
    assert "20×20" in image._repr_html_() and "is damaged" in image._repr_html_()


def test_what_an_import_cannot_keep_is_listed(repo, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.array([1]))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("notes.txt", "n")
    with pytest.raises(breccia.UnsupportedError, match="skip_unsupported=True"):
        repo.import_(tmp_path / "a.npz", "/a")
    left = repo.import_(tmp_path / "a.npz", "/a", skip_unsupported=True, rename={"/x": "y", "y": "x"})
    assert [(part["path"], "notes.txt" in part["message"]) for part in left] == [("/notes.txt", True)]
    assert all(part.keys() == {"path", "kind", "message", "remedy"} for part in left)
    view = repo.view()
    assert view["a/y"][...].tolist() == [0, 1, 2] and view["a/x"][...].tolist() == [1]
    with repo.session() as s:
        with pytest.raises(breccia.NotFoundError, match="/nowhere"):
            s.import_(tmp_path / "a.npz", "/b", skip_unsupported=True, rename={"/nowhere": "z"})
        assert "b" not in s
        np.save(tmp_path / "c.npy", np.arange(2))
        assert s.import_(tmp_path / "c.npy", skip_unsupported=True) == []
        s.discard()


def test_an_import_that_fails_leaves_no_draft(grid, tmp_path):
    np.save(tmp_path / "big.npy", np.arange(10**6))
    kept = []

    def stop(phase, done, total):
        raise KeyboardInterrupt
    try:
        grid.import_(tmp_path / "big.npy", progress=stop)
    except KeyboardInterrupt as error:
        kept.append(error)  # its traceback has what the call had, as sys.last_traceback does
    assert kept and grid.drafts() == [] and len(grid.log()) == 1


def test_an_id_is_no_name(grid):
    write(grid, "main", 0, 1)
    first, second = (c.id for c in reversed(grid.log()))
    for make in grid.branch, grid.tag:
        with pytest.raises(ValueError, match="id of a commit"):
            make(first, second)
    grid.branch("0" * 32)  # as long as one
    assert grid.view(first)["x"][0, 0] == 0 and grid.resolve("0" * 32) == second


def test_names_of_files_and_waits_that_c_lacks(repo, tmp_path):
    with pytest.raises(ValueError, match="NUL"):
        breccia.open(tmp_path / "cut\0short.brc", create=True)
    assert not (tmp_path / "cut").exists()
    for wait in 1e9, float("inf"):
        assert breccia.open(repo.path, wait=wait).branches() == {"main": ""}


def test_files_whose_names_are_no_text(grid, tmp_path):
    import os
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npy")
    np.save(name, np.arange(3))
    grid.import_(name, "/from")
    grid.export(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.npy"), "/from")
    assert np.load(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.npy")).tolist() == [0, 1, 2]
    assert grid.commit().message == "Import \\udcff.npy as /from"
    grid.import_(os.fsencode(name))
    assert [k for k in grid.view() if k not in ("x", "from")] == ["-"]  # what UTF-8 has no place for


def test_a_backup_is_made_and_brought_up_to_date(tmp_path, repo):
    with repo.session(message="one") as s:
        s["a"] = np.arange(100, dtype="i4")
    dest = tmp_path / "backup.brc"
    first = repo.backup(dest)
    assert not first.incremental and first.objects_checked == first.objects_copied > 0
    with repo.session(message="two") as s:
        s["a"][3] = 77
    second = repo.backup(dest)
    assert second.incremental and 0 < second.bytes_copied < first.bytes_copied
    with breccia.open(dest, read_only=True) as copy:
        assert [c.message for c in copy.log()] == ["two", "one"] and copy.view("main")["a"][3] == 77
    with breccia.open(dest) as copy, copy.session(message="elsewhere") as s:
        s["a"][3] = 78
    with pytest.raises(breccia.ExistsError, match="changed since"):
        repo.backup(dest)


def test_log_of_elements(repo):
    with repo.session("main", message="made") as s:
        s.create_array("g/a", data=np.ones((6, 2), "i4"), chunks=(2, 2))
        s.create_array("words", data=np.array(["a", "b"], dtype=np.dtypes.StringDType()))
    with repo.session("main", message="moved and changed") as s:
        s.move("g/a", "g/b")
        s["g/b"][1] = 7
    with repo.session("main", message="grown") as s:
        s["g/b"].resize(8, 2)
        s["g/b"][7] = [8, 9]
    with repo.session("main", message="another place") as s:
        s.move("g", "h")
    with repo.session("main", message="else") as s:
        s["words"][1] = "c"
        s["h/b"][0, 0] = 2
    array = repo.view("main")["h/b"]

    def told(key, **options):
        return [(commit.message, change.what, [(v.index, v.before, v.now) for v in change.values])
                for commit, (change,) in array.log(key, **options)]

    assert told(np.s_[1, 0]) == [("moved and changed", "moved", [((1, 0), 1, 7)]),
                                 ("made", "added", [((1, 0), None, 1)])]
    assert told(np.s_[-1]) == [("grown", "changed", [((7, 0), None, 8), ((7, 1), None, 9)])]
    assert told((), values=1, limit=1) == [("else", "changed", [((0, 0), 1, 2)])]
    assert [c[0] for c in told(...)] == ["else", "grown", "moved and changed", "made"]
    assert array.log(np.s_[1, 0])[0].commit.path == "/g/b" and repo.log(limit=1)[0].path is None
    fixed = repo.view(repo.resolve("main~1"))["h/b"]
    assert [c.commit.message for c in fixed.log(0)] == ["made"]
    assert repr(repo.draft()["h/b"].log(np.s_[1, 0])) == repr(array.log(np.s_[1, 0]))
    (words, made) = repo.view("main")["words"].log()
    assert [(v.before, v.now) for v in words.changes[0].values] == [("b", "c")]
    assert [(v.before, v.now) for v in made.changes[0].values] == [(None, "a"), (None, "b")]
    with pytest.raises(IndexError):
        array.log(9)


def test_diff_of_a_part(repo):
    with repo.session("main", message="made") as s:
        s.create_array("a", data=np.arange(40).reshape(10, 4), chunks=(3, 4))
    s = repo.draft()
    s["a"][2:5, 1] += 100
    for found in [repo.diff(path="a", key=np.s_[3:, ::2], elements=True),
                  s.diff(path="a", key=np.s_[:2], elements=True)]:
        assert found[0].elements.changed == 0
    (change,) = repo.diff(path="a", key=np.s_[-7:, 1], values=5)
    assert [v.index for v in change.values] == [(3, 1), (4, 1)]
    (change,) = s.diff("main", path="a", key=4, values=5)
    assert [(v.index, v.before, v.now) for v in change.values] == [((4, 1), 17, 117)]
    s.commit("more")
    (change,) = repo.diff("main~1", "main", path="a", key=np.s_[4], elements=True)
    assert change.elements.changed == 1 and change.elements.max_abs == 100
    assert repo.diff("main", path="a", key=np.s_[4]) == []
    with repo.session("main", message="gone") as s:
        del s["a"]
    assert repo.diff("main~1", "main", path="a", key=0, elements=True)[0].elements.removed == 4
    for wrong in [{"key": 0}, {"path": "/", "key": 0}]:
        with pytest.raises(ValueError, match="key= selects"):
            repo.diff(**wrong)
    with pytest.raises(KeyError):
        repo.diff(path="nowhere", key=0)
    with pytest.raises(IndexError):
        repo.diff("main~1", "main", path="a", key=10)


def test_a_new_array_with_data_lets_others_write(repo, session, monkeypatch):
    """create_array() with much data writes in steps, between which it holds no lock, and leaves nothing if it fails;
    little data are one transaction."""
    put, others = breccia.Array.set, []

    def put_beside_others(array, *args, **options):
        put(array, *args, **options)
        with breccia.open(repo.path, wait=0) as other:
            others.append(other.session("main").create_group("meanwhile").path)

    monkeypatch.setattr(breccia.Array, "set", put_beside_others)
    with pytest.raises(breccia.BusyError):
        session.create_array("a", data=np.arange(10))
    assert "a" not in session and others == []
    monkeypatch.setattr(breccia.session, "AT_ONCE", 0)
    session.create_array("a", data=np.arange(10))
    assert others == ["/meanwhile"]
    assert np.array_equal(session["a"][...], np.arange(10))
    monkeypatch.undo()
    with pytest.raises(breccia.InvalidError):
        session.create_array("b", data=np.array([1000]), dtype="int8")
    assert "b" not in session
