"""One shuffled epoch of MNIST: samples a second, with 0 and 4 workers, as torch's DataLoader gives them.

Each library is read as its users read it, through a data set of the map style: by random rows, a call for
each batch ("random rows"); and by random chunks, of which some are read whole and shuffled together ("whole
chunks"). A NumPy file that is mapped into memory, without chunks and codec, is the bound of what can be had.
Without torch it is a loop of this process. The images are the 10,000 of the test set, where BRECCIA_TEST_DATA
has them, as often as is needed; else random ones of the same size.
"""
from __future__ import annotations

import gzip
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import sides as libraries

BATCH = 64
CHUNK = 83  # images of 784 bytes: 64 KiB
GROUP = 16  # chunks that are shuffled together
BY_CHUNKS = "h5py", "TensorStore", "zarr-python, LocalStore", "zarr-python, LocalStore, zarrs"
FILE = "mnist-t10k-images-idx3-ubyte.gz"


def images(count: int) -> Any:
    """Each has its number in its first four bytes, so that an epoch can be checked."""
    path = os.path.join(os.environ.get("BRECCIA_TEST_DATA", ""), FILE)
    if os.path.isfile(path):
        with gzip.open(path) as file:
            read = np.frombuffer(file.read(), "u1", offset=16).reshape(-1, 28, 28)
        made = np.concatenate([read] * -(-count // len(read)))[:count].copy()
    else:
        print(f"there is no {FILE}: random images instead")
        made = np.random.default_rng(0).integers(0, 256, (count, 28, 28), "u1")
    made[:, 0, :4] = np.arange(count, dtype="<u4").view("u1").reshape(-1, 4)
    return made


def numbers(batch: Any) -> Any:
    return np.ascontiguousarray(np.asarray(batch)[:, 0, :4]).view("<u4").ravel()


def check(name: str, batches: Iterator[Any], count: int) -> None:
    seen = np.concatenate([numbers(batch) for batch in batches])
    if not np.array_equal(np.sort(seen), np.arange(count)) or np.array_equal(seen, np.arange(count)):
        raise SystemExit(f"bench: an epoch of {name} has not each sample once, in another order")


class Rows:
    """A data set of any sample by its number, over one of the libraries; a batch is one call."""

    def __init__(self, side: Any, key: str, count: int) -> None:
        self.side, self.key, self.count = side, key, count
        self._opened: Any = None

    def __len__(self) -> int:
        return self.count

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def opened(self) -> Any:
        """Opened in this process."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), self.side.open(self.key)
        return self._opened[1]

    def __getitems__(self, rows: list[int]) -> Any:
        order = np.argsort(rows, kind="stable")
        got = np.asarray(self.side.rows(self.opened, np.asarray(rows)[order]))
        shuffled = np.empty_like(got)
        shuffled[order] = got
        return shuffled

    def batches(self) -> Iterator[Any]:
        """An epoch without torch."""
        order = np.random.default_rng(1).permutation(self.count)
        return (self.__getitems__(order[at:at + BATCH].tolist()) for at in range(0, self.count, BATCH))


class Chunks(Rows):
    """A data set of groups of random chunks: an item is the samples of one, in random order."""

    def __init__(self, side: Any, key: str, count: int) -> None:
        super().__init__(side, key, count)
        chunks = np.random.default_rng(2).permutation(-(-count // CHUNK)).tolist()
        self.groups = [chunks[at:at + GROUP] for at in range(0, len(chunks), GROUP)]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, group: int) -> Any:
        rows = [slice(c * CHUNK, min(self.count, (c + 1) * CHUNK)) for c in self.groups[group]]
        got = np.concatenate([self.side.box(self.opened, (part, slice(None), slice(None))) for part in rows])
        return got[np.random.default_rng().permutation(len(got))]

    def batches(self) -> Iterator[Any]:
        return in_batches(self[g] for g in np.random.default_rng(1).permutation(len(self)).tolist())


def in_batches(groups: Iterable[Any]) -> Iterator[Any]:
    """The samples of groups, in batches."""
    left = np.empty((0, 28, 28), "u1")
    for group in groups:
        both = np.concatenate([left, group])
        whole = len(both) // BATCH * BATCH
        yield from (both[at:at + BATCH] for at in range(0, whole, BATCH))
        left = both[whole:]
    if len(left):
        yield left


class Batches:
    """A loader's groups in batches."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        return map(as_tensor, in_batches(self.loader))


def as_tensor(batch: Any) -> Any:
    import torch

    return torch.from_numpy(batch)


def tables(bench: Any, make_table: Any) -> Iterator[tuple[Any, dict[str, Callable[[], Any]]]]:
    """The tables to fill, with the sides' work; the first of them is what others are compared with."""
    count = 2000 if bench.options.quick else 60000
    key = "epoch"
    data = images(count)
    able = bench.made(key, data, (CHUNK, 28, 28))
    mapped = libraries.Mapped(bench.folder, bench.options.codec)
    mapped.make(key, data, (CHUNK, 28, 28))
    sets: dict[str, Any] = {f"{side.name}, random rows": Rows(side, key, count) for side in [*able, mapped]}
    for side in able:
        if side.name in BY_CHUNKS:
            sets[f"{side.name}, whole chunks"] = Chunks(side, key, count)
    if importlib.util.find_spec("torch") is None:
        print("\ntorch is not here: no DataLoader, but a loop")
        table = make_table(f"{count} images in random batches of {BATCH}", "samples/s", lambda s: count / s)
        for name, data_set in sets.items():
            check(name, data_set.batches(), count)
        yield table, {name: lambda rows=rows: sum(1 for _ in rows.batches()) for name, rows in sets.items()}
        return
    import torch

    import breccia.torch

    path = able[0].path(key) + ".brc"
    for workers in 0, 4:
        table = make_table(f"A shuffled epoch of {count} images, {workers} workers", "samples/s",
                           lambda s: count / s)
        # Forked workers cannot use zarr's thread nor zarrs' pool of the parent, so all are spawned.
        apart = {"num_workers": workers, "multiprocessing_context": "spawn" if workers else None,
                 "persistent_workers": workers > 0}
        blocks = breccia.torch.IterableDataset(path, "a", batch_size=BATCH, seed=1)
        loaders: dict[str, Any] = {
            "breccia, IterableDataset": breccia.torch.DataLoader(blocks, **apart),
            "breccia, IterableDataset, torch's loader": torch.utils.data.DataLoader(blocks, batch_size=None, **apart)}
        loaders["breccia, Dataset"] = torch.utils.data.DataLoader(
            breccia.torch.Dataset(path, "a"), batch_size=BATCH, shuffle=True,
            collate_fn=breccia.torch.collate, **apart)
        for name, rows in sets.items():
            by_rows = {"batch_size": BATCH, "collate_fn": as_tensor}
            if isinstance(rows, Chunks):
                by_rows = {"batch_size": None}
            loader = torch.utils.data.DataLoader(rows, shuffle=True, **by_rows, **apart)
            loaders[name] = Batches(loader) if isinstance(rows, Chunks) else loader
        for name, loader in loaders.items():
            check(name, iter(loader), count)
        yield table, {name: lambda loader=loader: sum(1 for _ in loader) for name, loader in loaders.items()}
