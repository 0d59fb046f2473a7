"""Arrays as training data: PyTorch's two kinds of data set, over one committed version of a file, and a loader.

Row i of each array is sample i. `print("trained on", data.version)` names the commit, whatever happens to the
branch. Data sets pickle, and each worker, forked or spawned, opens the file by itself.
"""
from __future__ import annotations

import copy
import importlib
import io
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from ._breccia import ffi, lib
from ._native import file_and_rev, sized
from .array import Array
from .repository import Repository

try:
    torch: Any = importlib.import_module("torch")
except ModuleNotFoundError as missing:
    if missing.name == "torch":
        missing.msg = "breccia.torch needs PyTorch, which is not installed here: pip install torch"
    raise

Names = str | Sequence[str] | Mapping[str, str]
# Zarr's and torch's common names of the types that a tensor can have.
TYPES = frozenset("""bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64
    complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu""".split())
in_worker = torch.utils.data.get_worker_info  # torch's description of this worker; None outside of a worker


class _Set:
    """The common part of both kinds."""

    def __init__(self, source: Any, arrays: Names, *, rev: str | None = None, group: str = "",
                 rows: slice | None = None, transform: Callable[[Any], Any] | None = None, pin_memory: bool = False,
                 threads: int = 0) -> None:
        path, at = (source.path, source.rev) if isinstance(source, Repository) else file_and_rev(source)
        self._given = source._for_servers() if isinstance(source, Repository) else {}
        self._path, self._threads = os.path.abspath(os.fspath(path)), threads
        self._names, self.transform, self.pin_memory = arrays, transform, pin_memory
        paths = [arrays] if isinstance(arrays, str) else arrays.values() if isinstance(arrays, Mapping) else arrays
        self._paths = [f"{group.strip('/')}/{path.strip('/')}".strip("/") for path in paths]
        self._open: tuple[int, list[Array]] | None = None
        self.version = Repository(self._path, threads=1, **self._given).resolve(rev or at or "main")
        for a in self._arrays():
            if a.data_type not in TYPES or not hasattr(torch, a.data_type):
                raise TypeError(f"{a.path} has elements of type {a.data_type}, which no tensor can hold: leave it out")
        lengths = [a.shape[0] if a.ndim else "no axis" for a in self._arrays()]
        if len(set(lengths)) != 1 or "no axis" in lengths:
            said = ", ".join(f"{path} has {n}" for path, n in zip(self._paths, lengths))
            raise ValueError(f"samples are rows of arrays of one length: {said or 'no array was named'}")
        first, stop, step = (rows or slice(None)).indices(len(self._arrays()[0]))
        if step != 1:
            raise ValueError(f"rows with a step of {step} are not taken: give a slice without one")
        self._rows = range(first, max(first, stop))

    def _arrays(self) -> list[Array]:
        """Opens the arrays in this process; a worker uses one thread."""
        if self._open is None or self._open[0] != os.getpid():
            threads = 1 if in_worker() else self._threads
            view = Repository(self._path, threads=threads, **self._given).view(self.version)
            self._open = os.getpid(), [Array(view, path) for path in self._paths]
        return self._open[1]

    def close(self) -> None:
        """Closes the file in this process. A later call opens it again."""
        self._open = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def _take(self, rows: Any, left: Sequence[Any] = ()) -> list[Any]:
        """Returns a tensor for each array: the rest of another tensor, followed by these rows. Each chunk is decoded
        once, into pinned memory if this was asked for and is possible."""
        pinned = self.pin_memory and torch.cuda.is_available() and not in_worker()
        n, made = len(left[0]) if left else 0, []
        for i, array in enumerate(self._arrays()):
            shape, dtype = (n + len(rows), *array.shape[1:]), getattr(torch, array.data_type)
            made.append(torch.empty(shape, dtype=dtype, pin_memory=pinned))
            if n:
                made[i][:n] = left[i]
            new = made[i][n:]
            if new.nbytes:
                at = sized("brc_at", ndim=new.ndim, count=list(new.shape), step=[1] * new.ndim)
                at.index[0] = ffi.from_buffer("int64_t[]", rows)
                buffer = sized("brc_buffer", data=ffi.cast("void *", new.data_ptr()), len=new.nbytes)
                with array.session._sessions.at_work() as native:
                    native.call(lib.brc_read, sized("brc_io", array=native.array(array.path), at=at, buffer=buffer), 1)
        return made

    def _out(self, tensors: Sequence[Any]) -> Any:
        """Returns samples in the form in which the caller named the arrays: a tensor, a tuple or a dictionary; then
        transforms them."""
        named = dict(zip(self._names, tensors)) if isinstance(self._names, Mapping) else tuple(tensors)
        packed = tensors[0] if isinstance(self._names, str) else named
        return packed if self.transform is None else self.transform(packed)

    def __repr__(self) -> str:
        what = f"{len(self._rows)} rows of {', '.join(self._paths)} at {self.version}"
        return f"<breccia.torch.{type(self).__name__}: {what}>"


class Dataset(_Set, torch.utils.data.Dataset):  # type: ignore[misc]
    """Any sample by its number, and a whole batch in one call: for samplers of your own, and small chunks.

    source: the file's path, or a Repository. arrays: a path (samples are tensors), a sequence of paths
    (tuples) or a mapping of names to paths (dictionaries), within `group`. rev: a branch, of which the last
    commit counts, a tag or a commit. rows: `slice(0, 8000)` leaves out the others. transform: of each sample.
    pin_memory: samples are decoded into pinned memory, with a CUDA device and without workers. threads: of a
    process without workers; 0: one per core. NotFoundError (a KeyError): something is not there. ValueError:
    the arrays differ in their first axis. TypeError: no tensor can hold the elements.

    A DataLoader copies samples into a batch; with `collate_fn=breccia.torch.collate` it stays as it was read.
    Random rows of large chunks decode these again for each batch: IterableDataset does not.
    """

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        """Returns the samples in order. They lie next to each other in memory: `.whole` is their batch."""
        for i in indices:
            if not -len(self) <= i < len(self):
                raise IndexError(f"sample {i} is not one of the {len(self)} there are")
        tensors = self._take(np.array([self._rows[i] for i in indices], np.int64))
        made = Batch(self._out(sample) for sample in zip(*(t.unbind(0) for t in tensors)))
        made.whole = self._out(tensors) if self.transform is None else None
        return made


class Batch(list[Any]):
    """The samples of one read. `whole` has all of them as one batch, without a copy; None after a transform."""
    whole: Any = None


def collate(samples: Any) -> Any:
    """For a DataLoader over Dataset: returns the batch as it was read; collates anything else as torch does."""
    whole = getattr(samples, "whole", None)
    return torch.utils.data.default_collate(samples) if whole is None else whole


class IterableDataset(_Set, torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Shuffled epochs as ready batches, each sample once: iterate over it, or over breccia.torch.DataLoader.

    Blocks, the rows of one chunk each, come in random order; as many as have `window` samples are decoded
    together and these shuffled: a sample comes less than `window` places from where its block begins to. The
    order depends on the arguments and the epoch, not on workers. Two windows are in memory, one of them read
    ahead; without workers, batches are views of them.

    Batches go to ranks and workers in turn. So that each has its own chunks to decode, blocks are dealt to
    `lanes` with a part of the window each, and a batch has samples of one: where ranks times workers divide
    `lanes`, chunks are decoded once, but for the few of the last batches. One lane mixes batches best.

    source, arrays, rev, group, rows, pin_memory, threads: as of Dataset. transform: of batches. batch_size:
    None gives single samples. window: in samples; None: 64 MiB, or 16 blocks if these are more. lanes: None:
    up to 8, where each has windows of 16 blocks. shuffle: False keeps the order of rows. drop_last: as many
    batches for all ranks; else some have one more. rank, world_size: None: torch.distributed's, if there.
    """

    _packs = False  # a loader copies the batches that its workers send

    def __init__(self, source: Any, arrays: Names, *, batch_size: int | None = None, rev: str = "main", group: str = "",
                 rows: slice | None = None, transform: Callable[[Any], Any] | None = None, shuffle: bool = True,
                 seed: int = 0, window: int | None = None, lanes: int | None = None, drop_last: bool = False,
                 rank: int | None = None, world_size: int | None = None, pin_memory: bool = False,
                 threads: int = 0) -> None:
        super().__init__(source, arrays, rev=rev, group=group, rows=rows, transform=transform,
                         pin_memory=pin_memory, threads=threads)
        dist = torch.distributed
        several = dist.is_available() and dist.is_initialized()
        self.rank = rank if rank is not None else dist.get_rank() if several else 0
        self.world_size = world_size if world_size is not None else dist.get_world_size() if several else 1
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} is not one of the {self.world_size} ranks, counted from 0")
        for name, n in ("window", window), ("lanes", lanes), ("batch_size", batch_size), ("seed", seed + 1):
            if n is not None and n < 1:
                raise ValueError(f"{name} is {n - (name == 'seed')}, which is too small")
        self.shuffle, self.seed, self.batch_size, self.drop_last = shuffle, seed, batch_size, drop_last
        sizes = [t.stride(0) * t.itemsize for t in self._take(())]
        largest = self._arrays()[sizes.index(max(sizes))]
        block, size = max(1, min(largest.chunks[0], len(largest))), batch_size or 1
        blocks = -(-self._rows.stop // block) - self._rows.start // block
        most = window or max(16 * block, (64 << 20) // max(1, sum(sizes)))

        def each(n: int) -> int:  # with several lanes, a batch may begin before a window and end after it
            return min((most // n - 2 * size * (n > 1)) // block, blocks // n)

        self.lanes = n = lanes or next(n for n in (8, 4, 2, 1) if n == 1 or shuffle and each(n) >= 16)
        if n > 1 and not (shuffle and each(n) > 0):
            raise ValueError(f"{n} lanes do not fit: shuffle {n} chunks, window={n * (block + 2 * size)}")
        self._block, self._size, self._each, self._bytes = block, size, max(1, each(n)), size * sum(sizes)
        self.window = min(len(self._rows), n * (self._each * block + 2 * size * (n > 1)))
        # Epoch and batch: to begin with, as workers that stay see too; to go on with here; to begin with in a
        # worker that was told by itself.
        self._place = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._here: tuple[int, int] | None = None
        self._told: tuple[int, int] | None = None

    def __len__(self) -> int:
        """Returns how many batches (without batch_size: samples) an epoch has on this rank."""
        whole, rest = divmod(len(self._rows), self._size)
        more = 0 if self.drop_last else (rest > 0) - self.rank + self.world_size - 1
        return (whole + more) // self.world_size

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration, which begins at its start; a resumed epoch goes on."""
        if epoch != self._place[0]:
            self._place[0], self._place[1], self._here = epoch, 0, None

    def state_dict(self, batch: int | None = None) -> dict[str, Any]:
        """Where the epoch is, to go on from there. batch: how many of the epoch's this rank has taken, before it was
        resumed too; None: as many as were given, which torch's own DataLoader does not tell where it has workers."""
        epoch, given = self._here or self._place.tolist()
        batch = self.world_size * (given if batch is None else batch)
        return {"version": self.version, "rows": [self._rows.start, self._rows.stop], "shuffle": self.shuffle,
                "seed": self.seed, "block": self._block, "window": self.window, "lanes": self.lanes,
                "batch_size": self._size, "epoch": epoch, "batch": batch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state, with any number of workers, and of ranks that its batches divide among. With workers
        of torch's own DataLoader, set_epoch() has to begin the next epoch. ValueError: it is of another version or
        order."""
        for name, own in self.state_dict().items():
            if state.get(name) != own and name not in ("epoch", "batch"):
                raise ValueError(f"the state was taken with {name} {state.get(name)}, and here it is {own}")
        batch, rest = divmod(int(state["batch"]), self.world_size)
        if rest:
            raise ValueError(f"{state['batch']} batches do not divide among {self.world_size} ranks")
        if in_worker():
            self._told = int(state["epoch"]), batch
        else:
            self._place[0], self._place[1], self._here = int(state["epoch"]), batch, None

    def __iter__(self) -> Iterator[Any]:
        info, (epoch, first) = in_worker(), self._place.tolist()
        self._here, self._told = self._told or (epoch, first + (info.id if info else 0)), None
        first, step = self._here[1] * self.world_size + self.rank, info.num_workers if info else 1
        return self._run(self._here[0], range(first, len(self) * self.world_size, step * self.world_size))

    def _run(self, epoch: int, mine: range) -> Iterator[Any]:
        """Yields the batches with these numbers. A worker sends copies, and not the windows that batches lie in."""
        with ThreadPoolExecutor(1, "breccia-ahead") as pool:
            lanes = [self._batches(self._windows(epoch, i, mine), pool) for i in range(self.lanes + 1)]
            for k in mine:
                got = next(lanes[k % self.lanes], None) or next(lanes[-1])
                got = [t.clone() for t in got] if in_worker() and not self._packs else got
                self._here = epoch, (k + mine.step) // self.world_size
                yield self._out([t[0] for t in got] if self.batch_size is None else got)
        if not in_worker() and self._place[0] == epoch:
            self._place[1] = 0

    def _batches(self, windows: Iterator[Any], pool: ThreadPoolExecutor) -> Iterator[list[Any]]:
        """Yields the batches of a lane. Each window is read after the rest of the last one, while batches of the last
        are used."""
        left = self._take(())
        window = self._take(next(windows, ()), left)
        while len(window[0]) > len(left[0]):
            n = len(window[0]) // self._size * self._size
            left = [t[n:] for t in window]
            ahead = pool.submit(lambda: self._take(next(windows, ()), left))
            yield from ([t[i:i + self._size] for t in window] for i in range(0, n, self._size))
            window = ahead.result()
        if len(left[0]):
            yield left

    def _windows(self, epoch: int, lane: int, mine: range) -> Iterator[Any]:
        """The rows of each window of a lane in their order, as far as they are of batches that are `mine`.
        The lane behind the last has the rest: ends of lanes that make no whole batch, and other blocks."""
        n, size, first, stop = self.lanes, self._block, self._rows.start, self._rows.stop

        def rows_of(blocks: Any) -> Any:
            rows = (blocks[..., np.newaxis] * size + np.arange(size)).ravel()
            return rows[(rows >= first) & (rows < stop)]

        blocks = np.arange(first // size, -(-stop // size))
        blocks = blocks[self._order(len(blocks), epoch)]
        # Several lanes are of one length, of whole blocks, and end with a whole batch.
        cut = (n > 1) & ((blocks * size < first) | ((blocks + 1) * size > stop))
        long = int((~cut).sum()) // n
        end = long * size - (long * size % self._size if n > 1 else 0)
        lanes, rest = np.split(blocks[np.argsort(cut, kind="stable")], [long * n])
        at, lanes = 0, lanes.reshape(-1, n)
        parts: Iterator[Any] = (rows_of(lanes[i:i + self._each, lane])[:end - i * size]
                                for i in range(0, long, self._each))
        if lane == n:
            ends = rows_of(lanes[end // size:].T).reshape(n, -1)[:, end % size:].ravel()
            at, parts = n * end, iter([ends, *(rows_of(rest[i:i + n]) for i in range(0, len(rest), n))])
        for g, rows in enumerate(parts):
            k = np.arange(at, at + len(rows)) // self._size * (1 if lane == n else n) + lane % n
            at += len(rows)
            wanted = (k >= mine.start) & (k < mine.stop) & ((k - mine.start) % mine.step == 0)
            if wanted.any():
                yield rows[self._order(len(rows), epoch, g, lane)][wanted]

    def _order(self, n: int, *key: int) -> Any:
        """Returns a permutation of n numbers: the same for one key on every machine, with every version of NumPy."""
        raw = np.random.Philox(np.random.SeedSequence((self.seed, *key))).random_raw(n)
        return np.argsort(raw, kind="stable") if self.shuffle else np.arange(n)


class DataLoader(torch.utils.data.DataLoader):  # type: ignore[misc]
    """torch's loader for an IterableDataset: the same batches in the same order, but a message of a worker has many.

    Each message costs what dozens of small batches cost to read. So batches share memory: of those that you keep
    for long, keep a `clone()`. collate_fn: of a batch, in the worker. options: all others that torch's loader
    takes with batch_size=None, such as pin_memory, persistent_workers and multiprocessing_context.
    """
    MESSAGE = 2 << 20  # bytes

    def __init__(self, data: IterableDataset, *, num_workers: int = 0,
                 collate_fn: Callable[[Any], Any] | None = None, **options: Any) -> None:
        if not isinstance(data, IterableDataset):
            raise TypeError(f"{data!r} is not a breccia.torch.IterableDataset: give it to torch's DataLoader")
        for name in "batch_size", "drop_last":
            if options.pop(name, None):
                raise TypeError(f"{name} is for the IterableDataset, which makes the batches")
        convert = collate_fn or torch.utils.data.default_convert
        together = max(1, min(self.MESSAGE // max(1, data._bytes), len(data) // (4 * max(1, num_workers))))
        self._data = data
        if num_workers:
            data = copy.copy(data)
            data._packs = True
        super().__init__(data, num_workers=num_workers, batch_size=together if num_workers else None,
                         collate_fn=partial(_pack, convert) if num_workers else convert, **options)

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[Any]:
        place, messages = self._data._place.tolist(), super().__iter__()
        return _unpack(messages, self.num_workers, self._data, place) if self.num_workers else messages


class _Pickler(pickle.Pickler):
    """Leaves out tensors, which go to shared memory side by side."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.tensors: list[tuple[int, Any]] = []
        self.end = 0

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not torch.Tensor or not obj.is_cpu or obj.requires_grad or obj.is_quantized or (
                obj.layout != torch.strided or obj.is_nested or not obj.is_contiguous()):
            return None
        at, self.end = self.end, self.end + -(-obj.nbytes // 64) * 64
        self.tensors.append((at, obj))
        return at, obj.nbytes, obj.dtype, obj.shape

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is torch.Tensor and obj.is_nested:  # torch needs memory to begin with the tensor's elements
            return torch.nested.nested_tensor, (list(obj.unbind()),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, raw: bytes, memory: Any) -> None:
        super().__init__(io.BytesIO(raw))
        self.memory = memory

    def persistent_load(self, pid: Any) -> Any:
        at, nbytes, dtype, shape = pid
        return self.memory[at:at + nbytes].view(dtype).view(shape) if nbytes else torch.empty(shape, dtype=dtype)


def _pack(convert: Callable[[Any], Any], batches: Iterable[Any]) -> tuple[bytes, Any]:
    pickler = _Pickler(file := io.BytesIO())
    pickler.dump([convert(batch) for batch in batches])
    memory = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(pickler.end))
    for at, tensor in pickler.tensors:
        memory[at:at + tensor.nbytes].view(tensor.dtype).view(tensor.shape).copy_(tensor)
    return file.getvalue(), memory


def _unpack(messages: Iterator[Any], workers: int, data: IterableDataset, place: list[int]) -> Iterator[Any]:
    """Batches in their order: they were dealt to the workers in turn. `data` is told how many it were since `place`,
    and its next epoch, if nobody names one, has all."""
    none, (epoch, given) = object(), place
    while some := [_Unpickler(*message).load() for message in islice(messages, workers)]:
        for batch in (b for b in chain.from_iterable(zip_longest(*some, fillvalue=none)) if b is not none):
            given += 1
            data._here = epoch, given
            yield batch
    if data._place.tolist() == place:
        data._place[1] = 0
