"""zarr-python on a breccia file: `Store`, and `CodecPipeline`, which reads and writes whole selections in C.

`Store(path, rev)` shows a branch with its shared uncommitted changes, or a commit or tag, which cannot be
changed. With `zarr.config.set({"codec_pipeline.path": "breccia.zarr.CodecPipeline"})` the arrays of such a
store are read and written by the library's own pipeline, and those of other stores as before.

zarr imports this module with the first array that it opens, whatever the store.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from zarr.abc.codec import Codec
from zarr.abc.codec import CodecPipeline as ZarrPipeline
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import NDBuffer
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline

from . import _pipeline
from ._store import Store

__all__ = ["CodecPipeline", "Store"]

ASKED_FOR_STORE = hasattr(ZarrPipeline, "from_array_metadata_and_store")  # from zarr 3.1 on


def is_ours(store: object) -> bool:
    """Whether it is our Store and no wrapper, which wants to see every key."""
    return type(store) is Store


@dataclass(frozen=True)
class CodecPipeline(ZarrPipeline):
    """Reads and writes a selection of an array in a `Store` as one batch of the library.

    `out` and the prototype are the caller's, whatever memory order or byte order they have. What the library
    does not know (format 2, strings of any length, codecs of others), `array.write_empty_chunks`, and every
    other store go through `own`, zarr's own pipeline.
    """

    own: Any

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec]) -> Any:
        own = BatchedCodecPipeline.from_codecs(tuple(codecs))
        return own if ASKED_FOR_STORE else cls(own)

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Any, store: Any) -> CodecPipeline:
        if array_metadata.zarr_format != 3 or not is_ours(store):
            raise NotImplementedError("zarr's own pipeline is for this array")
        return cls(BatchedCodecPipeline.from_codecs(array_metadata.codecs))  # which the metadata has evolved

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> CodecPipeline:
        return type(self)(self.own.evolve_from_array_spec(array_spec))

    def __iter__(self) -> Iterator[Codec]:
        return iter(self.own)

    @property
    def supports_partial_decode(self) -> bool:
        return bool(self.own.supports_partial_decode)

    @property
    def supports_partial_encode(self) -> bool:
        return bool(self.own.supports_partial_encode)

    def validate(self, **array: Any) -> None:
        self.own.validate(**array)

    def compute_encoded_size(self, byte_length: int, array_spec: ArraySpec) -> int:
        return int(self.own.compute_encoded_size(byte_length, array_spec))

    async def decode(self, chunk_bytes_and_specs: Any) -> Any:
        return await self.own.decode(chunk_bytes_and_specs)

    async def encode(self, chunk_arrays_and_specs: Any) -> Any:
        return await self.own.encode(chunk_arrays_and_specs)

    async def read(self, batch_info: Any, out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> Any:
        """Fills `out`. From zarr 3.2 on, says of each chunk whether it was there."""
        batch = list(batch_info)
        if batch and is_ours(getattr(batch[0][0], "store", None)):
            done, statuses = await _pipeline.read(batch, out, drop_axes)
            if done:
                return statuses
        return await self.own.read(batch, out, drop_axes)

    async def write(self, batch_info: Any, value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        batch = list(batch_info)
        if batch and is_ours(getattr(batch[0][0], "store", None)):
            if await _pipeline.write(batch, value, drop_axes):
                return
        await self.own.write(batch, value, drop_axes)


Store.__module__ = __name__  # where people find it, and pickles
register_pipeline(CodecPipeline)
