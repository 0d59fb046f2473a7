"""Arrays as training data: PyTorch's two kinds of data set, over one committed version of a file.

Several arrays of one group, as long as each other along their first axis, are one set of samples: row i of each
is sample i. `Dataset` gives any sample; `IterableDataset` gives shuffled epochs and decodes each chunk once for
each. `dataset.version` is the id of the commit that is shown, whatever happens to the branch meanwhile:
`print("trained on", dataset.version)` is all that it takes to name what a run has seen.

Both pickle without their handles and work in forked and spawned workers, where each opens the file by itself.
"""
from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ._order import Order
from ._rows import Names, Rows

try:
    torch: Any = importlib.import_module("torch")
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    raise ModuleNotFoundError("breccia.torch needs PyTorch, which is not installed here: pip install torch",
                              name="torch") from None

# Zarr's names of the types that a tensor can have, which are torch's names too.
TYPES = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 "
                  "complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split())


class _Set:
    """What both kinds have in common."""

    def __init__(self, source: Any, arrays: Names, *, rev: str = "main", group: str = "", rows: slice | None = None,
                 transform: Callable[[Any], Any] | None = None, pin_memory: bool = False, threads: int = 0) -> None:
        self._rows = Rows(source, arrays, rev, group, rows, threads, one_thread=_is_worker)
        for field in self._rows.fields:
            kind = getattr(torch, field.dtype, None) if field.dtype in TYPES else None
            if kind is None:
                raise TypeError(f"{field.path} has elements of type {field.dtype}, which no tensor can hold: "
                                "leave it out, or store numbers")
        self.transform, self.pin_memory = transform, pin_memory

    @property
    def version(self) -> str:
        """The id of the commit that is shown."""
        return self._rows.version

    def close(self) -> None:
        """Closes the file here. It is opened again where it is needed."""
        self._rows.close()

    def _new(self, count: int) -> list[Any]:
        """Memory for so many samples, a tensor of bytes (count, bytes of a sample) for each array: where the main
        process can see it, or the device."""
        made = []
        for field in self._rows.fields:
            size = count * field.nbytes
            if _is_worker() and size > 0:
                flat = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(size))
            else:
                pinned = self.pin_memory and size > 0 and torch.cuda.is_available()
                flat = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
            made.append(flat.view(count, field.nbytes))
        return made

    def _typed(self, raw: Sequence[Any]) -> list[Any]:
        """The same memory as tensors (samples, *shape of a sample) of the arrays' types."""
        return [one.view(-1).view(getattr(torch, f.dtype)).view(one.shape[0], *f.shape)
                for one, f in zip(raw, self._rows.fields)]

    def _packed(self, tensors: Sequence[Any]) -> Any:
        """As the caller named the arrays: one tensor, a tuple or a dictionary."""
        names = self._rows.names
        if isinstance(names, str):
            return tensors[0]
        return dict(zip(names, tensors)) if isinstance(names, Mapping) else tuple(tensors)

    def _out(self, tensors: Sequence[Any]) -> Any:
        packed = self._packed(tensors)
        return packed if self.transform is None else self.transform(packed)

    def __repr__(self) -> str:
        paths = ", ".join(f.path for f in self._rows.fields)
        return f"<breccia.torch.{type(self).__name__}: {len(self._rows)} rows of {paths} at {self.version}>"


class Dataset(_Set, torch.utils.data.Dataset):  # type: ignore[misc]
    """Any sample by its number, and a whole batch in one call: for samplers of your own, and small chunks.

    source: the file's path, or a Repository. arrays: a path (samples are tensors), a sequence of paths (tuples), or
    a mapping of names to paths (dictionaries); paths are within `group`. rev: a branch, a tag or a commit; of a
    branch its last commit counts, not what is uncommitted. rows: `slice(0, 8000)` leaves out the others.
    transform: called with each sample. pin_memory: with a CUDA device and without workers, samples are decoded into
    pinned memory. threads: that decode, in a process without workers; 0: one per core.

    A DataLoader stacks samples by copying them. With `collate_fn=breccia.torch.collate` a batch stays as it was read.
    Random rows of an array with large chunks decode them again for each batch: IterableDataset does not.

    Errors: NotFoundError (a KeyError) for what is not there; ValueError where arrays differ in their first axis;
    TypeError for elements that no tensor can hold.
    """

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        """The samples, in their order. They lie beside each other in memory: `.whole` is their batch."""
        at = np.array([int(i) for i in indices], np.int64)
        bad = at[(at < -len(self)) | (at >= len(self))]
        if bad.size:
            raise IndexError(f"sample {bad[0]} is not one of the {len(self)} there are")
        at = np.where(at < 0, at + len(self), at) + self._rows.first
        raw = self._new(len(at))
        self._rows.read_scattered(at, [one.data_ptr() for one in raw])
        tensors = self._typed(raw)
        if self.transform is not None:
            return Batch(self._out([t[i] for t in tensors]) for i in range(len(at)))
        made = Batch(self._packed(one) for one in zip(*(t.unbind(0) for t in tensors)))
        made.whole = self._packed(tensors)
        return made


class Batch(list[Any]):
    """Samples of one read. `whole`: all of them as one batch, without a copy; None after a transform."""

    whole: Any = None


def collate(samples: Any) -> Any:
    """For a DataLoader over Dataset: the batch as it was read; what else there is, as torch does it."""
    whole = getattr(samples, "whole", None)
    return torch.utils.data.default_collate(samples) if whole is None else whole


class IterableDataset(_Set, torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Shuffled epochs, each sample once, as ready batches: `DataLoader(dataset, batch_size=None, num_workers=4)`.

    Blocks, which are the rows of one chunk, come in random order; so many of them as have `window` samples are
    decoded together, and their samples shuffled. The order is a function of `seed`, the epoch (`set_epoch`) and the
    arguments, and the same for any number of workers. A sample comes less than `window` places from where its block
    begins to. Two windows of decoded samples are in memory, one of them being read ahead.

    Batches go to ranks and workers in turn. So that no two of them decode the same chunk, a window consists of
    `lanes`, and a batch has samples of one: chunks are decoded once where ranks times workers divide `lanes`.
    With one lane, batches are mixed best. Epochs are of equal length on all ranks with `drop_last`; without it some
    have one batch more, and each sample comes exactly once.

    source, arrays, rev, group, rows, pin_memory, threads: as of Dataset. transform: called with each batch, in the
    worker. batch_size: None gives single samples; then the order is the same for any number of workers only if
    the DataLoader makes no batches of its own. window: in samples, at least one block; None: 64 MiB, or 16 blocks
    if that is more. lanes: None: up to 8, of 16 blocks and more. shuffle: False gives the rows in their order.
    rank, world_size: None: those of torch.distributed, where it has been initialised.
    """

    def __init__(self, source: Any, arrays: Names, *, batch_size: int | None = None, rev: str = "main",
                 group: str = "", rows: slice | None = None, transform: Callable[[Any], Any] | None = None,
                 shuffle: bool = True, seed: int = 0, window: int | None = None, lanes: int | None = None,
                 drop_last: bool = False, rank: int | None = None, world_size: int | None = None,
                 pin_memory: bool = False, threads: int = 0) -> None:
        super().__init__(source, arrays, rev=rev, group=group, rows=rows, transform=transform, pin_memory=pin_memory,
                         threads=threads)
        self.rank, self.world_size = _rank(rank, world_size)
        self.drop_last, self.batch_size = drop_last, batch_size
        self._order = Order(self._rows, shuffle=shuffle, seed=seed, window=window, lanes=lanes, batch=batch_size)
        # The epoch and the batch to begin with: workers that stay see what set_epoch() changes.
        self._place = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._own: tuple[int, int] | None = None  # the same, of a worker that was told by itself
        self._next: int | None = None

    @property
    def window(self) -> int:
        """How many samples are shuffled together, at most."""
        return self._order.window

    def __len__(self) -> int:
        """How many batches (samples, without batch_size) an epoch has on this rank."""
        return max(0, -(-(self._batches() - self.rank) // self.world_size))

    def _batches(self) -> int:
        """Of all ranks together."""
        whole, rest = divmod(len(self._rows), self._order.batch)
        if self.drop_last:
            return whole - whole % self.world_size
        return whole + (rest > 0)

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iteration gives, from its begin; the one that was resumed goes on where it was."""
        if epoch != int(self._place[0]):
            self._place[0], self._place[1], self._next = epoch, 0, None

    def state_dict(self, batch: int | None = None) -> dict[str, Any]:
        """Where the epoch is, to go on from there. batch: how many this rank has taken from its DataLoader; None:
        how many were given in this process, which a DataLoader with workers does not tell."""
        if batch is None:
            batch = int(self._place[1]) if self._next is None else self._next
        return {"version": self.version, **self._order.described,
                "epoch": int(self._place[0]), "batch": batch * self.world_size}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state, with any number of workers; also of ranks, where its batches divide among them.
        ValueError: it is of another version or order."""
        own = self.state_dict()
        for name in own.keys() - {"epoch", "batch"}:
            if state[name] != own[name]:
                raise ValueError(f"the state was taken with {name} {state[name]}, and this data set has {own[name]}: "
                                 "make it with the same arguments and the version as rev")
        batch, rest = divmod(int(state["batch"]), self.world_size)
        if rest:
            raise ValueError(f"{state['batch']} batches do not divide among {self.world_size} ranks")
        self._next = None
        if _is_worker():
            self._own = int(state["epoch"]), batch
        else:
            self._place[0], self._place[1] = int(state["epoch"]), batch

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        epoch, first = self._own or self._place.tolist()
        self._own = None
        return self._run(epoch, first, *((info.id, info.num_workers) if info else (0, 1)))

    def _run(self, epoch: int, first: int, worker: int, workers: int) -> Iterator[Any]:
        size, begun, last = self._order.batch, dict[int, Any](), len(self._rows)
        for start, places, scratch, numbers in self._windows(epoch, first, worker, workers):
            for k in numbers:
                raw = begun.pop(k, None) or self._new(min(size, last - k * size))
                low, high = max(k * size, start), min((k + 1) * size, start + len(places))
                for one, source in zip(raw, scratch):
                    # torch.index_select() waits for all its threads, which takes longer than the copy.
                    np.take(source, places[low - start:high - start], axis=0,
                            out=one.numpy()[low - k * size:high - k * size], mode="clip")
                if high < min((k + 1) * size, last):
                    begun[k] = raw  # the next window has the rest
                    continue
                self._next = k // self.world_size + 1
                tensors = self._typed(raw)
                yield self._out([t[0] for t in tensors] if self.batch_size is None else tensors)
        if not _is_worker() and int(self._place[0]) == epoch:
            self._place[1] = 0

    def _windows(self, epoch: int, first: int, worker: int, workers: int) -> Iterator[tuple[int, Any, list[Any], Any]]:
        """Window after window: where it starts in the epoch, for each of its samples the row in `scratch`, that, and
        the numbers of the batches that are this worker's. Each is read while the one before is used."""
        order, most, size = self._order.epoch(epoch), self._batches(), self._order.batch

        def batches(g: int) -> Any:
            k = np.arange(order.starts[g] // size, min(most, -(-order.starts[g + 1] // size)))
            mine = (k % self.world_size == self.rank) & (k // self.world_size % workers == worker)
            return k[mine & (k >= first * self.world_size)]

        def load(g: int, memory: list[Any]) -> tuple[int, Any, list[Any], Any]:
            start, rows, numbers = int(order.starts[g]), order.window(g), batches(g)
            of_batch = np.arange(start, start + len(rows)) // size
            blocks, places = order.needed(rows, np.isin(of_batch, numbers))
            count = len(blocks) * self._order.block
            if not memory or len(memory[0]) < count:
                memory[:] = [np.empty((count, f.nbytes), np.uint8) for f in self._rows.fields]
            self._rows.read_blocks(blocks, self._order.block, [one.ctypes.data for one in memory])
            return start, places, memory, numbers.tolist()

        # The first window is the one in which the first batch begins.
        begin = int(np.searchsorted(order.starts, first * self.world_size * size, "right")) - 1
        wanted = (g for g in range(begin, len(order.starts) - 1) if len(batches(g)))
        spare: list[list[Any]] = [[], []]
        with ThreadPoolExecutor(1, "breccia-ahead") as ahead:
            coming = [ahead.submit(load, g, spare.pop()) for g in itertools.islice(wanted, 1)]
            while coming:
                got = coming.pop().result()
                coming = [ahead.submit(load, g, spare.pop()) for g in itertools.islice(wanted, 1)]
                yield got
                spare.append(got[2])


def _is_worker() -> bool:
    return torch.utils.data.get_worker_info() is not None


def _rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    several = torch.distributed.is_available() and torch.distributed.is_initialized()
    if rank is None:
        rank = int(torch.distributed.get_rank()) if several else 0
    if world_size is None:
        world_size = int(torch.distributed.get_world_size()) if several else 1
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not one of the {world_size} ranks, which count from 0")
    return rank, world_size
