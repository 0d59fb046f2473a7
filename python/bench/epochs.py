"""One shuffled epoch of MNIST: samples a second, with 0 and 4 workers, as torch's DataLoader gives them.

Without torch: batches of random rows, in a loop of this process. The images are the 10,000 of the test set,
where BRECCIA_TEST_DATA has them, as often as is needed; else random ones of the same size.
"""
from __future__ import annotations

import gzip
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BATCH = 64
CHUNK = 83  # images of 784 bytes: 64 KiB
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
        self.opened: Any = None

    def __len__(self) -> int:
        return self.count

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "opened": None}

    def __getitems__(self, rows: list[int]) -> Any:
        if self.opened is None or self.opened[0] != os.getpid():
            self.opened = os.getpid(), self.side.open(self.key)
        order = np.argsort(rows, kind="stable")
        got = self.side.rows(self.opened[1], np.asarray(rows)[order])
        shuffled = np.empty_like(np.asarray(got))
        shuffled[order] = got
        return shuffled


def as_tensor(batch: Any) -> Any:
    import torch

    return torch.from_numpy(batch)


def tables(bench: Any, make_table: Any) -> Iterator[tuple[Any, dict[str, Callable[[], Any]]]]:
    """The tables to fill, with the sides' work; the first of them is what others are compared with."""
    count = 2000 if bench.options.quick else 60000
    key = "epoch"
    able = bench.made(key, images(count), (CHUNK, 28, 28))
    sets = {side.name: Rows(side, key, count) for side in able}
    if importlib.util.find_spec("torch") is None:
        print("\ntorch is not here: no DataLoader, so batches of random rows in a loop")
        table = make_table(f"{count} images in random batches of {BATCH}", "samples/s", lambda s: count / s)
        order = np.random.default_rng(1).permutation(count)

        def batches(rows: Rows) -> Iterator[Any]:
            for start in range(0, count, BATCH):
                yield rows.__getitems__(order[start:start + BATCH].tolist())

        for name, rows in sets.items():
            check(name, batches(rows), count)
        yield table, {name: lambda rows=rows: sum(1 for _ in batches(rows)) for name, rows in sets.items()}
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
        loaders = {"breccia, IterableDataset": torch.utils.data.DataLoader(
            breccia.torch.IterableDataset(path, "a", batch_size=BATCH, seed=1), batch_size=None, **apart)}
        loaders["breccia, Dataset"] = torch.utils.data.DataLoader(
            breccia.torch.Dataset(path, "a"), batch_size=BATCH, shuffle=True,
            collate_fn=breccia.torch.collate, **apart)
        for name, rows in sets.items():
            loaders[name] = torch.utils.data.DataLoader(rows, batch_size=BATCH, shuffle=True,
                                                        collate_fn=as_tensor, **apart)
        for name, loader in loaders.items():
            check(name, iter(loader), count)
        yield table, {name: lambda loader=loader: sum(1 for _ in loader) for name, loader in loaders.items()}
