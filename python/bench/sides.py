"""The libraries that are compared: how each makes an array, opens it, reads and writes it.

A side that cannot be had says why, and is left out. All store chunks of one shape with one codec: zstd level
3, or none. What each promises differs: ours and Icechunk's writes are durable commits of a version, the
others' are not.
"""
from __future__ import annotations

import importlib
import os
import shutil
from typing import Any

import numpy as np

os.environ.setdefault("ICECHUNK_LOG", "error")  # else it warns of each local folder

ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
OWN_PIPELINE = "zarr.core.codec_pipeline.BatchedCodecPipeline"


class Side:
    """One library. `open` gives something that the other calls take."""

    name = ""
    needs: tuple[str, ...] = ()

    def __init__(self, folder: str, codec: str) -> None:
        self.folder = os.path.join(folder, self.name.replace(" ", "-").replace(",", ""))
        self.zstd = codec == "zstd"
        for module in self.needs:
            importlib.import_module(module)
        os.makedirs(self.folder, exist_ok=True)

    def path(self, key: str) -> str:
        return os.path.join(self.folder, key)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def make(self, key: str, data: Any, chunks: tuple[int, ...]) -> None:
        raise NotImplementedError

    def open(self, key: str, write: bool = False) -> Any:
        raise NotImplementedError

    def close(self, opened: Any) -> None:
        pass

    def all(self, opened: Any) -> Any:
        return opened[...]

    def box(self, opened: Any, box: tuple[slice, ...]) -> Any:
        return opened[box]

    def rows(self, opened: Any, rows: Any) -> Any:
        """The rows with these numbers, which grow."""
        return opened.oindex[rows]

    def write(self, opened: Any, data: Any) -> None:
        opened[...] = data

    def flush(self, key: str) -> None:
        """Writes to the disk each file of the array, and the folders that name the files."""
        for folder, _, names in os.walk(self.path(key)):
            for path in [*(os.path.join(folder, name) for name in names), folder]:
                file = os.open(path, os.O_RDONLY)
                os.fsync(file)
                os.close(file)


class Zarr(Side):
    """zarr-python over some store, with some pipeline: an array keeps the one that it was opened with."""

    needs: tuple[str, ...] = ("zarr",)
    pipeline = OWN_PIPELINE

    def store(self, key: str, write: bool) -> Any:
        import zarr

        return zarr.storage.LocalStore(self.path(key), read_only=not write)

    def make(self, key: str, data: Any, chunks: tuple[int, ...]) -> None:
        import zarr

        zarr.create_array(self.store(key, True), name="a", data=data, chunks=chunks, fill_value=0,
                          compressors=ZSTD if self.zstd else None)

    def open(self, key: str, write: bool = False) -> Any:
        import zarr

        with zarr.config.set({"codec_pipeline.path": self.pipeline}):
            return zarr.open_array(self.store(key, write), path="a", mode="r+" if write else "r")


class ZarrDefault(Zarr):
    name = "zarr-python, LocalStore"


class ZarrRust(Zarr):
    name = "zarr-python, LocalStore, zarrs"
    needs = "zarr", "zarrs"
    pipeline = "zarrs.ZarrsCodecPipeline"


class ZarrOurStore(Zarr):
    name = "zarr-python, our store"
    needs = "zarr", "breccia.zarr"

    def flush(self, key: str) -> None:
        pass  # each change is durable

    def store(self, key: str, write: bool) -> Any:
        import breccia.zarr

        path = self.path(key) + ".brc"
        return breccia.zarr.Store(path, read_only=not write, create=write and not os.path.exists(path))


class ZarrOurPipeline(ZarrOurStore):
    name = "zarr-python, our store and pipeline"
    pipeline = "breccia.zarr.CodecPipeline"


class Ours(Side):
    name = "breccia.Array"

    def make(self, key: str, data: Any, chunks: tuple[int, ...]) -> None:
        import breccia

        with breccia.open(self.path(key) + ".brc", create=True) as repo:
            with repo.session("main", message="made") as s:
                s.create_array("a", data=data, chunks=chunks, fill_value=0,
                               compressors=[ZSTD] if self.zstd else None)

    def open(self, key: str, write: bool = False) -> Any:
        import breccia

        repo = breccia.open(self.path(key) + ".brc")
        return repo if write else repo.view("main")["a"]

    def close(self, opened: Any) -> None:
        repo = opened if hasattr(opened, "handles") else opened.session.repository
        repo.close()

    def write(self, opened: Any, data: Any) -> None:
        with opened.session("main", message="written") as s:
            s["a"][...] = data

    def flush(self, key: str) -> None:
        pass  # a commit is durable


class TensorStore(Side):
    name = "TensorStore"
    needs = ("tensorstore",)

    def _spec(self, key: str) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": self.path(key)}}

    def make(self, key: str, data: Any, chunks: tuple[int, ...]) -> None:
        import tensorstore

        codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if self.zstd:
            codecs.append({"name": "zstd", "configuration": {"level": 3}})
        metadata = {"shape": data.shape, "data_type": data.dtype.name, "fill_value": 0, "codecs": codecs,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}}}
        made = tensorstore.open({**self._spec(key), "metadata": metadata}, create=True).result()
        made.write(data).result()

    def open(self, key: str, write: bool = False) -> Any:
        import tensorstore

        return tensorstore.open(self._spec(key), open=True, read=True, write=write).result()

    def all(self, opened: Any) -> Any:
        return opened.read().result()

    def box(self, opened: Any, box: tuple[slice, ...]) -> Any:
        return opened[box].read().result()

    def rows(self, opened: Any, rows: Any) -> Any:
        return opened[rows].read().result()

    def write(self, opened: Any, data: Any) -> None:
        opened.write(data).result()


class Icechunk(Zarr):
    name = "Icechunk"
    needs = "zarr", "icechunk"

    def repository(self, key: str, create: bool = False) -> Any:
        import icechunk

        storage = icechunk.local_filesystem_storage(self.path(key))
        return icechunk.Repository.create(storage) if create else icechunk.Repository.open(storage)

    def make(self, key: str, data: Any, chunks: tuple[int, ...]) -> None:
        import zarr

        session = self.repository(key, True).writable_session("main")
        zarr.create_array(session.store, name="a", data=data, chunks=chunks, fill_value=0,
                          compressors=ZSTD if self.zstd else None)
        session.commit("made")

    def open(self, key: str, write: bool = False) -> Any:
        import zarr

        repository = self.repository(key)
        if write:
            return repository
        with zarr.config.set({"codec_pipeline.path": self.pipeline}):
            return zarr.open_array(repository.readonly_session("main").store, path="a", mode="r")

    def write(self, opened: Any, data: Any) -> None:
        import zarr

        session = opened.writable_session("main")
        with zarr.config.set({"codec_pipeline.path": self.pipeline}):
            zarr.open_array(session.store, path="a", mode="r+")[...] = data
        session.commit("written")


class H5py(Side):
    """With zstd by hdf5plugin, and without its cache of decoded chunks, which no other side has."""

    name = "h5py"
    needs = "h5py", "hdf5plugin"

    def make(self, key: str, data: Any, chunks: tuple[int, ...]) -> None:
        import h5py
        import hdf5plugin

        codec = dict(hdf5plugin.Zstd(clevel=3)) if self.zstd else {}
        with h5py.File(self.path(key) + ".h5", "w") as file:
            file.create_dataset("a", data=data, chunks=chunks, **codec)

    def open(self, key: str, write: bool = False) -> Any:
        import h5py
        import hdf5plugin  # noqa: F401, it tells HDF5 of zstd

        return h5py.File(self.path(key) + ".h5", "r+" if write else "r", rdcc_nbytes=0)["a"]

    def close(self, opened: Any) -> None:
        opened.file.close()

    def rows(self, opened: Any, rows: Any) -> Any:
        return opened[rows]

    def write(self, opened: Any, data: Any) -> None:
        opened[...] = data
        opened.file.flush()

    def flush(self, key: str) -> None:
        file = os.open(self.path(key) + ".h5", os.O_RDONLY)
        os.fsync(file)
        os.close(file)


class Mapped(Side):
    """A NumPy file that is mapped into memory: no chunks, no codec, no versions."""

    name = "NumPy, memory-mapped"

    def make(self, key: str, data: Any, chunks: tuple[int, ...]) -> None:
        np.save(self.path(key) + ".npy", data)

    def open(self, key: str, write: bool = False) -> Any:
        return np.load(self.path(key) + ".npy", mmap_mode="r+" if write else "r")

    def rows(self, opened: Any, rows: Any) -> Any:
        return opened[rows]


class CCall(Ours):
    """brc_array_read() alone, with a selection and memory that are there: what a slice costs in C."""

    name = "the C call"

    def open(self, key: str, write: bool = False) -> Any:
        from breccia import _native
        from breccia._breccia import ffi, lib

        handle = _native.Handles(self.path(key) + ".brc").take()
        session, array = ffi.new("brc_session **"), ffi.new("brc_array **")
        handle.call(lib.brc_session_open, session, handle.repo, b"main", lib.BRC_SESSION_VIEW)
        handle.call(lib.brc_array_open, array, session[0], b"/a")
        return handle, session[0], array[0], np.empty((8, 8, 8), "f4")

    def close(self, opened: Any) -> None:
        from breccia._breccia import lib

        lib.brc_array_free(opened[2])
        lib.brc_session_free(opened[1])
        opened[0].close()

    def prepare(self, opened: Any, box: tuple[slice, ...]) -> Any:
        from breccia import _native
        from breccia._breccia import ffi

        sel = _native.sized("brc_sel")
        sel.ndim = len(box)
        for i, part in enumerate(box):
            sel.start[i], sel.count[i], sel.step[i] = part.start, part.stop - part.start, 1
        return sel, ffi.from_buffer("char[]", opened[3])

    def box(self, opened: Any, box: Any) -> Any:
        from breccia._breccia import lib

        handle, _, array, memory = opened
        sel, target = box
        handle.call(lib.brc_array_read, array, sel, target, memory.nbytes)
        return memory


SIDES = [Ours, ZarrOurPipeline, ZarrOurStore, ZarrDefault, ZarrRust, TensorStore, Icechunk, H5py]
