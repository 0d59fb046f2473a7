"""`breccia.zarr.Store`: what zarr's own tests of stores do not ask."""
from __future__ import annotations

import asyncio
import contextvars
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("zarr")
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, cpu, default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore

import breccia
from breccia import _keys
from breccia.zarr import AT_ONCE, Store

pytestmark = pytest.mark.filterwarnings("ignore")
PROTOTYPE = default_buffer_prototype()
OURS = "breccia.zarr.CodecPipeline"
GROUP = b'{"zarr_format":3,"node_type":"group"}'


def document(shape, chunk, dtype="uint8", codecs=None):
    return json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": dtype, "fill_value": 0,
        "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs or [{"name": "bytes"}]}).encode()


SHARDED = [{"name": "sharding_indexed", "configuration": {
    "chunk_shape": [4], "codecs": [{"name": "bytes"}],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.brc"


@pytest.fixture
def store(path):
    made = Store(path, create=True)
    yield made
    made.close()


def put(store, key, data):
    sync(store.set(key, cpu.Buffer.from_bytes(data)))


def get(store, key, request=None):
    found = sync(store.get(key, PROTOTYPE, request))
    return None if found is None else found.to_bytes()


def keys(store, prefix=""):
    async def collect():
        return sorted([key async for key in store.list_prefix(prefix)])
    return sync(collect())


def children(store, prefix=""):
    async def collect():
        return sorted([name async for name in store.list_dir(prefix)])
    return sync(collect())


def commit(store, message="m"):
    """Commits the branch's shared changes."""
    with breccia.open(store.path) as repo:
        return repo.draft(store.rev).commit(message)


# ---- keys that are not nodes or chunks ----


def test_loose_keys_are_kept_and_refused_by_name(store):
    loose = {"f": b"a file", "f/x": b"below it", "no/array/c/0": b"\0\1\2", "bad/zarr.json": b"{",
             "\u00e4/\u00f6": b"", ".zattrs": b"{}"}
    for key, value in loose.items():
        put(store, key, value)
    assert keys(store) == sorted(loose)
    assert {key: get(store, key) for key in loose} == loose
    assert children(store) == sorted({key.split("/")[0] for key in loose})
    assert children(store, "f") == children(store, "f/") == ["x"]
    for left in sorted(loose, key=str.encode, reverse=True):
        with pytest.raises(breccia.ConflictError) as refused:
            commit(store)
        assert any(key in str(refused.value) for key in keys(store))
        sync(store.delete(left))
    assert keys(store) == []
    zarr.open_group(store, mode="a", zarr_format=2)
    with pytest.raises(breccia.ConflictError, match="write Zarr format 3"):
        commit(store)


def test_chunks_outlive_their_document(store):
    put(store, "zarr.json", GROUP)
    put(store, "a/zarr.json", document([8], [4]))
    put(store, "a/c/0", b"\1\2\3\4")
    sync(store.delete("a/zarr.json"))
    assert keys(store) == ["a/c/0", "zarr.json"] and get(store, "a/c/0") == b"\1\2\3\4"
    assert get(store, "a/zarr.json") is None and children(store) == ["a", "zarr.json"]
    put(store, "a/zarr.json", document([8], [4]))
    assert (zarr.open_array(store, path="a", mode="r")[...] == [1, 2, 3, 4, 0, 0, 0, 0]).all()
    sync(store.delete("a/zarr.json"))
    sync(store.delete("a/c/0"))
    assert keys(store) == ["zarr.json"]


def test_a_deleted_group_leaves_what_is_in_it(store):
    for key in "zarr.json", "g/zarr.json", "g/h/zarr.json":
        put(store, key, GROUP)
    sync(store.delete("g/zarr.json"))
    assert keys(store) == ["g/h/zarr.json", "zarr.json"]
    put(store, "g/zarr.json", GROUP)
    assert keys(store) == ["g/h/zarr.json", "g/zarr.json", "zarr.json"]


@pytest.mark.parametrize("shards", [None, (8,)])
@pytest.mark.parametrize("commits", [(), ("cut",), ("ten", "cut", "grown")])
def test_what_zarr_cuts_never_comes_back(store, path, shards, commits):
    """[1..10] to 5 to 10: zeros again, where a directory has what was in the same chunk or shard."""
    array = zarr.create_array(store, name="a", shape=(10,), chunks=(4,), shards=shards, dtype="i4")
    array[...] = np.arange(1, 11)
    for step, length in ("ten", 10), ("cut", 5), ("grown", 10):
        array.resize((length,))
        assert zarr.open_array(store, path="a", mode="r")[...].tolist() == [1, 2, 3, 4, 5][:length] + (
            [6, 7, 8, 9, 10] if step == "ten" else [0] * (length - 5))
        if step in commits:
            commit(store)
    with breccia.open(store.path) as repo, repo.draft("main", message="b") as s:
        assert s["a"][...].tolist() == [1, 2, 3, 4, 5, 0, 0, 0, 0, 0]
        s.export(path.parent / "out.zarr")
        assert zarr.open_array(path.parent / "out.zarr" / "a", mode="r")[...].tolist() == [1, 2, 3, 4, 5, 0, 0, 0, 0, 0]


def test_a_chunk_of_fill_value_is_there_once_it_was_set(store):
    put(store, "zarr.json", GROUP)
    put(store, "a/zarr.json", document([8], [4]))
    put(store, "a/c/1", bytes(4))
    assert keys(store, "a/c") == ["a/c/1"]
    commit(store)
    assert keys(store, "a/c") == ["a/c/1"] and get(store, "a/c/1") == bytes(4)
    assert keys(Store(store.path, commit_of(store)), "a/c") == ["a/c/1"]


def commit_of(store):
    with breccia.open(store.path) as repo:
        return repo.resolve(store.rev)


@pytest.mark.parametrize("bits", [0x8000000000000000, 0x7FF8000000000001, 0xFFF8000000000000,
                                  0x7FF0000000000001])
def test_bits_are_kept(store, bits):
    """-0.0 and the payloads of NaNs: by key, by zarr with empty chunks, by breccia."""
    value = np.array([bits] * 4, "u8").view("f8")
    put(store, "zarr.json", GROUP)
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    put(store, "k/zarr.json", document([4], [4], "float64", codecs))
    put(store, "k/c/0", value.tobytes())
    assert get(store, "k/c/0") == value.tobytes()
    array = zarr.create_array(store, name="z", shape=(4,), chunks=(4,), dtype="f8", fill_value=0,
                              config={"write_empty_chunks": True})
    array[...] = value
    with breccia.open(store.path) as repo, repo.draft("main", message="m") as s:
        s.create_array("b", shape=(4,), dtype="f8", chunks=(4,))[...] = value
        for name in "k", "z", "b":
            assert s[name][...].tobytes() == value.tobytes(), name
    for name in "k", "z", "b":
        assert zarr.open_array(store, path=name, mode="r")[...].tobytes() == value.tobytes(), name


# ---- ranges and memory ----

BETWEEN = [(0, 0), (0, 3), (2, 5), (3, 100), (50, 60), (7, 7), (100, 200)]
REQUESTS = [None, *(RangeByteRequest(a, b) for a, b in BETWEEN),
            *(OffsetByteRequest(n) for n in (0, 3, 11, 12, 100)),
            *(SuffixByteRequest(n) for n in (0, 1, 5, 12, 100, 2**40))]


def cut(value, request):
    if isinstance(request, RangeByteRequest):
        return value[request.start:request.end]
    if isinstance(request, OffsetByteRequest):
        return value[request.offset:]
    return value if request is None else value[max(0, len(value) - request.suffix):]


@pytest.mark.parametrize("key", ["a/c/0", "s/c/0", "loose", "a/zarr.json"])
def test_ranges(store, key):
    put(store, "zarr.json", GROUP)
    put(store, "a/zarr.json", document([12], [12]))
    put(store, "s/zarr.json", document([12], [12], codecs=SHARDED))
    index = b"".join(n.to_bytes(8, "little") for n in (0, 4, 2**64 - 1, 2**64 - 1, 4, 4))
    put(store, "a/c/0", bytes(range(12)))
    put(store, "s/c/0", bytes(range(1, 9)) + index)
    put(store, "loose", bytes(range(12)))
    whole = get(store, key)
    assert key.endswith("json") or whole == bytes(range(1, 9)) + index or whole == bytes(range(12))
    wanted = [cut(whole, request) for request in REQUESTS]
    assert [get(store, key, request) for request in REQUESTS] == wanted
    assert [store.get_sync(key, byte_range=request).to_bytes() for request in REQUESTS] == wanted
    many = sync(store.get_partial_values(PROTOTYPE, ((key, request) for request in REQUESTS)))
    assert [found.to_bytes() for found in many] == wanted
    ranges = store.get_ranges_sync(key, REQUESTS, prototype=PROTOTYPE)
    assert [(i, found.to_bytes()) for i, found in ranges] == list(enumerate(wanted))

    async def collect():
        return [one async for group in store.get_ranges(key, REQUESTS, prototype=PROTOTYPE) for one in group]

    assert [(i, found.to_bytes()) for i, found in sync(collect())] == list(enumerate(wanted))
    assert sync(store.getsize(key)) == len(whole)


def test_wrong_ranges(store):
    put(store, "x", b"1234")
    for wrong in (0, 2), RangeByteRequest(-1, 2), OffsetByteRequest(-1), SuffixByteRequest(-1), "0-2":
        with pytest.raises(ValueError, match="Unexpected byte_range, got"):
            get(store, "x", wrong)


def test_ranges_of_an_absent_key(store):
    with pytest.raises(BaseExceptionGroup) as raised:
        store.get_ranges_sync("nothing", [RangeByteRequest(0, 1)], prototype=PROTOTYPE)
    assert raised.group_contains(FileNotFoundError)
    assert store.get_ranges_sync("nothing", [], prototype=PROTOTYPE) == []
    assert sync(store.get_partial_values(PROTOTYPE, [("nothing", None), ("//", None)])) == [None, None]


def eventually(happened):
    """zarr's thread lets go of a result a little after it has handed it over."""
    for _ in range(500):
        if happened():
            return
        time.sleep(0.01)
    assert happened()


def test_a_value_is_the_librarys_memory(store, monkeypatch):
    """A value is at the address where the library put it, and is freed with the last view of it."""
    from breccia import _keys

    addresses, freed = [], []

    class Noted:
        def __getattr__(self, name):
            return getattr(lib, name)

        def brc_buf_dispose(self, out):
            freed.append(int(_keys.ffi.cast("uintptr_t", out.data)))
            return lib.brc_buf_dispose(out)

    lib = _keys.lib
    value_of = _keys.value_of

    def noted(out, owner):
        addresses.append(int(_keys.ffi.cast("uintptr_t", out.data)))
        return value_of(out, owner)

    value = os.urandom(100_000)
    put(store, "x", value)
    monkeypatch.setattr(_keys, "value_of", noted)
    monkeypatch.setattr(_keys, "lib", Noted())
    one = sync(store.get("x", PROTOTYPE))
    two, = sync(store.get_partial_values(PROTOTYPE, [("x", None)]))
    assert [int(b.as_array_like().__array_interface__["data"][0]) for b in (one, two)] == addresses
    part = two.as_array_like()[500:600]
    del one
    eventually(lambda: freed == addresses[:1])
    del two
    assert freed == addresses[:1] and part.tobytes() == value[500:600]
    del part
    eventually(lambda: freed == addresses)


def test_prototypes_of_others(store):
    class Elsewhere(Buffer):
        """Memory that is not the host's."""

        @classmethod
        def create_zero_length(cls):
            return cls(np.array([], "B"))

        @classmethod
        def from_array_like(cls, array_like):
            raise AssertionError("not from the host's memory")

        @classmethod
        def from_buffer(cls, buffer):
            return cls.from_bytes(buffer.to_bytes())

        @classmethod
        def from_bytes(cls, bytes_like):
            return cls(np.frombuffer(bytes(bytes_like), "B"))

        def as_numpy_array(self):
            return self._data.copy()

        def combine(self, others):
            raise NotImplementedError

        __add__ = combine

    prototype = BufferPrototype(Elsewhere, cpu.NDBuffer)
    value = os.urandom(5000)
    sync(store.set("x", Elsewhere.from_bytes(value)))
    found = sync(store.get("x", prototype))
    assert type(found) is Elsewhere and found.to_bytes() == value


def test_the_source_may_change_after_set(store):
    source = np.arange(256, dtype="B")
    sync(store.set("x", cpu.Buffer.from_array_like(source)))
    sync(store.set("y", cpu.Buffer.from_array_like(source[::2])))  # not in one piece
    wanted = source.tobytes()
    source[:] = 0
    assert get(store, "x") == wanted and get(store, "y") == wanted[::2]


# ---- changes ----


def test_many_sets_are_all_or_none(store):
    put(store, "zarr.json", GROUP)
    with pytest.raises(ValueError):
        sync(store._set_many([("a", cpu.Buffer.from_bytes(b"1")), ("b//c", cpu.Buffer.from_bytes(b"2"))]))
    assert keys(store) == ["zarr.json"]


def test_sets_at_once_are_few_transactions_and_fail_alone(store, monkeypatch):
    from breccia import _keys

    batches = []
    write = _keys.write

    def noted(native, changes):
        write(native, changes)
        batches.append(len(changes))

    monkeypatch.setattr(_keys, "write", noted)

    async def at_once():
        sets = [store.set("b//c" if i == 7 else f"k/{i}", cpu.Buffer.from_bytes(b"%d" % i))
                for i in range(100)]
        return await asyncio.gather(*sets, return_exceptions=True)

    done = sync(at_once())
    assert [i for i, result in enumerate(done) if result is not None] == [7]
    assert isinstance(done[7], ValueError)
    found = {key: get(store, key) for key in keys(store)}
    assert found == {f"k/{i}": b"%d" % i for i in range(100) if i != 7}
    assert sum(batches) == 99 and len(batches) < 50

    async def all_gone():
        await asyncio.gather(*(store.delete(f"k/{i}") for i in range(100)))

    sync(all_gone())
    assert keys(store) == []


def test_a_change_that_is_cancelled_in_time_is_not_made(store):
    put(store, "x", b"1")

    async def cancelled():
        with store._waiting()[0]:  # somebody else writes
            tasks = [asyncio.ensure_future(one) for one in (
                store.set("x", cpu.Buffer.from_bytes(b"2")), store.delete("x"),
                store.set("y", cpu.Buffer.from_bytes(b"3")))]
            await asyncio.sleep(0.01)
            for task in tasks[:2]:
                task.cancel()
            assert [type(one) for one in await asyncio.gather(*tasks[:2], return_exceptions=True)] == [
                asyncio.CancelledError] * 2
        await tasks[2]

    sync(cancelled())
    assert get(store, "x") == b"1" and get(store, "y") == b"3"


def test_set_if_not_exists_has_one_winner(store, path):
    stores = [Store(path) for _ in range(6)]

    def race(i):
        for n in range(10):
            sync(stores[i].set_if_not_exists(f"k/{n}", cpu.Buffer.from_bytes(b"%d" % i)))
            seen[i].append(get(stores[i], f"k/{n}"))

    seen = [[] for _ in stores]
    sync(store._ensure_open())
    threads = [threading.Thread(target=race, args=[i]) for i in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == seen[0] for one in seen) and len(seen[0]) == 10


def test_deleting_what_is_not_there_takes_no_lock(store, path):
    put(store, "x", b"1")
    with breccia.open(path, wait=0) as repo:
        s = repo.draft("main")
        with s.transaction():  # nobody else can write
            for n in range(50):
                sync(store.delete(f"absent/c/{n}"))
                store.delete_sync(f"absent/c/{n}")
            sync(store.delete_dir("absent"))
    assert keys(store) == ["x"]


# ---- within a transaction --------------------------------

@pytest.mark.parametrize("pipeline", [OURS, "zarr.core.codec_pipeline.BatchedCodecPipeline"])
@pytest.mark.parametrize("block", ["transaction", "savepoint"])
def test_zarr_is_refused_in_a_block(path, block, pipeline):
    """zarr works in a thread of its own, which would wait for the block, and the block for the thread."""
    with breccia.open(path, create=True) as repo, zarr.config.set({"codec_pipeline.path": pipeline}):
        s = repo.session("main", message="made")
        s["a"] = np.zeros(40, "i4")
        group = zarr.open_group(s.store)
        array = group["a"]
        with getattr(s, block)(), s.transaction():
            s["a"][0] = 1
            for work in (lambda: array[...], lambda: array.__setitem__(..., 2), lambda: list(group), lambda: group["a"],
                         lambda: group.create_group("b"), lambda: group.attrs.update(x=1),
                         lambda: group.__delitem__("a")):
                with pytest.raises(breccia.MisuseError, match="zarr, take no part in a transaction"):
                    work()
            assert keys(repo.view("main").store) == []  # another view takes no part in it
        assert array[:2].tolist() == [1, 0] and list(group) == ["a"]
        assert dict(zarr.open_group(s.store).attrs) == {}
        array[1] = 3
        assert s["a"][:2].tolist() == [1, 3]


def test_threads_that_work_for_a_block_are_refused(path):
    """Threads such as dask's are refused. Others wait for a transaction, and go on beside a savepoint."""
    with breccia.open(path, create=True, wait=20) as repo, ThreadPoolExecutor(2) as pool:
        s = repo.session("main", message="made")
        s["a"] = np.zeros(4, "i4")
        with s.transaction():
            s["a"][0] = 1
            refused = pool.submit(contextvars.copy_context().run, s["a"].__setitem__, 1, 1)
            with pytest.raises(breccia.MisuseError, match="other threads"):
                refused.result(10)
            waits = pool.submit(s["a"].__setitem__, 2, 2)
        waits.result(20)
        assert s["a"][:].tolist() == [1, 0, 2, 0]
        late = contextvars.copy_context()
        late.run(s["a"].__setitem__, 3, 3)  # the block is over
        assert s["a"][3] == 3


def test_others_changes_that_wait_are_not_of_a_transaction(path):
    with breccia.open(path, create=True, wait=20) as repo:
        s = repo.session("main", message="made")
        store, began, over, got = s.store, threading.Event(), threading.Event(), []

        def other():
            began.wait()
            put(store, "theirs", b"1")
            got.append(over.is_set())

        thread = threading.Thread(target=other)
        thread.start()
        with pytest.raises(LookupError):
            with s.transaction():
                store.set_sync("ours", cpu.Buffer.from_bytes(b"1"))
                began.set()
                time.sleep(0.5)
                store.set_sync("ours too", cpu.Buffer.from_bytes(b"2"))
                over.set()
                raise LookupError
        thread.join()
        assert got == [True] and keys(store) == ["theirs"]


@pytest.mark.skipif(zarr.__version__ < "3.1", reason="before, it knew none of these types")
@pytest.mark.parametrize("data", [
    np.array([b"abc", b"\0d"], "V3"), np.array([b"", b"ab"], "S2"), np.array(["", "\xe9a"]),
    np.array([0, -1], "M8[ms]"), np.array([7, "NaT"], "m8[25s]"),
    np.array([(1, b"xy")], [("a", "<i4"), ("v", "V2")])], ids=lambda data: data.dtype.str)
def test_types_of_numpys_have_names_that_zarr_knows(path, data):
    if data.dtype.names and zarr.__version__ < "3.2":
        pytest.skip("before, it knew structures under another name")
    with breccia.open(path, create=True) as repo, repo.session("main", message="made here") as s:
        s["made"] = data
    read = zarr.open_group(Store(path, read_only=True), mode="r")["made"]
    assert read.dtype == data.dtype and read[...].tobytes() == data.tobytes()


def test_metadata_that_is_no_document_may_come_and_go(store):
    for data in b"NaN Infinity \xff", b'{"a": NaN', b'{"foo": "bar"}':
        put(store, "y/zarr.json", data)
        assert sync(store.get("y/zarr.json", default_buffer_prototype())).to_bytes() == data
    half = b'{"zarr_format":3,"node_type":"group","attributes":{"a":"\\ud800"}}'
    for data in half, b'{"zarr_format":3,"node_type":"g"}':
        with pytest.raises(ValueError, match="^[^:]*y/zarr.json: "):  # no later key can make a node of it
            put(store, "y/zarr.json", data)


def test_directories(store):
    for key in "foo/a", "foo/b/c", "foo-bar/x", "fo", "foob":
        put(store, key, b"12345")
    assert children(store) == ["fo", "foo", "foo-bar", "foob"]
    assert children(store, "foo") == children(store, "foo/") == ["a", "b"]
    assert sync(store.getsize_prefix("foo")) == sync(store.getsize_prefix("foo/")) == 10
    assert sync(store.getsize_prefix("")) == 25
    assert not sync(store.is_empty("foo")) and sync(store.is_empty("fo")) and sync(store.is_empty("f"))
    sync(store.delete_dir("foo"))
    assert keys(store) == ["fo", "foo-bar/x", "foob"]
    sync(store.clear())
    assert keys(store) == [] and sync(store.is_empty(""))


def test_what_is_no_key(store):
    for key in "", "/", "a//b", "../x", "a/./b", "x" * 6000, "nul\0":
        assert get(store, key) is None and not sync(store.exists(key))
        sync(store.delete(key))
        with pytest.raises(ValueError):
            put(store, key, b"x")
        with pytest.raises(FileNotFoundError):
            sync(store.getsize(key))
    assert children(store, "nothing/here") == [] and keys(store, "../") == []


# ---- versions ----


def versions(path):
    """A file with a tag v1 at the first of two commits. Their ids."""
    with breccia.open(path, create=True) as repo:
        with repo.session("main", message="one") as s:
            s["a"] = np.arange(4)
        repo.tag("v1")
        with repo.session("main", message="two") as s:
            s["a"] = np.arange(4) + 10
        return repo.resolve("v1"), repo.resolve("main")


def test_a_fixed_revision_is_read_only_and_stays(path):
    first, second = versions(path)
    for rev in "v1", first, first[:10], "main~1":
        old = Store(path, rev)
        assert (zarr.open_array(old, path="a", mode="r")[...] == np.arange(4)).all()
        sync(old._ensure_open())
        assert old.read_only
        for change in (lambda: sync(old.set("x", cpu.Buffer.from_bytes(b"x"))), lambda: sync(old.delete("x")),
                       lambda: sync(old.clear()), lambda: sync(old.delete_dir("a"))):
            with pytest.raises(ValueError, match="read-only mode and does not support writing"):
                change()
        with pytest.raises(ValueError, match="is a commit"):
            old.with_read_only(False)
        with pytest.raises(ValueError, match="read-only"):
            zarr.open_group(old, mode="r+")
    tagged = Store(path, "v1")
    sync(tagged._ensure_open())
    copy = pickle.loads(pickle.dumps(tagged))
    with breccia.open(path) as repo:
        repo.delete_tag("v1")
        repo.tag("v1", "main")
    for store in tagged, copy:
        assert (zarr.open_array(store, path="a", mode="r")[...] == np.arange(4)).all()
    assert (zarr.open_array(Store(path, "v1"), path="a", mode="r")[...] == np.arange(4) + 10).all()


def test_absent_files_and_revisions(path):
    with pytest.raises(FileNotFoundError, match="create=True"):
        sync(Store(path)._ensure_open())
    assert not path.exists()
    sync(Store(path, create=True)._ensure_open())
    sync(Store(path, create=True)._ensure_open())
    with pytest.raises(breccia.NotFoundError, match="nope"):
        sync(Store(path, "nope")._ensure_open())


def test_a_branch_shows_what_others_write(store, path):
    """Its commits where a store is for reading; where it can be changed, or draft=True, what is uncommitted."""
    other, commits = Store(path, read_only=True, draft=True), Store(path, read_only=True)
    put(store, "zarr.json", GROUP)
    put(store, "a/zarr.json", document([4], [4]))
    put(store, "a/c/0", b"1234")
    assert get(other, "a/c/0") == b"1234" and get(commits, "a/c/0") is None
    commit(store)
    put(store, "a/c/0", b"5678")
    assert get(other, "a/c/0") == b"5678" == get(store.with_read_only(True), "a/c/0")
    assert get(commits, "a/c/0") == b"1234" == get(pickle.loads(pickle.dumps(commits)), "a/c/0")
    assert get(commits.with_read_only(False), "a/c/0") == b"5678"
    assert get(Store(path, commit_of(store)), "a/c/0") == b"1234"


def test_of_a_session(path):
    with breccia.open(path, create=True) as repo:
        with repo.session("main", message="m") as s:
            group = zarr.create_group(s.store)
            group.create_array("a", shape=(8,), chunks=(4,), dtype="i4")[...] = np.arange(8)
            assert (s["a"][...] == np.arange(8)).all()
            s["a"][0] = 50
            assert group["a"][0] == 50
            assert keys(Store(path)) == []
            assert pickle.loads(pickle.dumps(s.store)) == s.store
            assert zarr.open_array(pickle.loads(pickle.dumps(s.store)), path="a")[0] == 50
        shown = repo.view("main").store
        assert shown.read_only and (zarr.open_array(shown, path="a", mode="r")[:3] == [50, 1, 2]).all()
        copy = pickle.loads(pickle.dumps(shown))
        assert (zarr.open_array(copy, path="a", mode="r")[:3] == [50, 1, 2]).all()


# ---- equality, pickles, tokens ----


def test_equality(store, path, tmp_path):
    sync(store._ensure_open())
    assert store == Store(str(path)) == Store(os.path.relpath(path)) and hash(store) == hash(Store(path))
    assert store != Store(path, "other") and store != Store(tmp_path / "b.brc") and store != LocalStore(path)
    assert store != store.with_read_only(True) and store.with_read_only(True) == Store(path, read_only=True, draft=True)
    assert store.with_read_only(True) != Store(path, read_only=True) == Store(path, read_only=True).with_read_only(True)
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store and not copy._is_open
    put(copy, "x", b"1")
    assert get(store, "x") == b"1"
    store.close()
    assert get(store, "x") == b"1" and store == copy


CODE = """
import sys, zarr, pickle, hashlib
from breccia.zarr import AT_ONCE, Store
zarr.config.set({"codec_pipeline.path": "breccia.zarr.CodecPipeline"})
array = zarr.open_array(Store(sys.argv[1], sys.argv[2]), path="a", mode="r")
try:
    from dask.base import tokenize
except ImportError:
    tokenize = lambda a: hashlib.sha1(pickle.dumps(a)).hexdigest()
print(tokenize(array))
"""


def token(path, rev):
    return subprocess.run([sys.executable, "-W", "ignore", "-c", CODE, path, rev], check=True,
                          capture_output=True, text=True).stdout


def test_tokens(path):
    first, second = versions(path)
    one, fixed = token(path, "main"), token(path, "v1")
    assert one == token(path, "main") and fixed == token(path, "v1") and one != fixed
    with breccia.open(path) as repo:
        with repo.session("main", message="three") as s:
            s["a"] = np.arange(4) + 20
        assert token(path, "main") != one and token(path, "v1") == fixed
        seen = {token(path, "main")}
        for n in range(3):  # not committed: each change is another token, and between changes it is the same
            repo.draft("main")["a"][0] = n
            seen.add(token(path, "main"))
            assert token(path, "main") in seen and len(seen) == n + 2
        repo.draft("main").discard()
        assert token(path, "main") in seen and token(path, "v1") == fixed
        repo.delete_tag("v1")
        repo.tag("v1", "main")
        assert token(path, "v1") != fixed


# ---- threads and processes ----


def test_few_native_sessions_for_many_threads(store):
    put(store, "zarr.json", GROUP)
    one = open_files(store.path)  # of one handle, which all calls had one after the other
    with zarr.config.set({"codec_pipeline.path": OURS}):  # zarr's own would lose elements
        array = zarr.create_array(store, name="a", shape=(64,), chunks=(4,), dtype="i4")

    def work(n):
        for i in range(n, 64, 16):
            array[i] = i
            assert array[i] == i
            get(store, "a/c/0")
            keys(store)

    errors = []
    threads = [threading.Thread(target=lambda n=n: errors.extend(failed(work, n))) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert one < open_files(store.path) <= (AT_ONCE + 2) * one


def open_files(path):
    """How often this process has a file open."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    return sum(os.path.realpath(f"/proc/self/fd/{fd}") == os.path.realpath(path) for fd in os.listdir("/proc/self/fd"))


def failed(function, *args):
    try:
        function(*args)
    except Exception as error:
        return [error]
    return []


def child_reads(store, stop, results, array):
    """In a child of fork(), with the store and the array of the parent."""
    rounds, wrong = 0, 0
    while rounds < 3 or not stop.is_set():
        found = array[...]
        wrong += int((found != found[0]).any())  # each of the parent's writes is one transaction
        wrong += get(store, "zarr.json") is None
        rounds += 1
    results.put((rounds, wrong))


@pytest.mark.parametrize("pipeline", [OURS, "zarr.core.codec_pipeline.BatchedCodecPipeline"])
def test_eight_readers_fork_while_the_parent_writes(store, pipeline):
    context = multiprocessing.get_context("fork")
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        put(store, "zarr.json", GROUP)
        # one chunk: zarr's own pipeline writes each chunk by itself
        array = zarr.create_array(store, name="a", shape=(5000,), chunks=(5000,), dtype="i4")
        array[...] = 1
        assert (array[...] == 1).all()  # pools and loops have begun
        stop, results = context.Event(), context.Queue()
        children = [context.Process(target=child_reads, args=(store, stop, results, array), daemon=True)
                    for _ in range(8)]
        for child in children:
            child.start()
        for n in range(2, 30):
            array[...] = n
        stop.set()
        found = [results.get(timeout=120) for _ in children]
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * 8
        assert all(rounds >= 3 and wrong == 0 for rounds, wrong in found)
        assert (array[...] == 29).all()


def child_writes(store, n, results):
    try:
        for i in range(5):
            put(store, f"child/{n}/{i}", b"%d" % i)
        results.put(None)
    except Exception as error:
        results.put(repr(error))


def test_children_write(store):
    context = multiprocessing.get_context("fork")
    put(store, "zarr.json", GROUP)
    results = context.Queue()
    children = [context.Process(target=child_writes, args=(store, n, results), daemon=True) for n in range(4)]
    for child in children:
        child.start()
    for i in range(5):
        put(store, f"parent/{i}", b"p")
    assert [results.get(timeout=120) for _ in children] == [None] * 4
    for child in children:
        child.join(60)
    assert len(keys(store, "child/")) == 20 and len(keys(store, "parent/")) == 5


def test_fork_while_threads_hold_locks(store):
    """A child's only thread waits for no lock of a thread that is not there."""
    put(store, "zarr.json", GROUP)
    stop = threading.Event()

    def busy(n):
        i = 0
        while not stop.is_set():
            put(store, f"k/{n}", b"%d" % i)
            i += 1

    threads = [threading.Thread(target=busy, args=[n]) for n in range(3)]
    for thread in threads:
        thread.start()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    try:
        for n in range(8):
            child = context.Process(target=child_writes, args=(store, n, results), daemon=True)
            child.start()
            assert results.get(timeout=60) is None
            child.join(30)
            assert child.exitcode == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_nothing_stays_open(path):
    """A store that nobody has any more keeps no file open."""
    import gc

    store = Store(path, create=True)
    put(store, "zarr.json", GROUP)
    assert open_files(path) > 0
    store.close()
    assert open_files(path) == 0
    assert get(store, "zarr.json") and open_files(path) > 0
    del store
    gc.collect()
    assert open_files(path) == 0


def test_create_array_takes_codecs_of_zarr(tmp_path):
    from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, TransposeCodec, ZstdCodec

    values = np.arange(24, dtype="i4").reshape(4, 6)
    with breccia.open(tmp_path / "a.brc", create=True) as repo, repo.session("main", message="codecs") as s:
        one = s.create_array("one", data=values, compressors=ZstdCodec(level=5))
        assert one.codecs[-1]["name"] == "zstd" and one.codecs[-1]["configuration"]["level"] == 5
        blosc = BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4)
        two = s.create_array("two", data=values, compressors=[blosc, GzipCodec()])
        assert [c["name"] for c in two.codecs] == ["bytes", "blosc", "gzip"]
        assert two.codecs[1]["configuration"]["shuffle"] == "bitshuffle"
        whole = s.create_array("whole", data=values, codecs=[TransposeCodec(order=(1, 0)), BytesCodec(endian="big")])
        assert [c["name"] for c in whole.codecs] == ["transpose", "bytes"]
        for array in one, two, whole:
            assert (array[...] == values).all()
