"""breccia.torch: the order of samples, workers of every kind, resuming, ranks, and what is refused."""
import os
import pathlib
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import breccia  # noqa: E402
from breccia import torch as data_sets  # noqa: E402
from breccia.torch import Dataset, IterableDataset, collate  # noqa: E402
from files import File  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

warnings.filterwarnings("ignore", "This DataLoader will create")
N, BLOCK = 1003, 17
REAL = pathlib.Path(os.environ.get("BRECCIA_TEST_DATA",
                                   pathlib.Path(__file__).parents[3] / "shared" / "data"))


def images(n=N):
    made = np.random.default_rng(n).integers(0, 255, (n, 6, 5)).astype("u1")
    made[:, 0, 0] = np.arange(n) % 251
    return made


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Images in chunks of 17, the last of 17 * 59; labels in chunks of 100; each label is its row."""
    made = str(tmp_path_factory.mktemp("train") / "a.brc")
    file = File(made)
    file.array("set/images", images(), (BLOCK, 4, 5)).array("set/labels", np.arange(N), (100,))
    file.commit("first")
    file.close()
    return made


def rows_of(batches):
    """The rows that came, which the labels say, after a comparison of their images."""
    batches = list(batches)
    if not batches:
        return []
    labels = torch.cat([b[1].reshape(-1) for b in batches]).tolist()
    got = torch.cat([b[0].reshape(-1, 6, 5) for b in batches]).numpy()
    assert (got == images()[labels]).all()
    return labels


def make(path, **options):
    return IterableDataset(path, ["images", "labels"], **{"group": "set", "batch_size": 10, "window": 200, **options})


ORDERS = [{}, {"lanes": 4}, {"lanes": 3, "batch_size": 7}, {"shuffle": False}, {"window": 1}, {"window": 10 ** 6},
          {"batch_size": 2000}, {"rows": slice(5, 777)}, {"batch_size": None}, {"batch_size": None, "lanes": 2}]


# ---- the order --------------------------------

@pytest.mark.parametrize("options", ORDERS, ids=str)
def test_each_sample_once(path, options):
    data = make(path, **options)
    first, stop, _ = options.get("rows", slice(None)).indices(N)
    batches = list(data)
    rows = rows_of(batches)
    assert sorted(rows) == list(range(first, stop))
    assert len(batches) == len(data)
    assert (rows == list(range(N))) == (options == {"shuffle": False})
    whole = {len(b[1]) for b in batches[:-1]} if data.batch_size else {10}
    assert whole <= {data.batch_size or 10}
    data.set_epoch(1)
    again = rows_of(data)
    assert sorted(again) == sorted(rows) and (again == rows) == (options == {"shuffle": False})


def test_the_order_is_the_one_that_is_described(path):
    """The order depends on the raw numbers of a generator, which NumPy promises never to change, and nothing else."""
    def permuted(items, *key):
        raw = np.random.Philox(np.random.SeedSequence(key)).random_raw(len(items)).tolist()
        return [item for _, item in sorted(zip(raw, items))]

    blocks = permuted(list(range(-(-N // BLOCK))), 5, 2)
    each, expected = 200 // BLOCK, []
    for g in range(0, len(blocks), each):
        window = [r for b in blocks[g:g + each] for r in range(b * BLOCK, min(N, b * BLOCK + BLOCK))]
        expected += permuted(window, 5, 2, g // each, 0)
    data = make(path, seed=5)
    data.set_epoch(2)
    assert rows_of(data) == expected


@pytest.mark.parametrize("options", [o for o in ORDERS if o.get("shuffle", True)], ids=str)
def test_no_sample_is_far_from_its_block(path, options):
    data = make(path, **options)
    rows = np.array(rows_of(data))
    assert data.window <= max(options.get("window", 200), BLOCK)
    blocks = rows // BLOCK
    order, first = [], {}
    for place, block in enumerate(blocks):  # a window's blocks in any order: compare with where the window begins
        if block not in first:
            first[block] = place
            order.append(block)
    for block in order:
        places = np.flatnonzero(blocks == block)
        assert places.max() - places.min() < data.window


def test_a_window_is_mixed_and_a_lane_keeps_chunks_to_itself(path):
    data = make(path, window=16 * BLOCK, batch_size=16)
    batches = [b[1].numpy() // BLOCK for b in data]
    assert np.mean([len(set(b)) for b in batches[:-1]]) > 8
    lanes = make(path, window=16 * BLOCK, batch_size=16, lanes=4)
    of = [{}, {}, {}, {}]
    for k, batch in enumerate([b[1].numpy() // BLOCK for b in lanes][:16]):
        of[k % 4].update(dict.fromkeys(batch))
    assert not set(of[0]) & set(of[1]) and not set(of[2]) & set(of[3]) and len(of[0]) == 4


def blocks_read(data, monkeypatch, workers):
    """The batches of all workers, and the chunks of images that each call of the library decodes."""
    read, whole = [], type(data)._take
    monkeypatch.setattr(type(data), "_take", lambda self, rows, left=(): (
        read.extend({int(row) // BLOCK for row in rows}), whole(self, rows, left))[1])
    return [batch for worker in range(workers) for batch in data._run(0, range(worker, len(data), workers))], read


def test_a_worker_decodes_only_the_chunks_of_its_lane(path, monkeypatch):
    data = make(path, window=16 * BLOCK, batch_size=17, lanes=2, rows=slice(0, 32 * BLOCK))
    assert sorted(blocks_read(data, monkeypatch, 2)[1]) == list(range(32))


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"window": 400}, {"rows": slice(5, 777), "batch_size": 7}], ids=str)
def test_chunks_are_decoded_once_but_for_those_of_the_last_batches(path, monkeypatch, options, workers):
    data = make(path, lanes=4, **options)
    batches, read = blocks_read(data, monkeypatch, workers)
    assert sorted(rows_of(batches)) == list(range(*options.get("rows", slice(N)).indices(N)))
    last = {row // BLOCK for rows in data._windows(0, 4, range(N)) for row in rows.tolist()}
    assert len(last) <= 4 + 4 + 1
    for block, times in enumerate(np.bincount(read).tolist()):
        assert times <= (1 + workers if block in last else 1)


# ---- workers --------------------------------

@pytest.mark.parametrize("options", [{"lanes": 4}, {}], ids=str)
@pytest.mark.parametrize("method, workers", [("fork", 1), ("fork", 3), ("fork", 8), ("spawn", 1), ("spawn", 8),
                                             ("forkserver", 1), ("forkserver", 8)])
def test_the_order_does_not_depend_on_workers(path, method, workers, options):
    if options and workers == 1:
        pytest.skip("one worker decides nothing")
    expected = rows_of(make(path, **options))
    loader = DataLoader(make(path, **options), batch_size=None, num_workers=workers, multiprocessing_context=method)
    assert rows_of(loader) == expected


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_any_sample_in_workers(path, method):
    data = Dataset(path, ["images", "labels"], group="set")
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, multiprocessing_context=method,
                        collate_fn=collate)
    assert sorted(rows_of(loader)) == list(range(N))


def test_workers_that_stay_see_the_next_epoch(path):
    data = make(path)
    loader = DataLoader(data, batch_size=None, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        data.set_epoch(epoch)
        other = make(path)
        other.set_epoch(epoch)
        assert rows_of(loader) == rows_of(other)


# ---- a loader whose messages have many batches --------------------------------

@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("options", [*ORDERS, {"drop_last": True}], ids=str)
def test_a_loader_gives_the_same_batches(path, options, workers):
    expected = list(make(path, **options))
    loader = data_sets.DataLoader(make(path, **options), num_workers=workers)
    assert len(loader) == len(expected)
    got = list(loader)
    assert [type(b) for b in got] == [list] * len(expected)  # what torch's makes of tuples
    for one, other in zip(got, expected, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_many_batches_come_in_one_message(path, monkeypatch):
    came, load = [], data_sets._Unpickler.load
    monkeypatch.setattr(data_sets._Unpickler, "load", lambda self: came.append(load(self)) or came[-1])
    assert len(list(data_sets.DataLoader(make(path), num_workers=2))) == 101
    assert [len(batches) for batches in came] == [12] * 8 + [3, 2]
    came.clear()
    monkeypatch.setattr(data_sets.DataLoader, "MESSAGE", 900)  # a batch has 380 bytes
    assert len(list(data_sets.DataLoader(make(path), num_workers=2))) == 101
    assert [len(batches) for batches in came] == [2] * 50 + [1]


def odd_batch(batch):
    images, labels = batch
    return {"still": images, "turned": images.transpose(1, 2), "none": images[:0], "scalar": labels[0],
            "learnt": torch.ones(2, requires_grad=True), "NumPy's": labels.numpy(), "text": ["é", str(len(labels))],
            "double": labels.double(), "again": (images, [images])}


def same(a, b):
    if isinstance(a, (torch.Tensor, np.ndarray)):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return len(a) == len(b) and all(map(same, a, b)) if isinstance(a, (list, tuple)) else a == b


def test_a_loader_sends_whatever_a_transform_makes(path):
    loader = data_sets.DataLoader(make(path), num_workers=2, collate_fn=odd_batch)
    got, expected = list(loader), list(map(odd_batch, make(path)))
    assert same(got, expected)
    assert got[7]["learnt"].requires_grad
    transformed = data_sets.DataLoader(make(path, transform=odd_batch), num_workers=2, collate_fn=list)
    assert [len(batch) for batch in transformed] == [9] * 101


def odd_tensors(batch):
    images = batch[0].float()
    nested = torch.nested.nested_tensor([images, images[1:]])
    return torch.quantize_per_tensor(images, 0.5, 0, torch.quint8), nested, images[0].to_sparse_csr()


@pytest.mark.filterwarnings("ignore")
def test_a_loader_sends_tensors_that_are_not_plain_memory(path):
    data = make(path)
    loader = data_sets.DataLoader(data, num_workers=2, collate_fn=odd_tensors)
    for batch, (quantized, nested, sparse) in zip(data, loader, strict=True):
        expected = odd_tensors(batch)
        assert torch.equal(sparse.to_dense(), expected[2].to_dense())
        assert quantized.is_quantized and torch.equal(quantized, expected[0])
        assert nested.is_nested and all(map(torch.equal, nested.unbind(), expected[1].unbind()))


def test_a_loader_whose_workers_stay(path):
    data = make(path)
    loader = data_sets.DataLoader(data, num_workers=2, persistent_workers=True, multiprocessing_context="spawn")
    for epoch in range(3):
        data.set_epoch(epoch)
        other = make(path)
        other.set_epoch(epoch)
        assert rows_of(loader) == rows_of(other)
    next(iter(loader))  # given up
    assert rows_of(loader) == rows_of(other)


@pytest.mark.parametrize("before, after", [(0, 3), (3, 0), (3, 2)])
def test_a_loader_resumes(path, before, after):
    data = make(path)
    taken = [batch for _, batch in zip(range(38), data_sets.DataLoader(data, num_workers=before))]
    again = make(path)
    again.load_state_dict(data.state_dict(batch=len(taken)))
    assert rows_of(taken) + rows_of(data_sets.DataLoader(again, num_workers=after)) == rows_of(make(path))


def fails(batch):
    raise LookupError("no batch is good enough")


def test_a_loader_that_cannot(path):
    with pytest.raises(LookupError, match="no batch is good enough"):
        list(data_sets.DataLoader(make(path, transform=fails), num_workers=2))
    with pytest.raises(TypeError, match="is not a breccia.torch.IterableDataset"):
        data_sets.DataLoader(Dataset(path, "set/labels"))
    for wrong in {"batch_size": 3}, {"drop_last": True, "num_workers": 2}:
        with pytest.raises(TypeError, match="is for the IterableDataset"):
            data_sets.DataLoader(make(path), **wrong)
    assert len(list(data_sets.DataLoader(make(path), batch_size=None, num_workers=2))) == len(make(path))
    assert list(data_sets.DataLoader(make(path, rows=slice(0)), num_workers=2)) == []


def test_no_handle_is_pickled(path):
    data = make(path)
    first = rows_of(data)
    raw = pickle.dumps(data)
    assert len(raw) < 4000
    assert rows_of(pickle.loads(raw)) == first
    assert data.__getstate__()["_open"] is None


def test_eight_workers_read_while_the_parent_writes(tmp_path):
    path = str(tmp_path / "a.brc")
    file = File(path)
    file.array("set/images", images(), (BLOCK, 6, 5)).array("set/labels", np.arange(N), (100,))
    version = file.commit("first")
    data = make(path)
    expected, got = rows_of(data), []
    for epoch in range(3):
        for step, batch in enumerate(DataLoader(data, batch_size=None, num_workers=8)):
            got.append(batch)
            if step % 5 == 0:  # also what the workers have not read yet
                file.write("set/images", np.full((N, 6, 5), step % 251, "u1"))
                file.write("set/labels", np.arange(N) + step + epoch + 1)
                assert file.commit(f"step {step}") != version
        assert rows_of(got) == expected
        got.clear()
    assert data.version == version
    assert IterableDataset(path, "set/labels").version != version
    file.close()


# ---- resuming --------------------------------

@pytest.mark.parametrize("options", [{}, {"lanes": 4}, {"batch_size": None, "rows": slice(0, 300)},
                                     {"drop_last": True, "batch_size": 64}], ids=str)
def test_resume_anywhere(path, options):
    data = make(path, **options)
    data.set_epoch(3)
    whole, states = [], [data.state_dict()]
    for batch in data:
        whole.append(batch)
        states.append(data.state_dict())
    for done, state in enumerate(states):
        assert all(isinstance(v, (int, bool, str, list)) for v in state.values())
        again = make(path, **options)
        again.load_state_dict(pickle.loads(pickle.dumps(state)))
        again.set_epoch(3)
        assert rows_of(again) == rows_of(whole[done:])
        again.set_epoch(4)
        assert len(list(again)) == len(data)


@pytest.mark.parametrize("before, after", [(0, 3), (3, 0), (3, 2)])
def test_resume_with_other_workers(path, before, after):
    expected = rows_of(make(path))
    data, taken = make(path), []
    for step, batch in enumerate(DataLoader(data, batch_size=None, num_workers=before)):
        taken.append(batch)
        if step == 36:
            break
    state = data.state_dict(batch=len(taken))
    again = make(path)
    again.load_state_dict(state)
    rest = list(DataLoader(again, batch_size=None, num_workers=after))
    assert rows_of(taken) + rows_of(rest) == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader(path, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    expected = rows_of(make(path))
    loader = stateful(make(path), batch_size=None, num_workers=workers)
    taken = [batch for _, batch in zip(range(41), loader)]
    state = loader.state_dict()
    again = stateful(make(path), batch_size=None, num_workers=workers)
    again.load_state_dict(state)
    assert rows_of(taken) + rows_of(again) == expected


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stay", [False, True])
def test_our_loader_knows_where_the_epoch_is(path, workers, stay):
    """Without a count from the caller; and an epoch that was resumed is followed by whole ones, named or not."""
    whole, data = rows_of(make(path)), make(path)
    loader = data_sets.DataLoader(data, num_workers=workers, persistent_workers=stay and workers > 0)
    taken = [batch for _, batch in zip(range(38), loader)]
    again = make(path)
    again.load_state_dict(data.state_dict())
    loader = data_sets.DataLoader(again, num_workers=workers, persistent_workers=stay and workers > 0)
    rest = [batch for _, batch in zip(range(20), loader)]
    third = make(path)
    third.load_state_dict(again.state_dict())
    assert rows_of(taken) + rows_of(rest) + rows_of(third) == whole
    loader = data_sets.DataLoader(third, num_workers=workers, persistent_workers=stay and workers > 0)
    for _ in range(2):
        assert rows_of(loader) == whole
    third.load_state_dict(again.state_dict())
    assert rows_of(taken) + rows_of(rest) + rows_of(loader) == whole
    assert rows_of(loader) == whole
    third.set_epoch(1)
    assert sorted(rows_of(loader)) == sorted(whole)


def test_a_state_of_something_else_is_refused(path):
    state = make(path).state_dict()
    with pytest.raises(ValueError, match="version None"):
        make(path).load_state_dict({"model": {}})
    for other in {"seed": 1}, {"batch_size": 9}, {"window": 100}, {"lanes": 2}, {"shuffle": False}, {"rows": slice(9)}:
        with pytest.raises(ValueError, match="the state was taken with"):
            make(path, **other).load_state_dict(state)
    with pytest.raises(ValueError, match="version"):
        make(path).load_state_dict({**state, "version": "0" * 32})


# ---- ranks --------------------------------

@pytest.mark.parametrize("options", [{}, {"lanes": 3}, {"batch_size": None}], ids=str)
def test_ranks_share_an_epoch(path, options):
    ranks = [make(path, rank=r, world_size=3, **options) for r in range(3)]
    got = [list(r) for r in ranks]
    assert [len(g) for g in got] == [len(r) for r in ranks]
    in_turn = [g[i] for i in range(max(map(len, got))) for g in got if i < len(g)]
    assert rows_of(in_turn) == rows_of(make(path, **options))
    equal = [make(path, rank=r, world_size=3, drop_last=True, **options) for r in range(3)]
    assert len({len(list(r)) for r in equal}) == len({len(r) for r in equal}) == 1
    again = make(path, rank=1, world_size=2, **options)
    again.load_state_dict(ranks[0].state_dict(batch=2))  # six of all
    assert rows_of(again) == rows_of(in_turn[7::2])


def test_ranks_of_torch_distributed(path, tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        data = make(path)
        assert (data.rank, data.world_size) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


# ---- samples --------------------------------

def test_samples_look_like_the_names(path):
    one, pair, named = (IterableDataset(path, names, batch_size=4, rows=slice(8, 12), shuffle=False) for names in
                        ("set/labels", ("set/images", "set/labels"), {"x": "set/images", "y": "/set/labels/"}))
    assert next(iter(one)).tolist() == [8, 9, 10, 11]
    x, y = next(iter(pair))
    assert x.dtype == torch.uint8 and x.shape == (4, 6, 5) and y.dtype == torch.int64
    assert (x.numpy() == images()[8:12]).all()
    batch = next(iter(named))
    assert set(batch) == {"x", "y"} and torch.equal(batch["x"], x)
    single = next(iter(IterableDataset(path, "set/images", rows=slice(8, 9))))
    assert torch.equal(single, x[0])
    scaled = IterableDataset(path, "set/images", batch_size=4, rows=slice(8, 12), shuffle=False,
                             transform=lambda b: b.float() / 255)
    assert torch.equal(next(iter(scaled)), x.float() / 255)


def test_any_sample(path):
    data = Dataset(path, {"x": "images", "y": "labels"}, group="set")
    assert len(data) == N and data[-1]["y"] == N - 1 and data[np.int64(3)]["y"] == 3
    batch = data.__getitems__([5, 1002, 5, -1, 0])
    assert [s["y"].item() for s in batch] == [5, 1002, 5, 1002, 0]
    assert (collate(batch)["x"].numpy() == images()[[5, 1002, 5, 1002, 0]]).all()
    assert torch.equal(collate(batch)["x"], torch.utils.data.default_collate(list(batch))["x"])
    assert batch[0]["x"].data_ptr() == collate(batch)["x"].data_ptr()
    for wrong in N, -N - 1:
        with pytest.raises(IndexError, match=f"sample {wrong} "):
            data[wrong]
    part = Dataset(path, "set/labels", rows=slice(100, 200), transform=lambda t: int(t))
    assert part[0] == 100 and part[-1] == 199 and list(part.__getitems__([3, 2])) == [103, 102]
    train, test = torch.utils.data.random_split(part, [80, 20])
    assert sorted([*train, *test]) == list(range(100, 200))
    assert len(list(DataLoader(Dataset(path, "set/labels"), batch_size=100))) == 11


@pytest.mark.parametrize("name", sorted(data_sets.TYPES))
def test_every_type_that_tensors_have(tmp_path, name):
    kind = getattr(torch, name)
    raw = np.arange(5 * 3 * kind.itemsize).astype("u1").reshape(5, -1) % 2
    file = File(tmp_path / "a.brc")
    file.array("a", raw.view(f"V{kind.itemsize}").reshape(5, 3), (2, 3), dtype=name)
    file.commit("one")
    file.close()
    got = next(iter(IterableDataset(tmp_path / "a.brc", "a", batch_size=5, shuffle=False)))
    assert got.dtype == kind and got.shape == (5, 3)
    assert (got.view(torch.uint8).numpy().reshape(5, -1) == raw).all()
    assert torch.equal(Dataset(tmp_path / "a.brc", "a")[4].view(torch.uint8), got[4].view(torch.uint8))
    (sent,) = data_sets._Unpickler(*data_sets._pack(lambda batch: batch, [got])).load()
    assert sent.dtype == kind and torch.equal(sent.view(torch.uint8), got.view(torch.uint8))


def test_a_repository_and_a_revision(tmp_path):
    file = File(tmp_path / "a.brc").array("a", np.arange(10.0))
    first = file.commit("first")
    file.tag("v1")
    second = file.write("a", np.arange(10.0) * 2).commit("second")
    repo = breccia.open(tmp_path / "a.brc")
    assert Dataset(repo, "a").version == second and Dataset(repo, "a")[3] == 6
    assert Dataset(repo, "a", rev="v1").version == first and Dataset(repo, "a", rev=first[:8])[3] == 3
    assert first in repr(Dataset(repo, "a", rev="v1"))
    repo.close()
    file.close()


def test_length_0_and_empty_samples(tmp_path):
    file = File(tmp_path / "a.brc").empty("none", (0, 3), "int8").empty("thin", (7, 0), "int8")
    file.commit("one")
    file.close()
    for batch_size in None, 4:
        data = IterableDataset(tmp_path / "a.brc", "none", batch_size=batch_size)
        assert len(data) == 0 and list(data) == [] and len(Dataset(tmp_path / "a.brc", "none")) == 0
    assert [b.shape for b in IterableDataset(tmp_path / "a.brc", "thin", batch_size=4)] == [(4, 0), (3, 0)]
    assert Dataset(tmp_path / "a.brc", "thin")[3].shape == (0,)
    assert list(IterableDataset(tmp_path / "a.brc", "thin", rows=slice(5, 2))) == []


def test_an_iteration_that_is_given_up(path):
    data = make(path)
    for _ in range(20):
        assert len(next(iter(data))[1]) == 10
    data.close()
    assert len(rows_of(data)) == N


# ---- what is refused --------------------------------

def test_refusals_name_the_array(tmp_path):
    struct = ('{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int32"},'
              '{"name":"b","data_type":"int8"}]}}')
    time = '{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}'
    file = File(tmp_path / "a.brc")
    file.empty("g/text", (4,), "string").empty("g/both", (4,), struct).empty("g/when", (4,), time)
    file.empty("g/raw", (4,), "r16").empty("g/short", (3,), "int8").empty("g/long", (4,), "int8")
    file.empty("g/alone", (), "int8").empty("g/four", (4,), "int4").commit("one")
    file.close()
    for name in "text", "both", "when", "raw", "four":
        with pytest.raises(TypeError, match=f"g/{name} has elements of type .*no tensor can hold"):
            Dataset(tmp_path / "a.brc", name, group="g")
    with pytest.raises(ValueError, match="g/short has 3, g/long has 4"):
        IterableDataset(tmp_path / "a.brc", ["g/short", "g/long"])
    with pytest.raises(ValueError, match="g/alone has no axis"):
        Dataset(tmp_path / "a.brc", "g/alone")
    with pytest.raises(KeyError, match="no node /g/nowhere"):
        Dataset(tmp_path / "a.brc", "g/nowhere")
    with pytest.raises(TypeError, match="not Session"):
        Dataset(breccia.open(tmp_path / "a.brc").view("main"), "g/long")
    with pytest.raises(breccia.NotFoundError):
        Dataset(tmp_path / "a.brc", "g/long", rev="nowhere")
    with pytest.raises(breccia.NotFoundError):
        Dataset(tmp_path / "b.brc", "g/long")
    assert not (tmp_path / "b.brc").exists()
    with pytest.raises(ValueError, match="no array was named"):
        Dataset(tmp_path / "a.brc", [])
    with pytest.raises(ValueError, match="step of 2"):
        Dataset(tmp_path / "a.brc", "g/long", rows=slice(0, 4, 2))
    for wrong in {"window": 0}, {"lanes": 0}, {"batch_size": 0}, {"seed": -1}, {"lanes": 5}, {"rank": 2},\
            {"lanes": 2, "shuffle": False, "window": 4}:
        with pytest.raises(ValueError, match="too small|do not fit|is not one of"):
            IterableDataset(tmp_path / "a.brc", "g/long", **wrong)


def test_without_torch_it_says_what_is_missing():
    script = ("import sys; sys.modules['torch'] = None\n"
              "import breccia\n"
              "try:\n    import breccia.torch\n"
              "except ModuleNotFoundError as e:\n    print(e)")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "breccia.torch needs PyTorch, which is not installed here: pip install torch\n"


def test_torch_is_not_imported_by_breccia():
    script = "import breccia, sys; print([m for m in ('torch', 'xarray', 'fsspec', 'zarr') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


# ---- real data --------------------------------

@pytest.mark.skipif(not (REAL / "mnist-t10k-images-idx3-ubyte.gz").exists(), reason="MNIST is not there")
def test_mnist(tmp_path):
    import gzip
    raw = gzip.decompress((REAL / "mnist-t10k-images-idx3-ubyte.gz").read_bytes())
    labels = np.frombuffer(gzip.decompress((REAL / "mnist-t10k-labels-idx1-ubyte.gz").read_bytes())[8:], "u1")
    pictures = np.frombuffer(raw[16:], "u1").reshape(-1, 28, 28)
    file = File(tmp_path / "mnist.brc")
    file.import_file(REAL / "mnist-t10k-images-idx3-ubyte.gz", "images")
    file.import_file(REAL / "mnist-t10k-labels-idx1-ubyte.gz", "labels")
    file.commit("MNIST")
    file.close()
    data = IterableDataset(tmp_path / "mnist.brc", ["images", "labels"], batch_size=64)
    for workers in 0, 2:
        got = list(DataLoader(data, batch_size=None, num_workers=workers))
        x, y = torch.cat([b[0] for b in got]).numpy(), torch.cat([b[1] for b in got]).numpy()
        assert x.shape == (10000, 28, 28)
        assert (np.bincount(y) == np.bincount(labels)).all()
        assert sorted(zip(y, map(bytes, x))) == sorted(zip(labels, map(bytes, pictures)))
    model = torch.nn.Linear(784, 10)
    step = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in [*data, *data]:
        loss = torch.nn.functional.cross_entropy(model(x.reshape(-1, 784) / 255), y.long())
        step.zero_grad()
        loss.backward()
        step.step()
    right = (model(torch.from_numpy(pictures.copy()).reshape(-1, 784) / 255).argmax(1).numpy() == labels).mean()
    assert right > 0.8
