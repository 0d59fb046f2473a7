"""The libraries that are compared: how each makes an array, opens it, reads and writes it.

A side that cannot be had raises ImportError, and is left out; what a side cannot do raises Cannot with the reason, and
is a dash in the table. All store chunks of one shape with one codec, on as many threads. Their promises differ:
breccia's writes and TensorStore's are on the disk when they return, others' are not; Side.sync() makes them so.
"""
from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

import numpy as np

os.environ.setdefault("ICECHUNK_LOG", "error")  # else it warns of each local folder


class Cannot(Exception):
    """A side lacks what a row asks for."""


@dataclass
class Job:
    """The array that the sides of a block store, and how."""

    folder: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    dtype: str
    codec: str  # none, zstd, blosc, lz4
    threads: int

    @property
    def item(self) -> int:
        return np.dtype(self.dtype).itemsize

    def compressor(self) -> dict[str, Any] | None:
        if self.codec == "zstd":
            return {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
        if self.codec == "none":
            return None
        cname, level = {"blosc": ("zstd", 1), "lz4": ("lz4", 5)}[self.codec]
        return {"name": "blosc", "configuration": {"cname": cname, "clevel": level, "shuffle": "shuffle",
                                                   "typesize": self.item, "blocksize": 0}}

    def codecs(self) -> list[Any]:
        """Returns the list of zarr.json, without shards."""
        first = {"name": "bytes", "configuration": {"endian": "little"}} if self.item > 1 else {"name": "bytes"}
        compressor = self.compressor()
        return [first] if compressor is None else [first, compressor]


class Side:
    """One library. `open` gives something that the other calls take."""

    key, label = "", ""
    needs: tuple[str, ...] = ()
    durable = "no"  # whether a write is on the disk when it returns

    def __init__(self, job: Job) -> None:
        self.job = job
        for module in self.needs:
            importlib.import_module(module)

    def path(self, name: str) -> str:
        return os.path.join(self.job.folder, name)

    def files(self, name: str) -> list[str]:
        """Returns the files of a store, and the folders that name them."""
        top, found = self.path(name), []
        if os.path.isfile(top):
            return [top, os.path.dirname(top)]
        for folder, _, names in os.walk(top):
            found += [*(os.path.join(folder, one) for one in names), folder]
        return found

    def sync(self, name: str) -> None:
        """Writes the store to the disk, where the library has left that to the system."""
        if self.durable != "yes":
            for path in self.files(name):
                file = os.open(path, os.O_RDONLY)
                os.fsync(file)
                os.close(file)

    def cool(self, name: str) -> None:
        """Drops the store's files from the page cache, which needs no right: what is dirty is written first."""
        for path in self.files(name):
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            if not os.path.isdir(path):
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)

    def make(self, name: str, data: Any) -> None:
        """A new store with one array, written whole and closed."""
        raise NotImplementedError

    def open(self, name: str, write: bool = False) -> Any:
        raise NotImplementedError

    def close(self, opened: Any) -> None:
        pass

    def all(self, opened: Any) -> Any:
        return opened[...]

    def box(self, opened: Any, box: tuple[slice, ...]) -> Any:
        return opened[box]

    def rows(self, opened: Any, rows: Any) -> Any:
        """Reads the rows with these numbers, which grow."""
        return opened.oindex[rows]

    def write(self, opened: Any, data: Any) -> None:
        opened[...] = data


class Zarr(Side):
    """zarr-python over some store, with some pipeline: an array keeps the one that it was opened with."""

    needs: tuple[str, ...] = ("zarr",)
    pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        import zarr

        module, _, name = self.pipeline.rpartition(".")
        if not hasattr(importlib.import_module(module), name):
            raise ImportError(f"this zarr has no {name}")
        zarr.config.set({"threading.max_workers": job.threads,
                         "codec_pipeline.chunk_concurrent_maximum": job.threads, "codec_pipeline.path": self.pipeline})

    def store(self, name: str, write: bool) -> Any:
        import zarr

        return zarr.storage.LocalStore(self.path(name), read_only=not write)

    def array(self, store: Any, data: Any) -> None:
        import zarr

        job = self.job
        made = zarr.create_array(store, name="a", shape=data.shape, dtype=data.dtype, chunks=job.chunks,
                                 shards=job.shards, fill_value=0, compressors=job.compressor())
        made[...] = data  # with data=, zarr-python would write chunk by chunk

    def make(self, name: str, data: Any) -> None:
        self.array(self.store(name, True), data)

    def open(self, name: str, write: bool = False) -> Any:
        import zarr

        return zarr.open_array(self.store(name, write), path="a", mode="r+" if write else "r")


class ZarrDefault(Zarr):
    key, label = "zarr", "zarr-python"


class ZarrRust(Zarr):
    key, label = "zarrs", "zarr-python, zarrs pipeline"
    needs = "zarr", "zarrs"
    pipeline = "zarrs.ZarrsCodecPipeline"


class ZarrFused(Zarr):
    key, label = "fused", "zarr-python, fused pipeline"
    pipeline = "zarr.core.codec_pipeline.FusedCodecPipeline"


class ZarrOurs(Zarr):
    key, label = "zarr-breccia", "zarr-python over breccia"
    needs = "zarr", "breccia.zarr"
    pipeline = "breccia.zarr.CodecPipeline"
    durable = "yes"

    def path(self, name: str) -> str:
        return super().path(name + ".brc")

    def repository(self, name: str, create: bool = False) -> Any:
        import breccia

        return breccia.open(self.path(name), create=create, threads=self.job.threads)

    def make(self, name: str, data: Any) -> None:
        with self.repository(name, True) as repo, repo.session("main", message="written", author="bench") as s:
            self.array(s.store, data)

    def open(self, name: str, write: bool = False) -> Any:
        import zarr

        repo = self.repository(name)
        return repo if write else zarr.open_array(repo.view("main").store, path="a", mode="r")

    def write(self, opened: Any, data: Any) -> None:
        import zarr

        with opened.session("main", author="bench") as s:
            zarr.open_array(s.store, path="a", mode="r+")[...] = data
            s.commit("written again", allow_empty=True)


class Ours(Side):
    key, label = "python", "breccia, Python"
    needs: tuple[str, ...] = ("breccia",)
    durable = "yes"
    readback: Any = None  # as the setting says: all

    def path(self, name: str) -> str:
        return super().path(name + ".brc")

    def repository(self, name: str, create: bool = False) -> Any:
        import breccia

        return breccia.open(self.path(name), create=create, threads=self.job.threads, readback=self.readback)

    def make(self, name: str, data: Any) -> None:
        job, compressor = self.job, self.job.compressor()
        with self.repository(name, True) as repo, repo.session("main", message="written", author="bench") as s:
            s.create_array("a", data=data, chunks=job.chunks, shards=job.shards, fill_value=0,
                           compressors=[] if compressor is None else [compressor])

    def open(self, name: str, write: bool = False) -> Any:
        repo = self.repository(name)
        return repo if write else repo.view("main")["a"]

    def close(self, opened: Any) -> None:
        repo = opened if hasattr(opened, "handles") else opened.session.repository
        repo.close()

    def write(self, opened: Any, data: Any) -> None:
        with opened.session("main", author="bench") as s:
            s["a"][...] = data
            s.commit("written again", allow_empty=True)


class OursUnread(Ours):
    key, label = "python-none", "breccia, Python, readback none"
    readback = False


class TensorStore(Side):
    """file_io_concurrency is its own least, 4: those threads wait for the disk. It keeps no decoded chunks."""

    key, label = "tensorstore", "TensorStore"
    needs = ("tensorstore",)
    durable = "yes"

    def context(self) -> Any:
        import tensorstore

        threads = self.job.threads
        return tensorstore.Context({"data_copy_concurrency": {"limit": threads},
                                    "file_io_concurrency": {"limit": max(4, threads)},
                                    "cache_pool": {"total_bytes_limit": 0}})

    def kvstore(self, name: str) -> Any:
        return {"driver": "file", "path": self.path(name) + "/"}

    def spec(self, name: str) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": self.kvstore(name)}

    def metadata(self) -> dict[str, Any]:
        job, codecs, grid = self.job, self.job.codecs(), self.job.chunks
        for codec in codecs:
            codec.get("configuration", {}).pop("checksum", None)
        if job.shards:
            index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
            codecs = [{"name": "sharding_indexed", "configuration": {"chunk_shape": grid, "codecs": codecs,
                                                                     "index_codecs": index}}]
            grid = job.shards
        return {"shape": job.shape, "data_type": job.dtype, "fill_value": 0, "codecs": codecs,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": grid}}}

    def make(self, name: str, data: Any) -> None:
        import tensorstore

        spec = {**self.spec(name), "metadata": self.metadata()}
        tensorstore.open(spec, create=True, context=self.context()).result().write(data).result()

    def open(self, name: str, write: bool = False) -> Any:
        import tensorstore

        return tensorstore.open(self.spec(name), open=True, read=True, write=write, context=self.context()).result()

    def all(self, opened: Any) -> Any:
        return opened.read().result()

    def box(self, opened: Any, box: tuple[slice, ...]) -> Any:
        return opened[box].read().result()

    def rows(self, opened: Any, rows: Any) -> Any:
        return opened[rows].read().result()

    def write(self, opened: Any, data: Any) -> None:
        opened.write(data).result()


class Ocdbt(TensorStore):
    """Nodes of its tree may stay in memory, as its manual recommends; chunks do not."""

    key, label = "ocdbt", "TensorStore, OCDBT"

    def kvstore(self, name: str) -> Any:
        return {"driver": "ocdbt", "base": {"driver": "file", "path": self.path(name) + "/"},
                "cache_pool": {"total_bytes_limit": 100_000_000}}


class Icechunk(Zarr):
    key, label = "icechunk", "Icechunk"
    needs = "zarr", "icechunk"

    def repository(self, name: str, create: bool = False) -> Any:
        import icechunk

        storage = icechunk.local_filesystem_storage(self.path(name))
        return icechunk.Repository.create(storage) if create else icechunk.Repository.open(storage)

    def make(self, name: str, data: Any) -> None:
        session = self.repository(name, True).writable_session("main")
        self.array(session.store, data)
        session.commit("written")

    def open(self, name: str, write: bool = False) -> Any:
        import zarr

        repository = self.repository(name)
        return repository if write else zarr.open_array(repository.readonly_session("main").store, path="a", mode="r")

    def write(self, opened: Any, data: Any) -> None:
        import zarr

        session = opened.writable_session("main")
        zarr.open_array(session.store, path="a", mode="r+")[...] = data
        session.commit("written again")


class H5py(Side):
    """The codecs are hdf5plugin's. The cache of decoded chunks is off, since no other side has one."""

    key, label = "h5py", "h5py"
    needs = "h5py", "hdf5plugin"

    def path(self, name: str) -> str:
        return super().path(name + ".h5")

    def make(self, name: str, data: Any) -> None:
        import h5py
        import hdf5plugin

        if self.job.shards:
            raise Cannot("HDF5 has no shards")
        codec: Any = {"none": lambda: {}, "zstd": lambda: hdf5plugin.Zstd(clevel=3),
                      "blosc": lambda: hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=hdf5plugin.Blosc.SHUFFLE),
                      "lz4": lambda: hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=hdf5plugin.Blosc.SHUFFLE)}
        with h5py.File(self.path(name), "w") as file:
            file.create_dataset("a", data=data, chunks=self.job.chunks, **codec[self.job.codec]())

    def open(self, name: str, write: bool = False) -> Any:
        import h5py
        import hdf5plugin  # noqa: F401, it tells HDF5 of the codecs

        return h5py.File(self.path(name), "r+" if write else "r", rdcc_nbytes=0)["a"]

    def close(self, opened: Any) -> None:
        opened.file.close()

    def rows(self, opened: Any, rows: Any) -> Any:
        return opened[rows]

    def write(self, opened: Any, data: Any) -> None:
        opened[...] = data
        opened.file.flush()


class Mapped(Side):
    """A NumPy file that is mapped into memory: no chunks, no codec, no versions."""

    key, label = "mapped", "NumPy, memory-mapped"

    def path(self, name: str) -> str:
        return super().path(name + ".npy")

    def make(self, name: str, data: Any) -> None:
        np.save(self.path(name), data)

    def open(self, name: str, write: bool = False) -> Any:
        return np.load(self.path(name), mmap_mode="r+" if write else "r")

    def rows(self, opened: Any, rows: Any) -> Any:
        return opened[rows]


class Program(Side):
    """A side whose work is done by programs: their own seconds and memory count, without this process."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.wall, self.peak = 0.0, 0

    def run(self, *command: str, at: str | None = None, text: str | None = None) -> bytes:
        """Runs a command below `bench --child`, which measures it, and returns what the command printed."""
        said = os.path.join(self.job.folder, "child.txt")
        done = subprocess.run([os.environ["BRECCIA_BENCH"], "--child", said, *command], cwd=at,
                              input=None if text is None else text.encode(), capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:3])}: {done.stderr.decode()[-500:]}")
        with open(said) as file:
            wall, _, peak = file.read().split()
        self.wall, self.peak = self.wall + float(wall), max(self.peak, int(peak) * 1024)
        return done.stdout

    def which(self, name: str) -> str:
        found = shutil.which(name)
        if found is None:
            raise ImportError(f"there is no program {name}")
        return found


class Command(Program):
    """The command, of the wheel: whole processes."""

    key, label = "command", "breccia, command"
    needs = ("breccia",)
    durable = "yes"

    def path(self, name: str) -> str:
        return super().path(name + ".brc")

    @property
    def program(self) -> str:
        import breccia

        return os.path.join(os.path.dirname(breccia.__file__), "bin", "breccia")

    def breccia(self, *args: str) -> bytes:
        return self.run(self.program, *args, "--threads", str(self.job.threads), "-q")

    def make(self, name: str, data: Any) -> None:
        source = os.path.join(self.job.folder, "a.npy")
        np.save(source, data)
        self.import_(name, source)

    def import_(self, name: str, source: str) -> None:
        self.breccia("import", self.path(name), source, "/a", "-m", "imported", "--author", "bench",
                     "--codecs", json.dumps(self.job.codecs()), "--chunks", ",".join(map(str, self.job.chunks)))

    def export(self, name: str, dest: str) -> None:
        self.breccia("read", self.path(name), "/a", "-o", dest)

    def first(self, name: str) -> Any:
        first = "[" + ",".join(["0:1"] * len(self.job.shape)) + "]"
        said = self.run(self.program, "read", self.path(name), "/a", first, "--format", "raw")
        return np.frombuffer(said, self.job.dtype)
