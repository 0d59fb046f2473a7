"""One side of `make bench-peers`, in a process of its own: `worker.py SIDE`.

Each line of standard input is a request of peers.py, a JSON object, and each answer is a line. "do" is load (what the
side stores, and how), prepare, run or check a row, or forget what is open. Only run measures, and only what lies
between Meter.on and Meter.off: imports, data and checks do not count. An answer is what was measured;
{"cannot": why}, where the library lacks something; {"absent": why}, where it is not installed; or {"error": what}.
"""
from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from contextlib import suppress
from typing import Any

import epochs
import grids
import numpy as np
import sides
import versions
from sides import Cannot, Job, Program, Side

SIDES: dict[str, type[Side]] = {kind.key: kind for kind in (
    sides.Ours, sides.OursUnread, sides.Command, sides.ZarrOurs, sides.ZarrDefault, sides.ZarrFused, sides.ZarrRust,
    sides.TensorStore, sides.Ocdbt, sides.Icechunk, sides.H5py, sides.Mapped, grids.Git, grids.Dvc, *versions.SIDES)}


def processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def resident(field: str) -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    raise KeyError(field)


class Meter:
    """Seconds by the clock and of the processor, and how much more memory was resident than after load."""

    def __init__(self, side: Side) -> None:
        self.side, self.base = side, resident("VmRSS")
        self.took: dict[str, float] = {}

    def on(self) -> None:
        with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak counts from here on
        if isinstance(self.side, Program):
            self.side.wall, self.side.peak = 0.0, 0
        self.cpu, self.start = processor(), time.perf_counter()

    def off(self, sync: str | None = None, programs: bool = False) -> None:
        """Ends the measurement; then `sync` names the store to write to the disk. `programs`: only the seconds of
        whole programs count."""
        wall, cpu = time.perf_counter() - self.start, processor() - self.cpu
        peak = resident("VmHWM") - self.base
        if isinstance(self.side, Program):
            wall, peak = self.side.wall if programs else wall, max(self.side.peak, 0)
        self.took = {"wall": wall, "cpu": cpu, "peak": max(peak, 0)}
        if sync is not None:
            start = time.perf_counter()
            self.side.sync(sync)
            self.took["synced"] = wall + time.perf_counter() - start


def same(got: Any, wanted: Any) -> None:
    """Equal to the bit: NaN and -0.0 too."""
    got = np.ascontiguousarray(got)
    if got.dtype != wanted.dtype or got.shape != wanted.shape or not np.array_equal(
            got.reshape(-1).view("u1"), np.ascontiguousarray(wanted).reshape(-1).view("u1")):
        raise RuntimeError("other values than were written")


class Worker:
    def __init__(self, key: str) -> None:
        self.kind = SIDES[key]
        self.opened: Any = None
        self.grid: Any = None
        self.made: set[str] = set()
        self.loaders: dict[Any, Any] = {}

    def load(self, q: dict[str, Any]) -> None:
        self.made, self.loaders = set(), {}
        shapes = {name: tuple(q[name]) if q[name] else None for name in ("shape", "chunks", "shards")}
        self.job = Job(q["folder"], shapes["shape"] or (), shapes["chunks"] or (), shapes["shards"], q["dtype"],
                       q["codec"], q["threads"])
        self.side = self.kind(self.job)
        self.data: Any = np.fromfile(q["data"], q["dtype"]).reshape(self.job.shape) if q["data"] else None
        self.meter = Meter(self.side)

    def forget(self, _: dict[str, Any]) -> None:
        if self.opened is not None:
            self.side.close(self.opened)
        self.opened = self.grid = None

    # ---- whole arrays ----

    def store(self, q: dict[str, Any]) -> None:
        if q["name"] not in self.made:
            self.side.make(q["name"], self.data)
            self.made.add(q["name"])

    def prepare(self, q: dict[str, Any]) -> None:
        if q["row"] in GRID_ROWS:
            self.prepare_grid(q)
        elif q["row"] in WHOLE_ROWS:
            self.forget(q)
            self.store(q)
            self.opened = self.side.open(q["name"], write=q["row"].startswith("rewrite"))
        elif q["row"] in ("start", "export"):
            self.store(q)

    def run(self, q: dict[str, Any]) -> dict[str, float]:
        getattr(self, "run_" + q["row"].replace("-", "_"))(q)
        return self.meter.took

    def check(self, q: dict[str, Any]) -> None:
        """Reads what was written, by the side itself."""
        if q["row"] in ("write", "rewrite-same", "rewrite-part", "import"):
            self.forget(q)
            if isinstance(self.side, sides.Command):
                self.side.export(q["name"], out := self.side.path("check") + ".npy")
                same(np.load(out), self.data)
                return
            opened = self.side.open(q["name"])
            same(self.side.all(opened), self.data)
            self.side.close(opened)

    def run_write(self, q: dict[str, Any]) -> None:
        self.meter.on()
        self.side.make(q["name"], self.data)
        self.meter.off(sync=q["name"])

    def run_read(self, q: dict[str, Any]) -> None:
        self.meter.on()
        got = self.side.all(self.opened)
        self.meter.off()
        same(got, self.data)

    def run_read_cold(self, q: dict[str, Any]) -> None:
        self.side.close(self.opened)
        self.opened = None
        self.side.cool(q["name"])
        self.meter.on()
        self.opened = self.side.open(q["name"])
        got = self.side.all(self.opened)
        self.meter.off()
        same(got, self.data)

    def run_rewrite_same(self, q: dict[str, Any]) -> None:
        if changed := q.get("changed"):
            self.data.reshape(-1)[changed] += 1
        self.meter.on()
        self.side.write(self.opened, self.data)
        self.meter.off(sync=q["name"])

    run_rewrite_part = run_rewrite_same

    # ---- parts ----

    def run_slice(self, q: dict[str, Any]) -> None:
        boxes = [tuple(slice(at, at + n) for at, n in zip(corner, q["count"])) for corner in q["boxes"]]
        read, opened = self.side.box, self.opened
        self.meter.on()
        for box in boxes:
            read(opened, box)
        self.meter.off()
        for box in boxes:
            same(read(opened, box), self.data[box])

    run_chunk = run_box = run_slice

    def run_rows(self, q: dict[str, Any]) -> None:
        rows = np.array(q["rows"])
        self.meter.on()
        got = self.side.rows(self.opened, rows)
        self.meter.off()
        same(got, self.data[rows])

    def run_open(self, q: dict[str, Any]) -> None:
        first = (slice(0, 1),) * len(self.job.shape)
        if q["row"] == "open-cold":
            self.side.close(self.opened)
            self.opened = None
            self.side.cool(q["name"])
        self.meter.on()
        for _ in range(q["times"]):
            opened = self.side.open(q["name"])
            got = np.array(self.side.box(opened, first))
            self.side.close(opened)
        self.meter.off()
        same(got, self.data[first])
        if q["row"] == "open-cold":
            self.opened = self.side.open(q["name"])

    run_open_cold = run_open

    # ---- whole processes ----

    def program(self, code: str, *args: str) -> bytes:
        """Another process of Python, measured by `bench --child`; its answer is the last line that it prints."""
        self.runner = Program(self.job)
        return self.runner.run(sys.executable, "-B", "-c", code, os.path.dirname(os.path.abspath(__file__)), *args)

    def took_program(self, wall: float, cpu: float) -> None:
        self.meter.took = {"wall": wall, "cpu": cpu, "peak": self.runner.peak}

    def run_start(self, q: dict[str, Any]) -> None:
        """From nothing to the first element: what somebody waits for who starts a program."""
        first = (slice(0, 1),) * len(self.job.shape)
        if isinstance(self.side, sides.Command):
            self.meter.on()
            got = self.side.first(q["name"])
            self.meter.off(programs=True)
            same(got.reshape(self.data[first].shape), self.data[first])
            return
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import json, numpy as np, sides\n"
                "job = json.loads(sys.argv[2])\n"
                "s = getattr(sides, sys.argv[3])(sides.Job(**job))\n"
                "sys.stdout.buffer.write(np.array(s.box(s.open(sys.argv[4]), (slice(0, 1),) * len(job['shape']))))")
        cpu = processor()
        got = self.program(code, json.dumps(vars(self.job)), type(self.side).__name__, q["name"])
        self.took_program(self.runner.wall, processor() - cpu)
        same(np.frombuffer(got, self.job.dtype).reshape(self.data[first].shape), self.data[first])

    def run_import_module(self, q: dict[str, Any]) -> None:
        """Beyond NumPy's, which is imported before."""
        if isinstance(self.side, Program):
            raise Cannot("a program imports nothing")
        cpu = processor()
        modules = ", ".join(self.side.needs)
        code = f"import numpy, time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
        said = self.program(code)
        self.took_program(float(said), processor() - cpu)

    def run_import(self, q: dict[str, Any]) -> None:
        if not isinstance(self.side, sides.Command):
            raise Cannot("not a program")
        self.meter.on()
        self.side.import_(q["name"], q["source"])
        self.meter.off(programs=True)
        self.meter.took["synced"] = self.meter.took["wall"]

    def run_export(self, q: dict[str, Any]) -> None:
        if not isinstance(self.side, sides.Command):
            raise Cannot("not a program")
        self.meter.on()
        self.side.export(q["name"], q["dest"])
        self.meter.off(programs=True)
        same(np.load(q["dest"]), self.data)

    # ---- versions ----

    def prepare_grid(self, q: dict[str, Any]) -> None:
        if self.grid is not None:
            return
        for kind in type(self.side).__mro__:
            if kind in grids.GRIDS:
                self.grid = grids.GRIDS[kind](self.side)
                break
        else:
            raise Cannot("it has no versions")
        if q["row"] in ("gc", "fsck"):
            self.grid.care(q["name"], q["mib"])
            self.side.sync(q["name"])
            return
        side = min(q["side"], self.grid.sides.get(q["row"], q["side"]))
        self.grid.make(f"{q['name']}-{side}", side)
        self.grid.name = f"{q['name']}-{side}"
        self.side.sync(self.grid.name)

    def numbers(self, q: dict[str, Any], name: str = "touch") -> list[int]:
        """Returns the chunks of a request, and of a smaller grid as many others."""
        wanted, there = q[name], self.grid.side**2
        if there == q["side"] ** 2:
            return list(wanted)
        if len(wanted) > there // 2:
            raise Cannot(f"its grid of {there:,} chunks is too small")
        return [int(n) for n in np.random.default_rng(wanted[0]).choice(there, len(wanted), replace=False)]

    def noted(self) -> None:
        """The page says which sides have smaller grids."""
        self.meter.took["chunks"] = self.grid.side**2

    def run_commit(self, q: dict[str, Any]) -> None:
        numbers = self.numbers(q)
        self.meter.on()
        self.grid.commit(numbers, q["version"])
        self.meter.off(sync=self.grid.name)
        some = numbers[:: max(1, len(numbers) // 20)]
        same(self.grid.read(some), grids.values(some, q["version"]))
        self.noted()

    def run_commits(self, q: dict[str, Any]) -> None:
        numbers = [n % self.grid.side**2 for n in q["touch"][: self.most(q)]]
        self.meter.on()
        for i, number in enumerate(numbers):
            self.grid.commit([number], q["version"] + i)
        self.meter.off(sync=self.grid.name)
        same(self.grid.read(numbers[-1:]), grids.values(numbers[-1:], q["version"] + len(numbers) - 1))
        self.noted()
        self.meter.took["count"] = len(numbers)

    def most(self, q: dict[str, Any]) -> int:
        return int(q["most"].get(self.kind.key, len(q.get("touch", ())) or q.get("commits", 0)))

    def run_log(self, q: dict[str, Any]) -> None:
        self.meter.on()
        found = self.grid.log()
        self.meter.off()
        wanted = min(q["commits"], self.most(q) + 1)
        if found != wanted:
            raise RuntimeError(f"a log of {found} commits, not {wanted}")
        self.meter.took["count"] = found

    def run_branch(self, q: dict[str, Any]) -> None:
        self.meter.on()
        self.grid.branch(q["branch"])
        self.meter.off(sync=self.grid.name)
        self.noted()

    def run_switch(self, q: dict[str, Any]) -> None:
        numbers = self.numbers(q)
        self.grid.branch(q["branch"])
        self.grid.commit(numbers, q["version"], q["branch"])
        self.meter.on()
        got = self.grid.switch(q["branch"], numbers[0])
        self.meter.off()
        same(np.asarray(got).reshape(1, -1), grids.values(numbers[:1], q["version"]))
        self.grid.switch("main", numbers[0])
        self.noted()

    def run_diff(self, q: dict[str, Any]) -> None:
        self.meter.on()
        found = self.grid.diff()
        self.meter.off()
        if found != q["differences"]:
            raise RuntimeError(f"{found} differences, not {q['differences']}")
        self.noted()

    def run_merge(self, q: dict[str, Any]) -> None:
        ours, theirs = self.numbers(q), self.numbers(q, "theirs")
        if type(self.grid).merge in (grids.Grid.merge, grids.DvcGrid.merge):
            self.grid.merge(q["branch"])  # says why not
        self.grid.branch(q["branch"])
        self.grid.commit(theirs, q["version"], q["branch"])
        self.grid.commit(ours, q["version"])
        self.meter.on()
        self.grid.merge(q["branch"])
        self.meter.off(sync=self.grid.name)
        same(self.grid.read(ours + theirs), grids.values(ours + theirs, q["version"]))
        self.noted()

    def run_gc(self, q: dict[str, Any]) -> None:
        self.meter.on()
        self.grid.gc()
        self.meter.off()

    def run_fsck(self, q: dict[str, Any]) -> None:
        self.meter.on()
        self.grid.fsck()
        self.meter.off()

    # ---- training ----

    def run_epoch(self, q: dict[str, Any]) -> None:
        if ("images", q["workers"]) not in self.loaders:
            if "images" not in self.made:
                images = epochs.numbered(self.data, q["count"])
                self.job.shape = images.shape
                self.side.make("images", images)
                self.made.add("images")
            made = self.loaders["images", q["workers"]] = epochs.loader(self.side, "images", q["count"], q["workers"])
            epochs.check(made, q["count"])  # which starts the workers, too
        loader = self.loaders["images", q["workers"]]
        self.meter.on()
        for _ in loader:
            pass
        self.meter.off()

    # ---- ten versions ----

    def run_ten(self, q: dict[str, Any]) -> None:
        """Writes all versions, and compares each with what is read: the answer has bytes, and seconds to write and
        to read the newest and the oldest."""
        if not isinstance(self.side, versions.History):
            raise Cannot("it has no versions")
        self.meter.took = versions.measure(self.side, q, self.meter, same)


WHOLE_ROWS = {"read", "read-cold", "rewrite-same", "rewrite-part", "chunk", "slice", "box", "rows", "open", "open-cold"}
GRID_ROWS = {"commit", "commits", "log", "branch", "switch", "diff", "merge", "gc", "fsck"}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        q = json.loads(line)
        try:
            answer = getattr(worker, q["do"])(q) or {}
        except Cannot as error:
            answer = {"cannot": str(error)}
        except ImportError as error:
            answer = {"absent": str(error)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    worker.forget({})


if __name__ == "__main__":
    main()
