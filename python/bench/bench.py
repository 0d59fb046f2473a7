"""Benchmarks of the Python package beside other libraries: `make bench-python`.

Every figure of a table is from one run in which the sides take turns, each round in another order. Beside
each median is its ratio to breccia.Array's (the median of the pairwise ratios of the rounds, with their least
and greatest: above 1 is slower than breccia.Array). What is read is compared with the source first, untimed,
which also warms the page cache. Times are by the clock: run it on a machine that does nothing else.
"""
from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import epochs
import numpy as np
import sides as libraries
import versions as histories

BASE = libraries.Ours.name
LARGE = {"64 KiB": (16, 32, 32), "1 MiB": (64, 64, 64)}  # chunks of float32


class Table:
    """The rows of one benchmark: seconds for each side and round."""

    def __init__(self, title: str, unit: str, scale: Callable[[float], float]) -> None:
        self.title, self.unit, self.scale = title, unit, scale
        self.times: dict[str, list[float]] = {}

    def show(self, base: str = BASE) -> None:
        print(f"\n### {self.title}\n\n| | {self.unit} | time, {base}'s is 1 |\n| --- | --- | --- |")
        for name, times in sorted(self.times.items(), key=lambda item: statistics.median(item[1])):
            value = self.scale(statistics.median(times))
            middle = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
            ratio = "–"
            if base in self.times:
                each = [mine / ours for mine, ours in zip(times, self.times[base])]
                ratio = f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"
            print(f"| {name} | {middle} | {ratio} |", flush=True)


def take_turns(table: Table, work: dict[str, Callable[[], None]], rounds: int,
               before: Callable[[], None] = lambda: None) -> None:
    """Each round has every side once, and begins with another one. What is done before each is not timed."""
    names = list(work)
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            before()
            start = time.perf_counter()
            work[name]()
            table.times.setdefault(name, []).append(time.perf_counter() - start)


def expect(name: str, got: Any, wanted: Any) -> None:
    if not np.array_equal(np.asarray(got), wanted):
        sys.exit(f"bench: {name} gave other values than were written")


class Bench:
    def __init__(self, options: argparse.Namespace, folder: str) -> None:
        self.options, self.folder = options, folder
        self.rounds = options.rounds or (2 if options.quick else 7)
        self.sides: list[libraries.Side] = []
        for kind in libraries.SIDES:
            wanted = not options.sides or any(s in kind.name for s in options.sides)
            if not wanted and kind is not libraries.Ours:
                continue
            try:
                self.sides.append(kind(folder, options.codec))
            except ImportError as error:
                print(f"{kind.name} is left out: {error}")
        self.random = np.random.default_rng(options.seed)
        # A smooth field and a little noise, rounded to 14 bits of mantissa: zstd 3 makes it about 3 times
        # smaller.
        edge = 128 if options.quick else 320
        x, y, z = np.meshgrid(*[np.linspace(0, 6, edge, dtype="f4")] * 3, indexing="ij", sparse=True)
        noise = self.random.normal(0, 1e-4, (edge,) * 3)
        field = (np.sin(x * 2 + y) + np.cos(z * 3 - x) + noise).astype("f4")
        self.cube = (field.view("u4") & np.uint32(0xFFFFFE00)).view("f4")

    def made(self, key: str, data: Any, chunks: tuple[int, ...]) -> list[libraries.Side]:
        """The sides that could make an array of this data."""
        able = []
        for side in self.sides:
            try:
                side.make(key, data, chunks)
                able.append(side)
            except Exception as error:  # a peer's fault does not stop the others
                if isinstance(side, libraries.Ours):
                    raise
                print(f"{side.name} is left out of {key}: {error}")
        return able

    def read_whole(self) -> None:
        for size, chunks in LARGE.items():
            table = Table(f"Read {self.cube.nbytes >> 20} MiB of float32, chunks of {size}", "MB/s",
                          lambda s: self.cube.nbytes / s / 1e6)
            self.run(table, f"whole-{size[:2].strip()}", self.cube, chunks,
                     lambda side, a: lambda: side.all(a), self.cube)

    def run(self, table: Table, key: str, data: Any, chunks: tuple[int, ...], job: Any, wanted: Any) -> None:
        """Makes the array, checks each side's result of its job once, then times them."""
        able = self.made(key, data, chunks)
        opened = {side.name: side.open(key) for side in able}
        work = {side.name: job(side, opened[side.name]) for side in able}
        for name, call in work.items():
            expect(name, call(), wanted)
        take_turns(table, work, self.rounds)
        for side in able:
            side.close(opened[side.name])
        table.show()

    def write_whole(self) -> None:
        for size, chunks in LARGE.items():
            key = f"written-{size[:2].strip()}"
            what = f"Write {self.cube.nbytes >> 20} MiB of float32, chunks of {size}"
            tables = [Table(what + end, "MB/s", lambda s: self.cube.nbytes / s / 1e6)
                      for end in (", as each library leaves it", ", and have them on the disk")]
            able = self.made(key, self.cube, chunks)
            opened = {side.name: side.open(key, write=True) for side in able}

            def written(side: libraries.Side, data: Any, flush: bool) -> None:
                side.write(opened[side.name], data)
                if flush:
                    side.flush(key)

            for turn in range(2 * self.rounds):
                # Values that were never there: chunks that are stored already would be written no more.
                data = self.cube * np.float32(2.0 ** (turn + 1))
                work = {s.name: partial(written, s, data, turn % 2 > 0) for s in able}
                take_turns(tables[turn % 2], work, 1, os.sync)  # who syncs would wait for what others left
            for side in able:
                side.close(opened[side.name])
                again = side.open(key)
                expect(side.name, side.all(again), data)
                side.close(again)
            for table in tables:
                table.show()

    def slices(self) -> None:
        count = 20 if self.options.quick else 300
        corners = self.random.integers(0, self.cube.shape[0] - 8, (count, 3)).tolist()
        boxes = [tuple(slice(i, i + 8) for i in corner) for corner in corners]
        for size, chunks in LARGE.items():
            key = f"slices-{size[:2].strip()}"
            table = Table(f"Slices of 8 x 8 x 8 of float32, chunks of {size}", "µs each",
                          lambda s: s / count * 1e6)
            able = self.made(key, self.cube, chunks)
            opened = {side.name: side.open(key) for side in able}
            c, ours = libraries.CCall(self.folder, self.options.codec), able[0]
            c.folder = ours.folder
            opened[c.name] = c.open(key)
            plans: dict[str, Any] = {side.name: boxes for side in able}
            plans[c.name] = [c.prepare(opened[c.name], box) for box in boxes]
            for side in [*able, c]:
                for box, plan in zip(boxes, plans[side.name]):
                    expect(side.name, side.box(opened[side.name], plan), self.cube[box])

            def job(side: Any) -> Callable[[], None]:
                a, plan, read = opened[side.name], plans[side.name], side.box

                def call() -> None:
                    for box in plan:
                        read(a, box)
                return call

            take_turns(table, {side.name: job(side) for side in [*able, c]}, self.rounds)
            for side in [*able, c]:
                side.close(opened[side.name])
            table.show()
            both = [statistics.median(table.times[n]) / count * 1e6 for n in (BASE, c.name)]
            print(f"\nbreccia.Array takes {both[0] - both[1]:.1f} µs more than the C call.")

    def rows(self) -> None:
        data = self.cube.reshape(-1, 256)[: 1 << (13 if self.options.quick else 16)]
        rows = np.sort(self.random.choice(len(data), 64, replace=False))
        for size, length in ("64 KiB", 64), ("1 MiB", 1024):
            table = Table(f"64 random rows of 1 KiB, chunks of {size}", "ms", lambda s: s * 1e3)
            self.run(table, f"rows-{size[:2].strip()}", data, (length, 256),
                     lambda side, a: lambda: side.rows(a, rows), data[rows])

    def open_(self) -> None:
        """From a path to the first element, in a process that has imported the library."""
        data = self.cube[:64, :64, :64]
        table = Table("Open, and read the first element", "ms", lambda s: s * 1e3)
        able = self.made("open", data, (16, 32, 32))
        first = (slice(0, 1),) * 3

        def job(side: libraries.Side) -> Callable[[], Any]:
            def call() -> Any:
                opened = side.open("open")
                got = np.array(side.box(opened, first))
                side.close(opened)
                return got
            return call

        work = {side.name: job(side) for side in able}
        for name, call in work.items():
            expect(name, call(), data[first])
        take_turns(table, work, 4 * self.rounds)
        table.show()

        self.started(able)

    def started(self, able: list[libraries.Side]) -> None:
        """The same in a process that begins with it: what somebody waits for who starts a program."""
        table = Table("Start a process that imports NumPy and the library, open, and read the first element", "ms",
                      lambda s: s * 1e3)
        here = os.path.dirname(os.path.abspath(__file__))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])}
        code = "import sides, sys, numpy as np; s = getattr(sides, sys.argv[1])(*sys.argv[2:])\n" \
               "np.array(s.box(s.open('open'), (slice(0, 1),) * 3))"

        def job(side: libraries.Side) -> Callable[[], Any]:
            command = [sys.executable, "-c", code, type(side).__name__, self.folder, self.options.codec]
            return lambda: subprocess.run(command, env=env, check=True)

        work = {side.name: job(side) for side in able}
        for call in work.values():
            call()
        take_turns(table, work, 2 * self.rounds)
        table.show()

    def imports(self) -> None:
        """Beyond NumPy's, each in a process of its own."""
        modules = "breccia breccia.zarr zarr zarrs tensorstore icechunk h5py".split()
        able = [m for m in modules if importlib.util.find_spec(m.partition(".")[0])
                and (m != "breccia.zarr" or importlib.util.find_spec("zarr"))]
        table = Table("Import, beyond NumPy's", "ms", lambda s: s * 1e3)
        for turn in range(2 * self.rounds):
            for module in able[turn % len(able):] + able[:turn % len(able)]:
                code = "import time, numpy; t = time.perf_counter()\n" \
                       f"import {module}; print(time.perf_counter() - t)"
                said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
                if turn > 0:  # the first fills the caches
                    table.times.setdefault(module, []).append(float(said.stdout))
        table.show("breccia")

    def epoch(self) -> None:
        for table, work in epochs.tables(self, Table):
            take_turns(table, work, self.rounds)
            table.show(next(iter(work)))

    def versions(self) -> None:
        histories.show(self.folder, self.rounds)


GROUPS = {"whole": Bench.read_whole, "write": Bench.write_whole, "slices": Bench.slices, "rows": Bench.rows,
          "open": Bench.open_, "import": Bench.imports, "epoch": Bench.epoch, "versions": Bench.versions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="everything small: to see that it works")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each side (7; quick: 2)")
    parser.add_argument("--codec", choices=["zstd", "none"], default="zstd", help="zstd level 3, or no codec")
    parser.add_argument("--sides", action="append", help="only those with this in their names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", default="/var/tmp", help="where the files go (default: %(default)s)")
    options = parser.parse_args()
    if unknown := set(options.groups) - GROUPS.keys():
        parser.error(f"there is no group {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="breccia-bench-", dir=options.dir) as folder:
        bench = Bench(options, folder)
        known = {"zarr", "zarrs", "tensorstore", "icechunk", "h5py", "numpy", "torch"}
        versions = [f"{d.metadata['Name']} {d.version}" for d in importlib.metadata.distributions()
                    if d.metadata["Name"] in known]
        print(f"Python {platform.python_version()}, {', '.join(sorted(versions))}; {os.cpu_count()} cores; "
              f"codec {options.codec}; {bench.rounds} rounds")
        for name, group in GROUPS.items():
            if not options.groups or name in options.groups:
                group(bench)


if __name__ == "__main__":
    main()
