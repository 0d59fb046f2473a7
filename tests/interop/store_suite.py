"""zarr-python's own tests of stores, over the key view: pytest runs them."""
import os
import subprocess

import pytest
from key_store import Handle, KeyStore
from zarr.core.buffer import cpu
from zarr.testing.store import StoreTests


class TestKeyStore(StoreTests[KeyStore, cpu.Buffer]):
    store_cls = KeyStore
    buffer_cls = cpu.Buffer

    @staticmethod
    def behind(store):
        return Handle(store.path)

    async def get(self, store, key):
        handle = self.behind(store)
        try:
            return self.buffer_cls.from_bytes(handle.get(key))
        finally:
            handle.close()

    async def set(self, store, key, value):
        handle = self.behind(store)
        try:
            handle.set_many([(key, value.to_bytes())])
        finally:
            handle.close()

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        path = tmp_path / 'store.brc'
        subprocess.run([os.environ['BRECCIA'], 'init', path, '-q'], check=True)
        return {'path': str(path)}

    @pytest.fixture
    async def store(self, store_kwargs):
        store = await self.store_cls.open(**store_kwargs)
        yield store
        store.close()

    def test_store_repr(self, store):
        assert str(store) == f"KeyStore('{store.path}')"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing
