"""Versions: grids of small chunks that are committed, branched, compared and merged, and rubbish that is collected.

A grid is an array of side x side chunks of 1 x 8 int16 without a codec; chunk n is at (n // side, n % side), and has
its number and a version in it (tests/bench/worker_grid.c is the same in C). Sides that need a process or a file for
each chunk have smaller grids: Grid.sides says which, by row.
"""
from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

import sides
from sides import Cannot, Job, Program, Side

ITEMS = 8
LITTLE = 8  # one of so many parts of the noise is written a second time
SLAB = 64


def values(numbers: Any, version: int) -> Any:
    made = np.empty((len(numbers), 2), "<u8")
    made[:, 0], made[:, 1] = numbers, version
    return made.view("<i2")


def noise(mib: int, seed: int) -> Any:
    return np.frombuffer(np.random.default_rng(seed).bytes(mib << 20), "u1").reshape(mib, 1 << 20)


class Grid:
    """A grid of a side with versions. A method that is not overridden says what the side lacks."""

    sides: dict[str, int] = {}  # by row: at most so many chunks along an axis
    def __init__(self, side: Side) -> None:
        self.lib, self.side, self.name, self.number = side, 0, "", 0

    def at(self, numbers: Any) -> tuple[Any, Any]:
        """Returns the positions of the elements of chunks, one by one."""
        numbers = np.asarray(numbers)
        columns = (numbers % self.side)[:, None] * ITEMS + np.arange(ITEMS)
        return np.repeat(numbers // self.side, ITEMS), columns.ravel()

    def box(self, number: int) -> tuple[Any, Any]:
        column = number % self.side * ITEMS
        return slice(number // self.side, number // self.side + 1), slice(column, column + ITEMS)

    def all_values(self) -> Any:
        return values(np.arange(self.side * self.side), 1).reshape(self.side, self.side * ITEMS)

    def make(self, name: str, side: int) -> None:
        raise Cannot("it has no versions")

    def commit(self, numbers: Any, version: int, branch: str = "main") -> None:
        raise NotImplementedError

    def read(self, numbers: Any) -> Any:
        """Reads chunks of the main branch."""
        raise NotImplementedError

    def branch(self, name: str) -> None:
        raise Cannot("it has no branches")

    def switch(self, name: str, number: int) -> Any:
        """Makes a branch the current one, and reads one of its chunks."""
        raise Cannot("it has no branches")

    def diff(self) -> int:
        """How many chunks the last commit changed."""
        raise Cannot("it lists no differences")

    def merge(self, name: str) -> None:
        raise Cannot("it has no merge")

    def log(self) -> int:
        raise Cannot("it has no list of versions")

    def care(self, name: str, mib: int) -> None:
        raise Cannot("it has no versions")

    def gc(self) -> None:
        raise NotImplementedError

    def fsck(self) -> None:
        raise Cannot("it has no check of what is stored")


class OursGrid(Grid):
    repo: Any = None

    def make(self, name: str, side: int) -> None:
        self.side, self.repo = side, self.lib.repository(name, True)  # type: ignore[attr-defined]
        with self.repo.session("main", message="all", author="bench") as s:
            a = s.create_array("a", shape=(side, side * ITEMS), chunks=(1, ITEMS), dtype="int16", compressors=[])
            a[...] = self.all_values()

    def commit(self, numbers: Any, version: int, branch: str = "main") -> None:
        with self.repo.session(branch, message="chunks", author="bench") as s:
            if len(numbers) == 1:
                s["a"][self.box(numbers[0])] = values(numbers, version)
            else:
                s["a"].vindex[self.at(numbers)] = values(numbers, version).ravel()

    def read(self, numbers: Any) -> Any:
        return self.repo.view("main")["a"].vindex[self.at(numbers)].reshape(-1, ITEMS)

    def branch(self, name: str) -> None:
        self.repo.branch(name)

    def switch(self, name: str, number: int) -> Any:
        self.repo.switch(name)
        return self.repo.view()["a"][self.box(number)]

    def diff(self) -> int:
        return sum(change.chunks_changed for change in self.repo.diff("main~1", "main"))

    def merge(self, name: str) -> None:
        if self.repo.merge(name, author="bench").result != "merged":
            raise RuntimeError("not merged")

    def log(self) -> int:
        return len(self.repo.log())

    def care(self, name: str, mib: int) -> None:
        self.repo = self.lib.repository(name, True)  # type: ignore[attr-defined]
        with self.repo.session("main", message="noise", author="bench") as s:
            a = s.create_array("a", shape=(mib, 1 << 20), chunks=(1, 1 << 20), dtype="uint8", compressors=[])
            for at in range(0, mib, SLAB):
                part = min(SLAB, mib - at)
                a[at:at + part] = noise(part, at)
        with self.repo.session("main") as s:
            s["a"][:mib // LITTLE] = noise(mib // LITTLE, mib + 1)
            s.discard()

    def gc(self) -> None:
        if self.repo.gc(keep="0").objects_removed == 0:
            raise RuntimeError("no garbage")

    def fsck(self) -> None:
        if self.repo.fsck().damage:
            raise RuntimeError("damage")


class OcdbtGrid(Grid):
    """Commits alone: a transaction of TensorStore, which OCDBT makes a new version of its tree."""

    array: Any = None

    def make(self, name: str, side: int) -> None:
        import tensorstore

        self.side, lib = side, self.lib
        job = Job(lib.job.folder, (side, side * ITEMS), (1, ITEMS), None, "int16", "none", lib.job.threads)
        lib.job = job
        spec = {**lib.spec(name), "metadata": lib.metadata()}  # type: ignore[attr-defined]
        self.array = tensorstore.open(spec, create=True, context=lib.context()).result()  # type: ignore[attr-defined]
        with tensorstore.Transaction(atomic=True) as t:
            self.array.with_transaction(t).write(self.all_values()).result()

    def commit(self, numbers: Any, version: int, branch: str = "main") -> None:
        import tensorstore

        rows, columns = self.at(numbers)
        with tensorstore.Transaction(atomic=True) as t:
            self.array.with_transaction(t).vindex[rows, columns].write(values(numbers, version).ravel()).result()

    def read(self, numbers: Any) -> Any:
        return self.array.vindex[self.at(numbers)].read().result().reshape(-1, ITEMS)


class IcechunkGrid(Grid):
    """Each chunk is set by a call of the store, many at once, which is faster than by arrays of zarr-python."""

    sides = {row: 200 for row in ("commit", "branch", "switch", "diff", "merge")}  # a million calls would take minutes
    repo: Any = None

    def make(self, name: str, side: int) -> None:
        import zarr

        self.side, self.repo = side, self.lib.repository(name, True)  # type: ignore[attr-defined]
        session = self.repo.writable_session("main")
        zarr.create_array(session.store, name="a", shape=(side, side * ITEMS), chunks=(1, ITEMS), dtype="int16",
                          compressors=None, fill_value=0)
        for at in range(0, side * side, 10_000):
            self.put(session, range(at, min(side * side, at + 10_000)), 1)
        session.commit("all")

    def put(self, session: Any, numbers: Any, version: int) -> None:
        import asyncio

        import zarr

        buffer = zarr.core.buffer.default_buffer_prototype().buffer
        keys = [f"a/c/{n // self.side}/{n % self.side}" for n in numbers]

        async def all_of_them() -> None:
            await asyncio.gather(*(session.store.set(key, buffer.from_bytes(one.tobytes()))
                                   for key, one in zip(keys, values(numbers, version))))

        asyncio.run(all_of_them())

    def array(self, session: Any, mode: str = "r") -> Any:
        import zarr

        return zarr.open_array(session.store, path="a", mode=mode)

    def commit(self, numbers: Any, version: int, branch: str = "main") -> None:
        session = self.repo.writable_session(branch)
        self.put(session, numbers, version)
        session.commit("chunks")

    def read(self, numbers: Any) -> Any:
        a = self.array(self.repo.readonly_session("main"))
        return np.concatenate([a[self.box(n)] for n in numbers])

    def branch(self, name: str) -> None:
        self.repo.create_branch(name, self.repo.lookup_branch("main"))

    def switch(self, name: str, number: int) -> Any:
        return self.array(self.repo.readonly_session(name))[self.box(number)]

    def diff(self) -> int:
        newer, older = [one.id for _, one in zip(range(2), self.repo.ancestry(branch="main"))]
        found = self.repo.diff(from_snapshot_id=older, to_snapshot_id=newer)
        return sum(len(chunks) for chunks in found.updated_chunks.values())

    def log(self) -> int:
        return sum(1 for _ in self.repo.ancestry(branch="main")) - 1  # the first is empty

    def care(self, name: str, mib: int) -> None:
        import zarr

        self.repo = self.lib.repository(name, True)  # type: ignore[attr-defined]
        session = self.repo.writable_session("main")
        a = zarr.create_array(session.store, name="a", shape=(mib, 1 << 20), chunks=(1, 1 << 20), dtype="uint8",
                              compressors=None, fill_value=0)
        for at in range(0, mib, SLAB):
            part = min(SLAB, mib - at)
            a[at:at + part] = noise(part, at)
        session.commit("noise")
        session = self.repo.writable_session("main")
        self.array(session, "r+")[:mib // LITTLE] = noise(mib // LITTLE, mib + 1)

    def gc(self) -> None:
        if self.repo.garbage_collect(datetime.datetime.now(datetime.timezone.utc)).chunks_deleted == 0:
            raise RuntimeError("no garbage")


class Git(Program):
    key, label = "git", "git"

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.which("git")

    def sync(self, name: str) -> None:
        subprocess.run(["sync", "-f", self.job.folder], check=True)

    def git(self, name: str, *args: str, text: str | None = None) -> bytes:
        who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0",
               "-c", f"pack.threads={self.job.threads}"]
        return self.run("git", "-C", self.path(name), *who, *args, text=text)


class GitGrid(Grid):
    """A file for each chunk, in a folder for each row; beside a working tree where files are changed."""

    sides = {"commit": 100, "branch": 100, "switch": 100}

    def file(self, number: int) -> str:
        return f"c/{number // self.side}/{number % self.side}"

    def git(self, *args: str, text: str | None = None) -> bytes:
        return self.lib.git(self.name, *args, text=text)  # type: ignore[attr-defined]

    def make(self, name: str, side: int) -> None:
        self.side, self.name, self.tree = side, name, side <= min(self.sides.values())
        os.makedirs(self.lib.path(name))
        self.git("init", "-q", "-b", "main", *([] if self.tree else ["--bare"]))
        self.load("main", np.arange(side * side), 1, first=True)
        if self.tree:
            self.git("reset", "-q", "--hard", "main")

    def load(self, branch: str, numbers: Any, version: int, first: bool = False) -> None:
        """Commits chunks without a working tree, by one process."""
        about = "committer bench <bench@example.org> 1600000000 +0000\ndata 4\nmade\n"
        base = "" if first else f"from refs/heads/{branch}^0\n"
        lines = [f"commit refs/heads/{branch}\n{about}{base}".encode()]
        for n, one in zip(numbers, values(numbers, version)):
            lines.append(b"M 100644 inline %s\ndata %d\n%s\n" % (self.file(int(n)).encode(), ITEMS * 2, one.tobytes()))
        subprocess.run(["git", "-C", self.lib.path(self.name), "fast-import", "--quiet", "--force"],
                       input=b"".join(lines), check=True)

    def write(self, numbers: Any, version: int) -> str:
        for n, one in zip(numbers, values(numbers, version)):
            with open(os.path.join(self.lib.path(self.name), self.file(n)), "wb") as file:
                file.write(one.tobytes())
        return "\n".join(self.file(n) for n in numbers)

    def commit(self, numbers: Any, version: int, branch: str = "main") -> None:
        if not self.tree or branch != "main":
            self.load(branch, numbers, version)
            return
        self.git("add", "--pathspec-from-file=-", text=self.write(numbers, version))
        self.git("commit", "-q", "-m", "chunks")

    def read(self, numbers: Any) -> Any:
        return np.stack([np.frombuffer(self.git("show", f"main:{self.file(n)}"), "<i2") for n in numbers])

    def branch(self, name: str) -> None:
        self.git("branch", name, "main")

    def switch(self, name: str, number: int) -> Any:
        self.git("switch", "-q", name)
        return np.fromfile(os.path.join(self.lib.path(self.name), self.file(number)), "<i2")

    def diff(self) -> int:
        return len(self.git("diff", "--name-only", "main~1", "main").splitlines())

    def merge(self, name: str) -> None:
        tree = self.git("merge-tree", "--write-tree", "main", name).decode().strip()
        made = self.git("commit-tree", tree, "-p", "main", "-p", name, "-m", "merged").decode().strip()
        self.git("update-ref", "refs/heads/main", made)

    def log(self) -> int:
        return len(self.git("log", "--format=%H%n%an%n%at%n%s", "main").splitlines()) // 4

    def care(self, name: str, mib: int) -> None:
        self.name = name
        os.makedirs(self.lib.path(name))
        self.git("init", "-q", "-b", "main")
        for times, count in enumerate((mib, mib // LITTLE)):
            for n in range(count):
                noise(1, n + times * mib).tofile(os.path.join(self.lib.path(name), f"{n}"))
            self.git("add", ".")
            self.git("commit", "-q", "-m", "noise")
        self.git("reset", "-q", "--hard", "HEAD~1")
        self.git("reflog", "expire", "--expire=now", "--all")

    def gc(self) -> None:
        self.git("gc", "-q", "--prune=now")

    def fsck(self) -> None:
        self.git("fsck", "--full", "--no-progress")


class Dvc(Git):
    """On top of git: a folder of files in its cache, of which git has the hash."""

    key, label = "dvc", "DVC"
    needs = ("dvc",)

    def dvc(self, name: str, *args: str) -> bytes:
        env = {"DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": self.path("dvc-site")}
        return self.run("env", *(f"{k}={v}" for k, v in env.items()), sys.executable, "-m", "dvc", *args,
                        at=self.path(name))

    def start(self, name: str) -> None:
        os.makedirs(self.path(name))
        self.git(name, "init", "-q", "-b", "main")
        self.dvc(name, "init", "-q")

    def record(self, name: str, what: str) -> None:
        self.dvc(name, "add", "-q", what)
        self.git(name, "add", "-A")
        self.git(name, "commit", "-q", "-m", "chunks")


class DvcGrid(GitGrid):
    sides = {row: 32 for row in ("commit", "branch", "switch", "diff", "merge", "commits", "log")}
    tree = True

    def dvc(self, *args: str) -> bytes:
        return self.lib.dvc(self.name, *args)  # type: ignore[attr-defined]

    def make(self, name: str, side: int) -> None:
        self.side, self.name = side, name
        self.lib.start(name)  # type: ignore[attr-defined]
        for row in range(side):
            os.makedirs(os.path.join(self.lib.path(name), "c", str(row)))
        self.write(np.arange(side * side), 1)
        self.lib.record(name, "c")  # type: ignore[attr-defined]

    def commit(self, numbers: Any, version: int, branch: str = "main") -> None:
        if branch != "main":
            self.checkout(branch)
        self.write(numbers, version)
        self.lib.record(self.name, "c")  # type: ignore[attr-defined]
        if branch != "main":
            self.checkout("main")

    def checkout(self, name: str) -> None:
        self.git("switch", "-q", name)
        self.dvc("checkout", "-q")

    def read(self, numbers: Any) -> Any:
        top = self.lib.path(self.name)
        return np.stack([np.fromfile(os.path.join(top, self.file(n)), "<i2") for n in numbers])

    def switch(self, name: str, number: int) -> Any:
        self.checkout(name)
        return self.read([number])[0]

    def diff(self) -> int:
        found = json.loads(self.dvc("diff", "--json", "main~1", "main"))
        return sum(not one["path"].endswith(os.sep) for one in found["modified"])

    def merge(self, name: str) -> None:
        raise Cannot("it merges no folder that both sides changed")

    def care(self, name: str, mib: int) -> None:
        self.name = name
        self.lib.start(name)  # type: ignore[attr-defined]
        for times, count in enumerate((mib, mib // LITTLE)):
            os.makedirs(os.path.join(self.lib.path(name), "c"), exist_ok=True)
            for n in range(count):
                noise(1, n + times * mib).tofile(os.path.join(self.lib.path(name), "c", f"{n}"))
            self.lib.record(name, "c")  # type: ignore[attr-defined]
        self.git("reset", "-q", "--hard", "HEAD~1")
        self.dvc("checkout", "-q")

    def gc(self) -> None:
        self.dvc("gc", "-q", "-w", "-f")

    def fsck(self) -> None:
        raise Cannot("it has no check of its cache")


GRIDS: dict[type[Side], type[Grid]] = {sides.Ours: OursGrid, sides.Ocdbt: OcdbtGrid, sides.Icechunk: IcechunkGrid,
                                       Git: GitGrid, Dvc: DvcGrid}
