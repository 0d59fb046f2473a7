"""Kerchunk references in Parquet. tests/interop/references.py imports sets that kerchunk itself writes."""
from __future__ import annotations

import json
import sys
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import breccia

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

ROWS = 4  # of a file of references
VALUES = np.arange(35, dtype="<i4").reshape(7, 5)
CHUNKS = (2, 3)


def write_set(folder, data, refs=None, zarray=None, name="v"):
    """A set of one array, whose chunks follow each other in `data`; refs: rows in place of these."""
    grid = [-(-extent // chunk) for extent, chunk in zip(VALUES.shape, CHUNKS)]
    rows, raw = [], b""
    for at in np.ndindex(*grid):
        chunk = np.zeros(CHUNKS, "<i4")
        part = VALUES[at[0] * 2:at[0] * 2 + 2, at[1] * 3:at[1] * 3 + 3]
        chunk[:part.shape[0], :part.shape[1]] = part
        rows.append((str(data), len(raw), chunk.nbytes, None))
        raw += chunk.tobytes()
    rows = refs(rows) if refs else rows
    document = {"zarr_format": 2, "shape": list(VALUES.shape), "chunks": list(CHUNKS), "dtype": "<i4",
                "compressor": None, "fill_value": 0, "order": "C", "filters": None, **(zarray or {})}
    (folder / "v").mkdir(parents=True)
    for first in range(0, len(rows), ROWS):
        columns = list(zip(*rows[first:first + ROWS]))
        table = pa.table({"path": pa.array(columns[0], pa.string()).dictionary_encode(),
                          "offset": pa.array(columns[1], pa.int64()), "size": pa.array(columns[2], pa.int64()),
                          "raw": pa.array(columns[3], pa.binary())})
        pq.write_table(table, folder / "v" / f"refs.{first // ROWS}.parq", compression="zstd")
    documents = {".zgroup": {"zarr_format": 2}, ".zattrs": {"title": "t"}, f"{name}/.zarray": document,
                 f"{name}/.zattrs": {"units": "m"}}
    (folder / ".zmetadata").write_text(json.dumps({"record_size": ROWS, "metadata": documents}))
    return raw


@pytest.fixture
def session(tmp_path):
    with breccia.open(tmp_path / "a.brc", create=True) as repo, repo.session("main", message="in") as s:
        yield s


@pytest.mark.parametrize("external", [False, True])
def test_a_set_is_imported(tmp_path, session, external):
    data = tmp_path / "data.bin"
    data.write_bytes(write_set(tmp_path / "set.parq", "data.bin"))  # beside the set
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the file lies in the folder of the set
        assert session.import_(tmp_path / "set.parq", "/set", external=external) == "/set"
    assert session["set"].attrs["title"] == "t" and session["set/v"].attrs["units"] == "m"
    assert (session["set/v"][...] == VALUES).all()
    data.unlink()
    with pytest.raises(breccia.Error, match="data.bin") if external else nullcontext():
        assert (session["set/v"][...] == VALUES).all()


def test_rows_of_all_kinds(tmp_path, session):
    raw = write_set(tmp_path / "set.parq", tmp_path / "far" / "data.bin")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "data.bin").write_bytes(raw)
    (tmp_path / "far" / "whole").write_bytes(raw[24:48])

    def refs(rows):
        rows[0] = (None, 0, 0, raw[:24])  # the bytes themselves
        rows[1] = (str(tmp_path / "far" / "whole"), 0, 0, None)
        rows[2] = (None, 0, 0, None)  # missing
        return rows

    (tmp_path / "b").mkdir()
    write_set(tmp_path / "b" / "set.parq", tmp_path / "far" / "data.bin", refs, {"dimension_separator": "/"})
    with pytest.warns(UserWarning, match="outside its folder"):
        session.import_(tmp_path / "b" / "set.parq", "/x")
    want = VALUES.copy()
    want[2:4, 0:3] = 0
    assert (session["x/v"][...] == want).all()


def test_files_that_are_missing_are_chunks_that_are_missing(tmp_path, session):
    (tmp_path / "data.bin").write_bytes(write_set(tmp_path / "set.parq", "data.bin"))
    (tmp_path / "set.parq" / "v" / "refs.1.parq").unlink()
    session.import_(tmp_path / "set.parq", "/x")
    want = VALUES.copy()
    want[4:, :] = 0
    assert (session["x/v"][...] == want).all()


@pytest.mark.parametrize("what, of, error", [
    ({"shape": "x"}, breccia.CorruptError, "cannot be read"),
    ({"chunks": [0, 1]}, breccia.CorruptError, "cannot be read"),
    ({"shape": [7, -5]}, breccia.Error, "shape"), ({"shape": [1 << 60, 1 << 60]}, breccia.Error, "")])
def test_sets_that_cannot_be(tmp_path, session, what, of, error):
    write_set(tmp_path / "set.parq", "data.bin", zarray=what)
    with pytest.raises(of, match=error or None):
        session.import_(tmp_path / "set.parq", "/x")
    assert "x" not in session


def test_a_set_names_no_files_elsewhere(tmp_path, session):
    write_set(tmp_path / "set.parq", "data.bin", name="../v")
    with pytest.raises(breccia.CorruptError, match="leads out of the folder"):
        session.import_(tmp_path / "set.parq", "/x")
    (tmp_path / "set.parq" / ".zmetadata").write_text('{"record_size": 0, "metadata": {}}')
    with pytest.raises(breccia.CorruptError, match="number of rows"):
        session.import_(tmp_path / "set.parq", "/x")


def test_damaged_files_are_told(tmp_path, session):
    write_set(tmp_path / "set.parq", "data.bin")
    (tmp_path / "set.parq" / "v" / "refs.0.parq").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(breccia.CorruptError, match="set.parq has references that cannot be read"):
        session.import_(tmp_path / "set.parq", "/x")


@pytest.mark.parametrize("text", ["", "[]", "7", '{"metadata": {}, "zarr_consolidated_format": 1}'])
def test_other_folders_are_left_alone(tmp_path, session, text):
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / ".zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / "z" / ".zmetadata").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metadata that are none
        session.import_(tmp_path / "z", "/x")
    assert "x" in session


def test_without_pyarrow(tmp_path, session, monkeypatch):
    write_set(tmp_path / "set.parq", "data.bin")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "breccia._kerchunk", raising=False)
    monkeypatch.delattr(breccia, "_kerchunk", raising=False)
    with pytest.raises(breccia.UnsupportedError, match="install pyarrow"):
        session.import_(tmp_path / "set.parq", "/x")
