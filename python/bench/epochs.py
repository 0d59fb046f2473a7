"""A shuffled epoch of MNIST, as torch's DataLoader gives it: how many samples a second a library delivers.

Each library is read as its users read it. breccia has a loader. h5py, TensorStore and zarr are read by random chunks,
some of which are shuffled together, through a data set of the map style; memory-mapped NumPy, without chunks and
codec, by random rows. The images are numbered, so that an epoch can be checked.
"""
from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sides import Cannot, Mapped, Ours, Side

BATCH = 64
CHUNK = 83  # images of 784 bytes: 64 KiB
GROUP = 16  # chunks that are shuffled together


def numbered(images: Any, count: int) -> Any:
    """Images, as often as is needed, each with its number in its first four bytes."""
    made = np.concatenate([images] * -(-count // len(images)))[:count].copy()
    made[:, 0, :4] = np.arange(count, dtype="<u4").view("u1").reshape(-1, 4)
    return made


def numbers(batch: Any) -> Any:
    return np.ascontiguousarray(np.asarray(batch)[:, 0, :4]).view("<u4").ravel()


def check(batches: Iterable[Any], count: int) -> None:
    seen = np.concatenate([numbers(batch) for batch in batches])
    if not np.array_equal(np.sort(seen), np.arange(count)) or np.array_equal(seen, np.arange(count)):
        raise RuntimeError("an epoch has not each sample once, in another order")


class Rows:
    """A data set of any sample by its number; a batch is one call. It is opened in the process that reads."""

    def __init__(self, side: Side, name: str, count: int) -> None:
        self.side, self.name, self.count = side, name, count
        self._opened: Any = None

    def __len__(self) -> int:
        return self.count

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def opened(self) -> Any:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), self.side.open(self.name)
        return self._opened[1]

    def __getitems__(self, rows: list[int]) -> Any:
        order = np.argsort(rows, kind="stable")
        got = np.asarray(self.side.rows(self.opened, np.asarray(rows)[order]))
        shuffled = np.empty_like(got)
        shuffled[order] = got
        return shuffled


class Chunks(Rows):
    """A data set of groups of random chunks: an item is the samples of one, in random order."""

    def __init__(self, side: Side, name: str, count: int) -> None:
        super().__init__(side, name, count)
        chunks = np.random.default_rng(2).permutation(-(-count // CHUNK)).tolist()
        self.groups = [chunks[at:at + GROUP] for at in range(0, len(chunks), GROUP)]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, group: int) -> Any:
        rows = [slice(c * CHUNK, min(self.count, (c + 1) * CHUNK)) for c in self.groups[group]]
        got = np.concatenate([self.side.box(self.opened, (part, slice(None), slice(None))) for part in rows])
        return got[np.random.default_rng().permutation(len(got))]


class Batches:
    """A loader's groups in batches."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        left = np.empty((0, 28, 28), "u1")
        for group in self.loader:
            both = np.concatenate([left, group])
            whole = len(both) // BATCH * BATCH
            yield from (as_tensor(both[at:at + BATCH]) for at in range(0, whole, BATCH))
            left = both[whole:]
        if len(left):
            yield as_tensor(left)


def as_tensor(batch: Any) -> Any:
    import torch

    return torch.from_numpy(batch)


def loader(side: Side, name: str, count: int, workers: int) -> Any:
    """Returns what an epoch iterates over. Workers are spawned: zarr's thread does not survive a fork."""
    import torch

    data: Any = torch.utils.data
    warnings.filterwarnings("ignore", message=".*worker processes in total")  # more than there are cores
    apart: dict[str, Any] = {"num_workers": workers, "multiprocessing_context": "spawn" if workers else None,
             "persistent_workers": workers > 0}
    if isinstance(side, Ours):
        import breccia.torch

        blocks = breccia.torch.IterableDataset(side.path(name), "a", batch_size=BATCH, seed=1)
        return breccia.torch.DataLoader(blocks, **apart)
    if isinstance(side, Mapped):
        return data.DataLoader(Rows(side, name, count), shuffle=True, batch_size=BATCH, collate_fn=as_tensor, **apart)
    if len(side.job.shape) != 3:
        raise Cannot("it has no images")
    return Batches(data.DataLoader(Chunks(side, name, count), shuffle=True, batch_size=None, **apart))
