"""Measures breccia beside other libraries and programs: `make bench-peers`.

Each side of a block of rows is a process of its own (worker.py, or `build/bench --worker` in C). The sides take turns:
a round has every side once, and begins with another one. Results go to a JSON file, row by row, so that groups can be
measured one after the other; report.py makes a page of it. A side that gives other values than were written fails
its row, and the exit status is 1.
"""
from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import data as sources
import numpy as np
import report
import stats
from rows import GROUPS, Row, Sizes, Store
from sides import Job

HERE = os.path.dirname(os.path.abspath(__file__))
C_SIDES: dict[str, dict[str, str]] = {"c": {}, "c-none": {"readback": "none"}, "flat": {"flat": ""}}


class Worker:
    """A process of one side."""

    def __init__(self, key: str, c_program: str, c_env: dict[str, str]) -> None:
        self.key, self.folder, self.setup, self.why = key, "", dict[str, Any](), ""  # why: the side is not there
        if key in C_SIDES:
            command, env = [c_program, "--worker"], {**os.environ, **c_env}
        else:
            command, env = [sys.executable, "-B", os.path.join(HERE, "worker.py"), key], dict(os.environ)
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.loaded = False

    def move(self, folder: str, setup: dict[str, Any]) -> None:
        """The process goes on with another block."""
        self.folder, self.setup, self.loaded, self.why = folder, setup, False, ""

    def ask(self, **q: Any) -> dict[str, Any]:
        if not self.loaded:
            self.loaded = True
            self.ask(**self.setup)
        if self.why:
            return {"absent": self.why}
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(q) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line.strip() else {"error": "the process ended"}
        if "absent" in answer:
            self.why = answer["absent"]
        return answer

    def end(self) -> None:
        self.process.communicate()


def empty(folder: str, name: str) -> None:
    """Gives the room of a store back. Its files stay, empty: ext4 makes files slowly after many were removed."""
    for at in os.listdir(folder):
        if at.partition(".")[0] == name:
            top = os.path.join(folder, at)
            for path in [top] if os.path.isfile(top) else [os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs]:
                os.truncate(path, 0)


class Bench:
    def __init__(self, options: argparse.Namespace, folder: str) -> None:
        self.options, self.folder, self.failed = options, folder, list[str]()
        self.kept: dict[str, Worker] = {}
        self.absent: set[tuple[str, str]] = set()
        self.c_env = {"LD_LIBRARY_PATH": options.libraries} if options.libraries else {}
        made = os.path.join(folder, "sources")
        os.mkdir(made)
        self.dtypes: dict[str, str] = {}
        self.sizes = Sizes(options.size, options.quick, {}, {}, made, options.threads)
        self.wanted = [(key, title, [row for row in rows(self.probe()) if self.is_wanted(row)])
                       for key, (title, rows) in GROUPS.items()]

    def is_wanted(self, row: Row) -> bool:
        """Words name groups, or begin names of rows."""
        return not self.options.rows or any(row.group == word or "/" in word and row.id.startswith(word)
                                            for word in self.options.rows)

    def probe(self) -> Sizes:
        """The sizes of all data, which are made when they are needed first."""
        if not self.sizes.shapes:
            mib = self.sizes.mib
            for name, item in (("smooth", 4), ("images", 2), ("labels", 1), ("noise", 1)):
                self.know(name, sources.shape(mib, item), item, {4: "float32", 2: "int16", 1: "uint8"}[item])
            self.know("embedding", (mib * 1024, 256), 4, "float32")
            for name in sources.SHARED:
                try:
                    found = sources.SHARED[name](self.options.shared)
                except OSError:
                    print(f"{name} is left out: {self.options.shared}/data does not have it (SHARED)")
                    continue
                self.know(name, found.shape, found.dtype.itemsize, found.dtype.name)
        return self.sizes

    def know(self, name: str, shape: tuple[int, ...], item: int, dtype: str) -> None:
        self.sizes.shapes[name], self.sizes.items[name], self.dtypes[name] = shape, item, dtype

    def source(self, name: str) -> None:
        path = os.path.join(self.sizes.sources, name)
        if name and not os.path.exists(path):
            made = (sources.SEEDED[name](self.sizes.mib) if name in sources.SEEDED
                    else sources.SHARED[name](self.options.shared))
            np.ascontiguousarray(made).tofile(path)
            if name == "smooth":
                np.save(path + ".npy", made)

    def first_version(self) -> None:
        """The first of the ten versions."""
        path = os.path.join(self.sizes.sources, "first.npy")
        if not os.path.exists(path):
            if "winds" in self.sizes.shapes:
                made = sources.winds(self.options.shared)
            else:
                y, x = np.meshgrid(np.linspace(0, 5, 241), np.linspace(0, 9, 480), indexing="ij")
                made = np.stack([np.sin(x + i) * np.cos(y + i % 3) for i in range(6)]).astype("f4")
            np.save(path, made)

    # ---- one row ----

    def sides(self, row: Row) -> list[str]:
        chosen = self.options.peers
        return [key for key in row.sides if not chosen or key == row.base or key in chosen]

    def run_block(self, rows: list[Row], results: dict[str, Any]) -> None:
        """The rows of a block share their sides' processes and stores."""
        workers: dict[str, Worker] = {}
        block = os.path.join(self.folder, f"{rows[0].group}-{rows[0].block}".replace(" ", "-"))
        self.source(rows[0].store.data)
        if rows[0].group == "ten":
            self.first_version()
        os.mkdir(block)
        for row in rows:
            for key in self.sides(row):
                if key not in workers:
                    workers[key] = self.worker(key, os.path.join(block, key), row.store)
            results[row.id] = self.run_row(row, {key: workers[key] for key in self.sides(row)})
        for worker in workers.values():
            worker.ask(do="forget")
            if not self.options.quick:
                worker.end()
        for key in workers:
            for name in {at.partition(".")[0] for at in os.listdir(os.path.join(block, key))}:
                empty(os.path.join(block, key), name)

    def worker(self, key: str, folder: str, store: Store) -> Worker:
        """A process for a block; where all is quick, for all blocks."""
        os.makedirs(folder)
        made = self.kept.get(key) or Worker(key, self.options.bench, self.c_env)
        if self.options.quick:
            self.kept[key] = made
        shape, sizes = self.sizes.shapes.get(store.data, ()), self.sizes
        setup: dict[str, Any] = {
            "do": "load", "folder": folder, "data": os.path.join(sizes.sources, store.data) if store.data else "",
            "shape": shape, "chunks": store.chunks, "shards": store.shards, "codec": store.codec,
            "dtype": self.dtypes.get(store.data, "float32"), "threads": self.options.threads}
        if key in C_SIDES:
            job = Job(folder, shape, store.chunks, store.shards, setup["dtype"], store.codec, self.options.threads)
            setup |= {"item": job.item, "codecs": json.dumps(job.codecs()), "readback": "all", **C_SIDES[key]}
            if "flat" in setup:
                setup["flat"] = store.codec
        made.move(folder, setup)
        return made

    def run_row(self, row: Row, workers: dict[str, Worker]) -> dict[str, Any]:
        found: dict[str, Any] = {key: {} for key in workers}
        rounds = min(self.options.rounds, row.rounds or self.options.rounds)
        news = row.op in ("write", "import")

        def prepare(key: str) -> None:
            self.note(row, key, found[key], workers[key].ask(do="prepare", row=row.op, name="s", **row.args(0)))

        def run(key: str, turn: int) -> None:
            if not self.options.quick and row.op not in ("read", "slice", "chunk", "rows", "open", "log", "diff"):
                os.sync()  # who syncs would wait for what others left
            more = {"name": f"w{turn}" if news else "s", **row.args(turn)}
            more["dest"] = os.path.join(workers[key].folder, "out.npy")
            if key != "flat" and "source" in more:
                more["source"] += ".npy"
            self.note(row, key, found[key], workers[key].ask(do="run", row=row.op, **more))
            if turn == rounds - 1 and "wall" in found[key]:
                self.note(row, key, found[key], workers[key].ask(do="check", row=row.op, **more))
            if news:
                empty(workers[key].folder, more["name"])

        self.each(prepare, list(workers))
        for turn in range(rounds):
            able = [key for key in workers if not found[key].keys() & {"cannot", "absent", "error"}]
            start = turn % max(1, len(able))
            self.each(lambda key, turn=turn: run(key, turn), able[start:] + able[:start])
        result = {"title": row.title, "group": row.group, "base": row.base, "moved": row.moved, "times": row.times,
                  "counts": row.counts, "sides": found, "rounds": rounds}
        print(self.line(result), flush=True)
        return result

    def each(self, call: Any, keys: list[str]) -> None:
        """Calls for one side after the other; where all is quick and nothing is measured, for all at once."""
        if self.options.quick:
            with ThreadPoolExecutor(max(1, len(keys))) as pool:
                list(pool.map(call, keys))
        else:
            for key in keys:
                call(key)

    def note(self, row: Row, key: str, found: dict[str, Any], answer: dict[str, Any]) -> None:
        for word in ("cannot", "absent", "error"):
            if word in answer:
                found[word] = answer[word]
        if "absent" in answer and (key, answer["absent"]) not in self.absent:
            self.absent.add((key, answer["absent"]))
            print(f"  {key} is left out: {answer['absent']}", flush=True)
        if "error" in answer:
            self.failed.append(f"{row.id}: {key}: {answer['error']}")
            print(f"FAILED {self.failed[-1]}", flush=True)
        if "wall" in answer:
            for name, value in answer.items():
                found.setdefault(name, []).append(value)

    def line(self, result: dict[str, Any]) -> str:
        """The progress: the row, and how many times as long as breccia each side takes."""
        sides, said = result["sides"], []
        base = sides.get(result["base"], {})
        for key, one in sides.items():
            if "wall" in one and "wall" in base and key != result["base"]:
                said.append(f"{key} {stats.shown(report.ratio(result, key, report.measures(result)[0]).median)}")
        mine = report.amount(result, result["base"], report.measures(result)[0]) if "wall" in base else "–"
        return f"  {result['title']}: {mine}; {', '.join(said)}"

    def run(self) -> None:
        results = load_results(self.options.out)
        results["about"] = about(self)
        start = time.monotonic()
        for key, title, rows in self.wanted:
            if not rows:
                continue
            print(f"{title} ({time.monotonic() - start:.0f} s)", flush=True)
            blocks: dict[str, list[Row]] = {}
            for row in rows:
                blocks.setdefault(row.block, []).append(row)
            for block in blocks.values():
                self.run_block(block, results["rows"])
                results["groups"][key] = {"title": title, **{name: results["about"][name]
                                                             for name in ("date", "commit", "size", "rounds")}}
                with open(self.options.out + ".new", "w") as file:
                    json.dump(results, file, indent=1)
                os.replace(self.options.out + ".new", self.options.out)
        for worker in self.kept.values():
            worker.end()
        print(f"{time.monotonic() - start:.0f} s; results are in {self.options.out}")


def load_results(path: str) -> dict[str, Any]:
    if os.path.exists(path):
        with open(path) as file:
            found: dict[str, Any] = json.load(file)
        return found
    return {"rows": {}, "groups": {}}


def version_of(command: list[str]) -> str:
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def mounted(folder: str) -> str:
    """The type of the file system of a folder."""
    best = ("", "")
    with open("/proc/mounts") as file:
        for line in file:
            _, at, kind, *_ = line.split()
            inside = folder == at or folder.startswith(at.rstrip("/") + "/")
            if inside and len(at) >= len(best[0]):
                best = (at, kind)
    return best[1]


def about(bench: Bench) -> dict[str, Any]:
    known = ["breccia", "numpy", "zarr", "numcodecs", "zarrs", "tensorstore", "icechunk", "h5py", "hdf5plugin", "dvc"]
    versions = {}
    for name in known:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    model = ""
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    git = version_of(["git", "--version"]).removeprefix("git version ")
    options = bench.options
    return {"date": datetime.date.today().isoformat(), "processor": model, "cores": os.cpu_count(),
            "memory": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30,
            "kernel": f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}",
            "file system": mounted(os.path.realpath(options.dir)), "Python": platform.python_version(),
            "versions": {**versions, "git": git}, "threads": options.threads, "size": options.size,
            "rounds": options.rounds, "quick": options.quick, "commit": options.commit}


def pin(threads: int) -> None:
    """Gives every side as many cores, and each library's pool as many threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    for name in ("OMP", "OPENBLAS", "RAYON"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)
    os.environ["BLOSC_NTHREADS"] = os.environ["TOKIO_WORKER_THREADS"] = str(threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*",
                        help=f"groups ({', '.join(GROUPS)}), or beginnings of rows' names (default: all)")
    parser.add_argument("--bench", required=True, help="the program build/bench")
    parser.add_argument("--libraries", default="", help="a folder with the libzstd that the C side loads")
    parser.add_argument("--out", required=True, help="the JSON file of results")
    parser.add_argument("--commit", default="", help="what was measured")
    parser.add_argument("--peers", nargs="*", help="only these sides, and the one that others are compared with")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each side (5; quick: 1)")
    parser.add_argument("--size", type=int, default=0, help="MiB of whole arrays (128; quick: 1)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="everything small: to see that every row works")
    parser.add_argument("--shared", default="../shared", help="the folder with data/ of real arrays")
    parser.add_argument("--dir", default="/var/tmp", help="where the files go (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="only print the rows")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    size = options.size or (1 if options.quick else 128)
    options.size = round(size / 8) * 8 if size >= 8 else 1
    os.environ["BRECCIA_BENCH"] = options.bench
    pin(options.threads)
    folder = tempfile.mkdtemp(prefix="breccia-peers-", dir=options.dir)
    try:
        bench = Bench(options, folder)
        if options.list:
            for _, _, rows in bench.wanted:
                for row in rows:
                    print(f"{row.id}: {row.title}")
            return
        print(f"{options.size} MiB, {options.rounds} rounds, {options.threads} threads of each library; {options.dir}")
        if mounted(os.path.realpath(options.dir)) == "tmpfs":
            print("DIR is in memory: nothing there is cold, and nothing waits for a disk")
        print("; ".join(f"{name} {version}" for name, version in about(bench)["versions"].items()))
        bench.run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if bench.failed:
        sys.exit("\n".join(["bench-peers: these failed:", *bench.failed]))


if __name__ == "__main__":
    main()
