"""The rows of `make bench-peers`: what is measured, of which sides, and what each is asked."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LIBRARIES = ["zarr-breccia", "zarr", "fused", "zarrs", "tensorstore", "ocdbt", "icechunk", "h5py"]
READ = ["python", "c", *LIBRARIES]
WRITE = ["python", "c", "python-none", "c-none", *LIBRARIES]
GRIDS = ["python", "c", "ocdbt", "icechunk", "git", "dvc"]
HISTORY = ["python", "c", "icechunk", "git", "dvc"]
TEN = ["ten-breccia", "ten-delta", "ten-deeper", "ten-icechunk", "ten-git", "ten-dvc", "ten-zstd"]
CHUNKS = {"64 KiB": (16, 32, 32), "1 MiB": (64, 64, 64), "8 MiB": (128, 128, 128)}
CODECS = {"none": "no codec", "zstd": "zstd 3", "blosc": "blosc, zstd 1", "lz4": "blosc, lz4"}
Args = Callable[[int], dict[str, Any]]


@dataclass
class Store:
    """Data that the rows of one block share, and how they are stored. The sides' processes last as long."""

    data: str = ""  # a name in data.py; "": none
    chunks: tuple[int, ...] = ()
    codec: str = "zstd"
    shards: tuple[int, ...] | None = None


@dataclass
class Row:
    group: str
    block: str  # rows of one block follow each other, and share stores
    op: str
    title: str
    sides: list[str]
    store: Store = field(default_factory=Store)
    args: Args = lambda turn: {}
    base: str = "python"
    rounds: int = 0  # at most; 0: as many as there are
    times: int = 1  # how often it is done in one measurement
    moved: int = 0  # bytes that one measurement moves: MB/s are shown; 0: seconds are
    counts: str = ""  # what the row counts, beside seconds: "bytes"
    name: str = ""  # in its block; "": as op

    @property
    def id(self) -> str:
        return f"{self.group}/{self.block}/{self.name or self.op}".replace(" ", "-")


@dataclass
class Sizes:
    """How large all is."""

    mib: int
    quick: bool
    shapes: dict[str, tuple[int, ...]]  # of the data that are there
    items: dict[str, int]
    sources: str  # the folder of their files
    threads: int

    def bytes(self, data: str) -> int:
        return int(np.prod(self.shapes[data])) * self.items[data]

    def chunks(self, size: str, data: str = "smooth") -> tuple[int, ...]:
        if data == "embedding":
            return {"64 KiB": 64, "1 MiB": 1024}[size], 256
        z, y, x = CHUNKS[size]
        item = self.items[data]
        return tuple(min(c, n) for c, n in zip((z, y * (2 if item == 1 else 1), x * (2 if item < 4 else 1)),
                                               self.shapes[data]))


def whole(s: Sizes, group: str, block: str, store: Store, sides: list[str], what: str) -> Iterator[Row]:
    """Three rounds, but for zstd over the smooth field: all of this would take too long."""
    rounds = 0 if group == "whole" and store.codec == "zstd" else 3
    moved = s.bytes(store.data)
    for op, title, sides in (("write", "write", [*sides, "python-none", "c-none"]), ("read", "read, warm", sides),
                             ("read-cold", "open and read, cold", sides)):
        yield Row(group, block, op, f"{title}, {what}", sides, store, rounds=rounds, moved=moved)


def whole_rows(s: Sizes) -> Iterator[Row]:
    for size in CHUNKS:
        for codec, said in CODECS.items():
            if s.quick and codec != "zstd" and size != "1 MiB":
                continue  # no other code runs
            store = Store("smooth", s.chunks(size), codec)
            yield from whole(s, "whole", f"{size} {codec}", store, [*READ, "flat"], f"{said}, chunks of {size}")
    store = Store("smooth", s.chunks("64 KiB"), "zstd", s.chunks("8 MiB"))
    yield from whole(s, "whole", "shards", store, READ, "zstd 3, chunks of 64 KiB in shards of 8 MiB")


KINDS = {"images": "images, int16", "labels": "labels, uint8", "noise": "noise, uint8",
         "embedding": "embeddings, float32", "winds": "winds of ERA-Interim, float32",
         "heights": "heights of ERA-Interim, packed int16", "digits": "MNIST, uint8"}


def data_rows(s: Sizes) -> Iterator[Row]:
    for data, said in KINDS.items():
        if data in s.shapes:
            real = {"winds": (1, 61, 240), "heights": (1, 61, 240), "digits": (83, 28, 28)}
            chunks = real[data] if data in real else s.chunks("1 MiB", data)
            yield from whole(s, "data", data, Store(data, chunks), READ, f"{said}, zstd 3")


def update_rows(s: Sizes) -> Iterator[Row]:
    for size in ("64 KiB", "1 MiB"):
        chunks, shape = s.chunks(size), s.shapes["smooth"]
        grid = tuple(n // c for n, c in zip(shape, chunks))
        few = max(1, int(np.prod(grid)) // 100)

        def changed(turn: int, chunks: Any = chunks, shape: Any = shape, grid: Any = grid, few: int = few) -> Any:
            at = np.random.default_rng(turn).choice(int(np.prod(grid)), few, replace=False)
            corners = [i * c for i, c in zip(np.unravel_index(at, grid), chunks)]
            return {"changed": np.ravel_multi_index(tuple(corners), shape).tolist()}

        store, moved = Store("smooth", chunks), s.bytes("smooth")
        yield Row("update", size, "rewrite-same", f"write the same again, chunks of {size}", WRITE, store, moved=moved)
        yield Row("update", size, "rewrite-part", f"write again with 1 % of the chunks changed, chunks of {size}",
                  WRITE, store, changed, moved=moved)


def part_rows(s: Sizes) -> Iterator[Row]:
    random = np.random.default_rng(6)
    shape = s.shapes["smooth"]
    for size, shards in (("64 KiB", None), ("1 MiB", None), ("64 KiB", s.chunks("8 MiB"))):
        chunks = s.chunks(size)
        store, block = Store("smooth", chunks, "zstd", shards), "shards" if shards else size
        what = f"chunks of {size}" + " in shards of 8 MiB" * bool(shards)
        edge = tuple(max(1, round(n * 0.01 ** (1 / 3))) for n in shape)
        for op, title, count, times in (("chunk", "one random chunk", chunks, 100),
                                        ("slice", "a slice of 8 x 8 x 8", (8, 8, 8), 200),
                                        ("box", "a box of 1 %", edge, 10)):
            step = chunks if op == "chunk" else (1, 1, 1)
            times = 5 if s.quick else times
            boxes = [[int(random.integers(0, (n - c) // k + 1)) * k for n, c, k in zip(shape, count, step)]
                     for _ in range(times)]
            yield Row("part", block, op, f"{title}, {what}", READ, store,
                      lambda turn, b=boxes, c=count: {"boxes": b, "count": list(c)}, times=times)
    for size in ("64 KiB", "1 MiB"):
        rows = np.sort(random.choice(s.shapes["embedding"][0], 64, replace=False)).tolist()
        yield Row("part", f"rows {size}", "rows", f"64 random rows of 1 KiB, chunks of {size}", READ,
                  Store("embedding", s.chunks(size, "embedding")), lambda turn, r=rows: {"rows": r})


def open_rows(s: Sizes) -> Iterator[Row]:
    store, times = Store("smooth", s.chunks("64 KiB")), 2 if s.quick else 20
    yield Row("open", "open", "open", "open, and read the first element, warm", READ, store,
              lambda turn: {"times": times}, times=times)
    yield Row("open", "open", "open-cold", "the same, cold", READ, store, lambda turn: {"times": 1})
    others = [side for side in READ if side != "c"]
    yield Row("open", "open", "start", "start a process, import, open, and read the first element",
              [*others, "command"], store)
    yield Row("open", "open", "import-module", "import, beyond NumPy's", others, store)


def command_rows(s: Sizes) -> Iterator[Row]:
    for codec in ("zstd", "blosc"):
        store, moved = Store("smooth", s.chunks("1 MiB"), codec), s.bytes("smooth")
        source = os.path.join(s.sources, "smooth")
        for op, what in (("import", "breccia import of a .npy file"), ("export", "breccia read -o of a .npy file")):
            yield Row("command", codec, op, f"{what}, {CODECS[codec]}, chunks of 1 MiB", ["command", "flat"], store,
                      lambda turn: {"source": source}, base="command", moved=moved)


def grid_args(s: Sizes, side: int, touch: int, seed: int = 0, **more: Any) -> Args:
    """Chunks in random order; a turn never changes those of the turn before."""

    def args(turn: int) -> dict[str, Any]:
        random = np.random.default_rng([seed, turn])
        both = random.choice(side * side, 2 * touch, replace=False)
        return {"side": side, "touch": both[:touch].tolist(), "theirs": both[touch:].tolist(),
                "version": turn + 2 + seed, "branch": f"b{seed}-{turn}", **more}
    return args


def commit_rows(s: Sizes) -> Iterator[Row]:
    side = 32 if s.quick else 1000
    for seed, count in enumerate((1, 100, 10_000), 1):
        few = min(count, 100) if s.quick else count
        yield Row("commit", "million", "commit", f"{few:,} of {side * side:,} chunks written and committed", GRIDS,
                  args=grid_args(s, side, few, 100 * seed), name=f"commit-{count}")
    yield Row("commit", "million", "branch", f"a branch, {side * side:,} chunks", HISTORY,
              args=grid_args(s, side, 10, 1000))
    yield Row("commit", "million", "switch", "switch to a branch with 10 other chunks, and read one", HISTORY,
              args=grid_args(s, side, 10, 2000))


def merge_rows(s: Sizes) -> Iterator[Row]:
    side = 32 if s.quick else 1000
    yield Row("merge", "merge", "commit", f"10 of {side * side:,} chunks written and committed", HISTORY,
              args=grid_args(s, side, 10, 3000), rounds=1)
    yield Row("merge", "merge", "diff", f"diff, 10 of {side * side:,} chunks", HISTORY,
              args=grid_args(s, side, 10, 3000, differences=10))
    yield Row("merge", "merge", "merge", f"merge, 10 of {side * side:,} chunks changed on either side", HISTORY,
              args=grid_args(s, side, 10, 4000))


def history_rows(s: Sizes) -> Iterator[Row]:
    count = 20 if s.quick else 10_000
    most = {key: min(count, n) for key, n in (("icechunk", 500), ("git", 500), ("dvc", 2 if s.quick else 5))}
    side = 32

    def args(turn: int) -> dict[str, Any]:
        touch = np.random.default_rng(7).integers(0, side * side, count).tolist()
        return {"side": side, "touch": touch, "version": 2, "most": most, "commits": count + 1}

    yield Row("history", "history", "commits", f"{count:,} commits of one chunk of {side * side:,}, each", HISTORY,
              args=args, rounds=1, times=count)
    yield Row("history", "history", "log", "log of all of them, each", HISTORY, args=args, rounds=5, times=count + 1)


def care_rows(s: Sizes) -> Iterator[Row]:
    mib = 16 if s.quick else 1024
    for op, title in (("gc", "gc, an eighth is rubbish"), ("fsck", "fsck")):
        yield Row("care", "care", op, f"{title}, {mib} MiB", HISTORY, args=lambda turn: {"mib": mib}, rounds=1)


def ten_rows(s: Sizes) -> Iterator[Row]:
    data = "winds" if "winds" in s.shapes else "smooth"
    args = {"first": os.path.join(s.sources, "first.npy"), "count": 2 if s.quick else 10, "times": 1 if s.quick else 5}
    what = "winds" if data == "winds" else "smooth field"
    yield Row("ten", "ten", "ten", f"{args['count']} versions of the {what}, 1 % of the elements changed in each", TEN,
              Store("", (1, 61, 240)), lambda turn: args, "ten-breccia", rounds=1, counts="bytes")


def epoch_rows(s: Sizes) -> Iterator[Row]:
    if "digits" in s.shapes:
        count = 2000 if s.quick else 60_000
        for workers in (0, 1 if s.quick else 4):
            title = f"a shuffled epoch of {count:,} images, {workers or 'no'} workers, each image"
            yield Row("epoch", "epoch", "epoch", title, ["python", "zarr", "zarrs", "tensorstore", "h5py", "mapped"],
                      Store("digits", (83, 28, 28)), lambda turn, w=workers: {"workers": w, "count": count},
                      times=count, name=f"epoch-{workers}")


GROUPS: dict[str, tuple[str, Callable[[Sizes], Iterator[Row]]]] = {
    "whole": ("Whole arrays", whole_rows),
    "data": ("Whole arrays of other data", data_rows),
    "update": ("Writing again", update_rows),
    "part": ("Parts", part_rows),
    "open": ("To the first element", open_rows),
    "command": ("The command, and what a flat file takes", command_rows),
    "commit": ("Commits and branches", commit_rows),
    "history": ("Many commits", history_rows),
    "merge": ("Diff and merge", merge_rows),
    "care": ("gc and fsck", care_rows),
    "ten": ("Bytes of versions", ten_rows),
    "epoch": ("Training", epoch_rows),
}
