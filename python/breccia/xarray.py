"""xarray's engine "breccia": `xr.open_dataset("data.brc", engine="breccia", group="a", rev="v1.0")`.

It opens `breccia.zarr.Store` with xarray's own reader of Zarr, so that conventions, dimensions and chunks are
xarray's affair, and the library's pipeline (`breccia.zarr.CodecPipeline`) reads the arrays. Nothing is read
before it is used; data sets pickle, and work with dask's threads and processes.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from xarray.backends import BackendEntrypoint, ZarrBackendEntrypoint

from ._keys import SCHEME, split
from ._native import file_and_rev
from .repository import Repository
from .session import Session

# zarr looks up the pipeline in a setting of the whole process when it opens an array.
_setting = [threading.Lock()]
os.register_at_fork(after_in_child=lambda: _setting.__setitem__(0, threading.Lock()))


def _opener(name: str) -> Any:
    def opener(self: Backend, filename_or_obj: Any, *, group: str | None = None, rev: str | None = None,
               **options: Any) -> Any:
        import zarr

        store, at, own = _store(filename_or_obj, group, rev)
        with _setting[0], zarr.config.set({"codec_pipeline.path": "breccia.zarr.CodecPipeline"}):
            opened = getattr(ZarrBackendEntrypoint(), name)
            made = opened(store, group=at or None, **{"mode": "r", "consolidated": False, "zarr_format": 3} | options)
        for one in (made.values() if isinstance(made, dict) else [made]) if own else []:
            one.set_close(partial(_close, one._close, store))
        return made

    return opener


class Backend(BackendEntrypoint):  # type: ignore[misc, unused-ignore]
    """The backend that xarray calls. Files are recognised by their ending `.brc`, or because they can be opened.

    filename_or_obj: a path, FILE@REV, a URL (`breccia://data.brc::v1.0/a`), a Repository, a Session (with its
    uncommitted changes) or a Store. group: below it. rev: a branch, which is shown with its uncommitted
    changes, a tag or a commit; None: the URL's, or "main". The others are those of `xarray.open_zarr`.
    """

    description = "breccia files (.brc): versioned Zarr arrays in one file"
    supports_groups = True
    open_dataset_parameters = ("filename_or_obj", "group", "rev", "drop_variables", "mask_and_scale", "decode_times",
                               "concat_characters", "decode_coords", "use_cftime", "decode_timedelta")
    open_dataset = _opener("open_dataset")
    open_datatree = _opener("open_datatree")
    open_groups_as_dict = _opener("open_groups_as_dict")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Never raises an exception."""
        try:
            if type(filename_or_obj).__module__.startswith("breccia."):
                return True
            name = "" + os.fspath(filename_or_obj)  # refuses bytes
            name = name if name.startswith(SCHEME) else os.fsdecode(file_and_rev(name)[0])
            return name.startswith(SCHEME) or name.lower().endswith(".brc") or (
                os.path.isfile(name) and Repository(name, read_only=True).read_only)
        except Exception:
            return False


def _close(first: Callable[[], None] | None, store: Any) -> None:
    if first is not None:
        first()
    store.close()


def _store(source: Any, group: str | None, rev: str | None) -> tuple[Any, str | None, bool]:
    """Returns the store, the group in it, and whether this call has opened the store."""
    from zarr.abc.store import Store as ZarrStore

    from .zarr import Store

    ready = source.store if isinstance(source, Session) else source
    if isinstance(ready, ZarrStore):
        if rev is not None:
            raise ValueError("a session or a store shows what it was opened for: rev is for files")
        return ready, group, False
    path, inner = os.path.expanduser(getattr(source, "path", source)), ""
    rev = rev or getattr(source, "rev", None)
    if path.startswith(SCHEME):
        path, rev, inner = split(path, rev)
    return Store(path, rev, read_only=True), f"{inner}/{(group or '').strip('/')}".strip("/"), True
