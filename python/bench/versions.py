"""Ten versions of one array in which one element in a hundred changed each time: bytes on the disk, and times."""
from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from typing import Any

import grids
import numpy as np
import sides


def bytes_in(path: str) -> int:
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names)


class History(sides.Side):
    """A side that keeps versions of an array: the newest is 0 back."""

    def first(self, data: Any) -> None:
        raise NotImplementedError

    def add(self, data: Any) -> None:
        raise NotImplementedError

    def end(self) -> None:
        pass

    def get(self, back: int) -> Any:
        raise NotImplementedError

    def bytes(self) -> int:
        return bytes_in(self.path("v"))


class Plain(sides.Ours, History):
    key, label = "ten-breccia", "breccia"
    depth = 0

    def first(self, data: Any) -> None:
        self.make("v", data)

    def add(self, data: Any) -> None:
        opened = self.open("v", write=True)
        self.write(opened, data)
        self.close(opened)

    def end(self) -> None:
        if self.depth:
            with self.repository("v") as repo:
                repo.repack(delta=True, delta_depth=self.depth)
                repo.gc(keep="0")

    def get(self, back: int) -> Any:
        with self.repository("v") as repo:
            return repo.view(f"main~{back}" if back else "main")["a"][...]


class Deltas(Plain):
    """The first of ten versions is nine differences away from the last: it stays whole."""

    key, label = "ten-delta", "breccia, repack --delta"
    depth = 8


class Deeper(Plain):
    key, label = "ten-deeper", "breccia, repack --delta --depth 9"
    depth = 9


class Icechunk(sides.Icechunk, History):
    key, label = "ten-icechunk", "Icechunk"

    def first(self, data: Any) -> None:
        self.make("v", data)

    def add(self, data: Any) -> None:
        self.write(self.open("v", write=True), data)

    def get(self, back: int) -> Any:
        import zarr

        repository = self.repository("v")
        ids = [one.id for one in repository.ancestry(branch="main")]
        return zarr.open_array(repository.readonly_session(snapshot_id=ids[back]).store, path="a", mode="r")[...]


class Files(sides.Program, History):
    """A program that everybody has: zstd."""

    key, label = "ten-zstd", "zstd, a file for each version"
    count = 0

    def first(self, data: Any) -> None:
        self.which("zstd")
        os.makedirs(self.path("v"))
        self.add(data)

    def name(self, number: int) -> str:
        return os.path.join(self.path("v"), f"{number}.npy")

    def add(self, data: Any) -> None:
        np.save(self.name(self.count), data)
        self.run("zstd", "-q", "-3", "--rm", self.name(self.count))
        self.count += 1

    def get(self, back: int) -> Any:
        out = self.path("out.npy")
        self.run("zstd", "-q", "-d", "-f", self.name(self.count - 1 - back) + ".zst", "-o", out)
        return np.load(out)


class Git(grids.Git, History):
    key, label = "ten-git", "git, after git gc"

    def first(self, data: Any) -> None:
        os.makedirs(self.path("v"))
        self.git("v", "init", "-q", "-b", "main")
        self.add(data)

    def file(self) -> str:
        return os.path.join(self.path("v"), "a.npy")

    def add(self, data: Any) -> None:
        np.save(self.file(), data)
        self.git("v", "add", "a.npy")
        self.git("v", "commit", "-q", "-m", "written")

    def end(self) -> None:
        self.git("v", "gc", "-q")

    def get(self, back: int) -> Any:
        return np.load(io.BytesIO(self.git("v", "show", f"HEAD~{back}:a.npy")))

    def bytes(self) -> int:
        return super().bytes() - os.path.getsize(self.file())  # only the history counts


class Dvc(grids.Dvc, History):
    key, label = "ten-dvc", "DVC"

    def first(self, data: Any) -> None:
        self.start("v")
        self.add(data)

    def file(self) -> str:
        return os.path.join(self.path("v"), "a.npy")

    def add(self, data: Any) -> None:
        if os.path.lexists(self.file()):
            os.unlink(self.file())  # it may be a link into the cache
        np.save(self.file(), data)
        self.record("v", "a.npy")

    def get(self, back: int) -> Any:
        self.git("v", "checkout", "-q", f"main~{back}")
        self.dvc("v", "checkout", "-q")
        got = np.load(self.file())
        self.git("v", "checkout", "-q", "main")
        return got

    def bytes(self) -> int:
        return super().bytes() - os.path.getsize(self.file())


SIDES: tuple[type[sides.Side], ...] = Plain, Deltas, Deeper, Icechunk, Git, Dvc, Files


def changed(first: Any, count: int, seed: int) -> list[Any]:
    """Returns versions of an array: each adds a little to 1 % of the elements, anywhere."""
    random = np.random.default_rng(seed)
    made = [first]
    for _ in range(count - 1):
        flat = made[-1].ravel().copy()
        at = random.choice(flat.size, flat.size // 100, replace=False)
        flat[at] += random.normal(0, .1, at.size).astype(flat.dtype)
        made.append(flat.reshape(first.shape))
    return made


def least(call: Callable[[], Any], times: int) -> float:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return min(took)


def measure(side: History, q: dict[str, Any], meter: Any, same: Callable[[Any, Any], None]) -> dict[str, float]:
    """The measurement of a row of ten versions. `wall` is the time to write them and to pack them at the end."""
    made = changed(np.load(q["first"]), q["count"], 1)
    meter.on()
    side.first(made[0])
    for data in made[1:]:
        side.add(data)
    side.end()
    meter.off()
    for back in range(q["count"]):
        same(side.get(back), made[q["count"] - 1 - back])
    newest, oldest = (least(lambda back=back: side.get(back), q["times"]) for back in (0, q["count"] - 1))
    return {**meter.took, "bytes": side.bytes(), "one": made[0].nbytes, "newest": newest, "oldest": oldest}
