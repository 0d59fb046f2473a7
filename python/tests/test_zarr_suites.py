"""zarr-python's own tests of stores on `breccia.zarr.Store`: StoreTests, and both machines.

BRECCIA_EXAMPLES says how many runs a machine makes (50).
"""
from __future__ import annotations

import functools
import os

import numpy as np
import pytest

pytest.importorskip("zarr")
import zarr
from hypothesis import HealthCheck, Phase, settings
from hierarchy import Hierarchy
from hypothesis.stateful import run_state_machine_as_test
from zarr.core.buffer import cpu
from zarr.testing.stateful import ZarrStoreStateMachine
from zarr.testing.store import StoreTests

from breccia import _keys
from breccia.zarr import Store

EXAMPLES = int(os.environ.get("BRECCIA_EXAMPLES", "50"))
pytestmark = [pytest.mark.asyncio, pytest.mark.filterwarnings("ignore")]


class TestStore(StoreTests[Store, cpu.Buffer]):
    store_cls = Store
    buffer_cls = cpu.Buffer

    async def set(self, store, key, value):
        other = Store(store.path, create=True)
        other._use(_keys.write, [(key, value.as_numpy_array())])
        other.close()

    async def get(self, store, key):
        other = Store(store.path)
        found, = other._use(_keys.get, [key], [(0,)])
        other.close()
        return None if found is None else cpu.Buffer.from_bytes(found)

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        return {"path": str(tmp_path / "store.brc"), "create": True}

    def test_store_repr(self, store):
        assert repr(store) == str(store) == f"breccia.zarr.Store({store.path!r}, 'main')"

    def test_store_supports_writes(self, store):
        assert store.supports_writes and store.supports_deletes

    def test_store_supports_partial_writes(self, store):
        assert not store.supports_partial_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


def run_machine(machine, path):
    def made():
        return machine(Store(path, create=True))

    run_state_machine_as_test(made, settings=settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck)))


def test_store_machine(tmp_path):
    run_machine(ZarrStoreStateMachine, tmp_path / "store.brc")


@pytest.mark.parametrize("pipeline", ["zarr.core.codec_pipeline.BatchedCodecPipeline",
                                      "breccia.zarr.CodecPipeline"])
def test_hierarchy_machine(tmp_path, pipeline, monkeypatch):
    # zarr sorts index arrays: of elements that are written twice the last one stays, as with us, if it does so stably.
    monkeypatch.setattr(np, "argsort", functools.partial(np.argsort, kind="stable"))
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        run_machine(Hierarchy, tmp_path / "hierarchy.brc")
