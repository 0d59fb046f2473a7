"""One session in many processes: copies, children, what becomes of both when a process is killed; dask and xarray."""
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import breccia


@pytest.fixture
def s(repo):
    with repo.session("main", message="empty") as made:
        made.create_array("x", shape=40, dtype="i4", chunks=8)
    return repo.session("main")


def fill(session, start, stop, value):
    """Does a worker's part, and gives its copy of the session back."""
    session["x"][start:stop] = value
    return session


def nested(session):
    """A worker that has a child itself, and one that it drops."""
    child, other = session.fork(), session.fork()
    fill(child, 0, 10, 5)
    fill(other, 0, 10, 6)
    fill(session, 10, 20, 7)
    session.join(child)
    return session


def die(array, start, stop):
    pickle.loads(array)[start:stop] = start + 1
    os.kill(os.getpid(), signal.SIGKILL)


def run(method, function, *args):
    """How a process of its own ends."""
    process = multiprocessing.get_context(method).Process(target=function, args=args)
    process.start()
    process.join()
    return process.exitcode


def test_copies_are_one_draft(repo, s):
    fill(s, 0, 4, 1)
    copy = pickle.loads(pickle.dumps(s))
    assert copy == s and copy.kind == "private" and hash(copy) == hash(s) and s != repo.session("main")
    assert pickle.dumps(s) == pickle.dumps(copy)
    fill(copy, 2, 10, 2)
    assert s["x"][:11].tolist() == [1, 1, *[2] * 8, 0]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: fill(pickle.loads(pickle.dumps(s)), 10 + 3 * i, 13 + 3 * i, i), range(10)))
    assert s["x"][10:].tolist() == np.repeat(np.arange(10), 3).tolist()
    copy["new"] = np.arange(3)
    assert pickle.loads(pickle.dumps(s["new"]))[2] == 2
    assert not repo.view("main")["x"][...].any()
    s.commit("one")
    fill(copy, 0, 1, 9)  # they go on together
    assert s["x"][:4].tolist() == [9, 1, 2, 2] and repo.view("main")["x"][:4].tolist() == [1, 1, 2, 2]
    s.discard()
    assert copy["x"][0] == 1 and copy.clean()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_write_one_draft(repo, s, method):
    """Parts that meet within a chunk: no element is lost."""
    fill(s, 36, 40, 9)
    with ProcessPoolExecutor(3, multiprocessing.get_context(method)) as pool:
        back = list(pool.map(fill, [s] * 6, range(0, 36, 6), range(6, 42, 6), range(1, 7)))
    assert s["x"][...].tolist() == [*np.repeat(np.arange(1, 7), 6), *[9] * 4]
    assert back[0] == s and back[0]["x"][35] == 6
    assert not repo.view("main")["x"][...].any() and len(repo.log()) == 1
    s.commit("all")
    assert repo.view("main")["x"][::6].tolist() == [1, 2, 3, 4, 5, 6, 9] and len(repo.log()) == 2


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_fork_dirty_and_join_in_any_order(repo, s, order):
    fill(s, 0, 3, 1)
    s["added"] = np.arange(2)
    children = [s.fork() for _ in range(3)]
    assert all(c.kind == "child" and c["x"][2] == 1 and "added" in c for c in children)
    for i, child in enumerate(children):
        with child:
            fill(child, 5 * i + 5, 5 * i + 10, i + 2)
    fill(s, 38, 40, 8)
    assert s["x"][5] == 0 and children[0]["x"][39] == children[0]["x"][10] == 0
    with pytest.raises(breccia.MisuseError):
        children[0].commit("of a child")
    drafts = repo.drafts()
    assert [d.parent for d in drafts[1:]] == [drafts[0].id] * 3 and drafts[0].parent == 0
    s.join(children[order[0]])
    s.join([children[i] for i in order[1:]])
    assert s["x"][...].tolist() == [1] * 3 + [0] * 2 + [2] * 5 + [3] * 5 + [4] * 5 + [0] * 18 + [8] * 2
    for again in children[0], pickle.loads(pickle.dumps(children[1])):
        with pytest.raises(breccia.StaleError):
            s.join(again)
    with pytest.raises(breccia.StaleError):
        children[2]["x"][0]
    assert len(repo.log()) == 1
    s.commit("joined")
    assert repo.view("main")["x"][15] == 4 and len(repo.log()) == 2 and not repo.drafts()[1:]


def test_overlap_is_reported_and_changes_nothing(repo, s):
    a, b, c = s.fork(), s.fork(), s.fork()
    fill(a, 0, 10, 1)
    fill(b, 5, 15, 1)  # the same values: no conflict
    fill(c, 9, 12, 2)
    fill(s, 39, 40, 5)
    with pytest.raises(breccia.ConflictError) as caught:
        s.join(a, b, c)
    assert {(x.path, x.key) for x in caught.value.conflicts} == {("/x", "c/1")}
    assert all(x.child is c for x in caught.value.conflicts) and "c/1" in repr(caught.value.conflicts)
    assert s["x"][...].tolist() == [0] * 39 + [5] and a["x"][0] == b["x"][14] == 1 and c["x"][9] == 2
    c.discard()
    s.join({"a": a, "b": b, "c": c}.values())
    assert s["x"][...].tolist() == [1] * 15 + [0] * 24 + [5]


def test_what_is_no_child(repo, s):
    other, child = repo.session("main"), s.fork()
    for wrong in other, s, other.fork(), repo.draft("main"), repo.view("main"), child.fork():
        with pytest.raises(breccia.MisuseError):
            s.join(wrong)
    with pytest.raises(breccia.InvalidError):
        s.join(child, child)
    for wrong in repo.draft("main"), repo.view("main"):
        with pytest.raises((breccia.MisuseError, breccia.ReadOnlyError)):
            wrong.fork()
    with s.transaction(), pytest.raises(breccia.MisuseError):
        s.fork()
    s.join()
    s.join([])
    fill(child, 0, 1, 1)
    with pytest.raises(ZeroDivisionError), child:
        1 / 0
    assert child["x"][0] == 0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_in_workers(repo, method):
    with repo.session("main", message="in one commit") as s:
        s["x"] = np.zeros(40, "i4")
        children = [s.fork() for _ in range(3)]
        with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
            back = list(pool.map(fill, children, (0, 10, 20), (10, 20, 30), (1, 2, 3)))
            assert back == children and back[0]["x"][0] == 1
            grand = pool.submit(nested, s.fork()).result()
        assert grand["x"][...].tolist() == [5] * 10 + [7] * 10 + [0] * 20
        with pytest.raises(breccia.ConflictError) as caught:
            s.join(*back, grand)
        assert grand in [c.child for c in caught.value.conflicts]
        s.join(back)
    assert repo.view("main")["x"][::10].tolist() == [1, 2, 3, 0] and len(repo.log()) == 1


def test_a_killed_worker_loses_nothing(repo, s):
    child = s.fork()
    for method, target, at in ("fork", s, 0), ("spawn", s, 8), ("fork", child, 16), ("spawn", child, 27):
        assert run(method, die, pickle.dumps(target["x"]), at, at + 4) == -signal.SIGKILL
    assert child["x"][27:31].tolist() == [28] * 4
    s.join(child)
    s.commit("all of it")
    x = repo.view("main")["x"]
    assert [x[at:at + 4].tolist() for at in (0, 8, 16, 27)] == [[at + 1] * 4 for at in (0, 8, 16, 27)]
    assert repo.fsck().damage == ()


def total(array):
    return int(array[...].sum())


def test_a_pool_outlives_what_it_cannot_open(repo, s, tmp_path):
    """Where unpickling fails, a worker ends, and who waits for it waits for ever."""
    s["x"][0] = 1
    child = s.fork()
    gone = repo.view("main")["x"], s["x"], repo.view(repo.resolve("main"))["x"], child["x"], repo.draft("main")["x"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map_async(total, gone).get(timeout=60) == [0, 1, 0, 1, 0]
        os.rename(repo.path, tmp_path / "other.brc")
        for array in gone:
            with pytest.raises(breccia.NotFoundError, match="does not exist"):
                pool.apply_async(total, [array]).get(timeout=60)
        os.rename(tmp_path / "other.brc", repo.path)
        with repo.session("main", message="without") as other:
            del other["x"]
        s.join(child)
        for array, error in (gone[0], breccia.NotFoundError), (gone[3], breccia.StaleError):
            with pytest.raises(error):
                pool.apply_async(total, [array]).get(timeout=60)
        assert pool.apply_async(total, [gone[2]]).get(timeout=60) == 0


def test_a_graph_that_is_computed_too_late(repo):
    da, zarr = pytest.importorskip("dask.array"), pytest.importorskip("zarr")
    with repo.session("main", message="frame") as s:
        target = zarr.create_array(s.store, name="x", shape=(40,), chunks=(8,), dtype="i4")
        late = da.store(da.ones(40, chunks=8, dtype="i4"), target, compute=False, lock=False)
    for again in late, pickle.loads(pickle.dumps(late)):
        with pytest.raises(breccia.ReadOnlyError, match="has ended"):
            again.compute(scheduler="threads")
    with s:  # goes on, and so does the store
        late.compute(scheduler="threads")
    assert repo.view("main")["x"][...].tolist() == [1] * 40 and not repo.drafts()


def test_pickles_differ_where_what_is_shown_does(repo, s):
    """dask and joblib take for the same what has the same pickle."""
    pytest.importorskip("zarr")
    seen = set()

    def now(new):
        made = [repo.view("main"), repo.draft("main"), s]
        made = [pickle.dumps(x) for x in [*made, *(m["x"] for m in made), made[0].store, s.store]]
        assert len(seen) + new == len(seen | set(made))
        seen.update(made)
    now(8)
    now(0)
    s["x"][0] = 1
    now(3)
    s["x"][0] = 2
    now(3)
    repo.draft("main")["x"][0] = 2
    now(2)
    s.commit("once")
    now(6)
    repo.draft("main").discard()
    now(2)
    assert pickle.dumps(repo.view("main~1")["x"]) not in seen
    da = pytest.importorskip("dask.array")
    name = da.from_array(repo.view("main")["x"]).name
    assert da.from_array(repo.view("main")["x"]).name == name
    with repo.session("main", message="twice") as other:
        other["x"][0] = 7
    assert da.from_array(repo.view("main")["x"]).name != name


def test_status_of_a_private_session(repo, s):
    assert s.status() == (s.rev, True, (), None, False) and s.diff() == []
    fill(s, 0, 3, 1)
    s["y"] = [1]
    status = s.status()
    assert not status.clean and [(c.path, c.what) for c in status.changes] == [("/x", "changed"), ("/y", "added")]
    (change,) = s.diff(path="/x", elements=True)
    assert change.elements.changed == 3 and repo.diff() == []
    child = s.fork()
    assert s.status().changes == child.status().changes == status.changes
    fill(child, 5, 6, 2)
    assert [c.elements.changed for c in child.diff(path="/x", elements=True)] == [4]
    s.commit("x")
    assert s.status().clean


def test_a_session_that_ended_writes_no_more(repo, s):
    """Nobody would see it. It is what a computation does that was begun in the block, or goes on when it failed."""
    goes_on, ended = threading.Event(), threading.Event()

    def late():
        with s._sessions.at_work() as native:  # as a call that lasts
            goes_on.set()
            ended.wait(20)
            assert native.array("/x")
        for i in range(40):
            s["x"][i] = 9

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(LookupError), s:
            s["x"][0] = 1
            array, copy = s["x"], pickle.loads(pickle.dumps(s))
            task = pool.submit(late)
            goes_on.wait(20)
            raise LookupError
        ended.set()
        with pytest.raises(breccia.ReadOnlyError, match="has ended"):
            task.result()
    again = pickle.loads(pickle.dumps(s))  # a graph of dask that is computed too late
    assert again == s and again["x"][0] == 0 and again.status().clean
    again.discard()
    for write in (lambda: array.__setitem__(0, 1), lambda: s.create_group("g"), lambda: s.attrs.update(a=1), s.fork,
                  lambda: s.commit("late", allow_empty=True), lambda: again["x"].__setitem__(0, 1),
                  lambda: pickle.loads(pickle.dumps(again["x"])).__setitem__(0, 1)):
        with pytest.raises(breccia.ReadOnlyError, match="has ended"):
            write()
    s.discard()
    assert array[0] == 0 and s.status().clean and not repo.drafts() and copy == s
    with s:
        s["x"][1] = 2
        s.commit("once")
        s["x"][2] = 3
        s.commit("twice")
    assert repo.view("main")["x"][:3].tolist() == array[:3].tolist() == [0, 2, 3] and len(repo.log()) == 3
    with repo.session("main", message="all") as s:
        s["x"][3] = 4
    assert s["x"][3] == 4 and not repo.drafts()


# ---- dask, xarray ----


@pytest.fixture(scope="module", params=["threads", "processes", "distributed"])
def scheduler(request):
    """dask, where each of its schedulers is the one that is used. Processes are started once: that is slow."""
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.array")
    zarr = pytest.importorskip("zarr")
    with zarr.config.set({"codec_pipeline.path": "breccia.zarr.CodecPipeline"}):
        if request.param == "threads":
            with dask.config.set(scheduler="threads", num_workers=3):
                yield
        elif request.param == "processes":
            with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool, \
                    dask.config.set(scheduler="processes", pool=pool):
                yield
        else:
            distributed = pytest.importorskip("distributed")
            with distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None,
                                          host="127.0.0.1") as cluster, distributed.Client(cluster):
                yield


def test_dask_and_xarray(repo, s, scheduler):
    da, zarr = pytest.importorskip("dask.array"), pytest.importorskip("zarr")
    xr = pytest.importorskip("xarray")
    want = np.arange(40 * 30).reshape(40, 30)
    with repo.session("main", message="dask") as s:
        da.from_array(want, chunks=(10, 10)).to_zarr(s.store, component="plain")
        # Chunks of dask that straddle those of Zarr, which two workers write parts of at once.
        target = zarr.open_group(s.store).create_array("parts", shape=(60, 50), chunks=(16, 16), dtype="i8")
        da.store(da.from_array(want, chunks=(7, 9)), target, regions=(slice(5, 45), slice(11, 41)), lock=False)
        ds = xr.Dataset({"t": (("y", "x"), want)}).chunk({"y": 7, "x": 11})
        ds.to_zarr(s.store, group="ds", encoding={"t": {"chunks": (16, 16)}}, safe_chunks=False, consolidated=False)
        # A frame first, then regions of it within the session.
        ds.to_zarr(s.store, group="frame", compute=False, encoding={"t": {"chunks": (16, 16)}}, safe_chunks=False,
                   consolidated=False)
        for start in range(0, 40, 10):
            part = ds.isel(y=slice(start, start + 10))
            part.to_zarr(s.store, group="frame", region={"y": slice(start, start + 10)}, safe_chunks=False,
                         consolidated=False)
        # Data that was read from a session is a copy, and may be written to the session again.
        read = da.from_zarr(s.store, component="plain")
        da.store(read[:, ::-1] * 2, target, regions=(slice(0, 40), slice(20, 50)), lock=False)
        assert list(repo.view("main")) == ["x"] and not repo.view("main")["x"][...].any()
    assert len(repo.log()) == 2
    view = repo.view("main")
    parts = np.zeros((60, 50), "i8")
    parts[5:45, 11:41] = want
    parts[:40, 20:] = want[:, ::-1] * 2
    np.testing.assert_array_equal(view["parts"], parts)
    for path in "plain", "ds/t", "frame/t":
        np.testing.assert_array_equal(view[path], want)
    xr.testing.assert_equal(xr.open_zarr(view.store, group="frame", consolidated=False).load(), ds)


def rows(child, block):
    child["t"][block * 10:block * 10 + 10] += block + 1
    return child


def test_dask_with_children(repo, s, scheduler):
    dask = pytest.importorskip("dask")
    with repo.session("main", message="children") as s:
        s.create_array("t", data=np.zeros((40, 5), "i4"), chunks=(16, 5))
        s.join(dask.compute(*[dask.delayed(rows)(s.fork(), i) for i in range(4)]))
    np.testing.assert_array_equal(repo.view("main")["t"][:, 0], np.repeat(np.arange(1, 5), 10))
    assert len(repo.log()) == 2


@pytest.mark.parametrize("fails", [False, True])
def test_children_that_nobody_joins_end_with_the_block(repo, s, fails):
    """Changes that they hold stay, and name their owner; empty children and the parent's changes are removed."""
    left = []
    try:
        with repo.session("main") as parent:
            left += [parent.fork() for _ in range(3)]
            fill(left[1], 0, 4, 9)
            fill(parent, 20, 24, 8)
            assert [(bool(d.parent), d.orphan) for d in repo.drafts()] == [(False, False)] + [(True, False)] * 3
            if fails:
                raise ZeroDivisionError
            parent.commit("parent")
    except ZeroDivisionError:
        pass
    (draft,) = repo.drafts()
    assert draft.orphan and draft.parent and draft.nodes and draft.owner == "alive"
    for child in left[::2]:
        with pytest.raises(breccia.StaleError):
            child["x"][0] = 1
    repo.drop(draft.id)
    assert not repo.drafts() and repo.view("main")["x"][20] == (0 if fails else 8)


def commit_often(path, number, times):
    repo = breccia.open(path)
    for i in range(times):
        with repo.session("main", message=f"{number} {i}") as s:
            s["x"][number * times + i] = number + 1


def test_commits_of_many_processes_leave_no_drafts(repo, s):
    """However they race."""
    with ProcessPoolExecutor(6, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(commit_often, [repo.path] * 6, range(6), [4] * 6))
    assert repo.view("main")["x"][:24].tolist() == [n + 1 for n in range(6) for _ in range(4)]
    assert not repo.drafts() and len(repo.log()) == 25
