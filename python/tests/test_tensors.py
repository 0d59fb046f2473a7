"""Elements in memory of any kind: DLPack and Arrow, out and in, with the libraries that read them."""
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import breccia

NUMBERS = np.arange(60, dtype="i4").reshape(12, 5)


@pytest.fixture
def numbers(session):
    made = session.create_array("numbers", shape=(12, 5), dtype="int32", chunks=(4, 5))
    made[...] = NUMBERS
    return made


@pytest.fixture(scope="module")
def driver():
    """A driver of CUDA that is none: pages that fault, and copies that wait for an event."""
    built = pathlib.Path(__file__).resolve().parents[2] / "build/tests/plugins/cuda.so"
    if not built.is_file() or os.environ.get("BRECCIA_TEST_CUDA"):
        pytest.skip("make build/tests/plugins/cuda.so first")
    return ctypes.CDLL(str(built), mode=ctypes.RTLD_GLOBAL)


# ---- DLPack ----

@pytest.mark.parametrize("memory", [None, "host", "pool"])
def test_numpy_takes_a_tensor_without_a_copy(numbers, memory):
    made = numbers.tensor(memory=memory)
    assert made.device == (1, 0) and made.memory == (memory or "host") and made.shape == (12, 5)
    got = np.from_dlpack(made)
    assert got.ctypes.data % 64 == 0 and (got == NUMBERS).all()
    assert np.from_dlpack(made).ctypes.data == got.ctypes.data
    assert (np.from_dlpack(numbers.tensor(np.s_[3:9:2, 1:])) == NUMBERS[3:9:2, 1:]).all()
    assert np.from_dlpack(numbers.tensor(np.s_[3, 2])).shape == ()
    assert (np.from_dlpack(numbers.tensor(np.s_[:, 2])) == NUMBERS[:, 2]).all()
    for key in (np.s_[::-1], np.s_[[1, 2], 3]):
        with pytest.raises(breccia.InvalidError):
            numbers.tensor(key)
    assert (np.from_dlpack(numbers.tensor(np.s_[[7, 1, 1]])) == NUMBERS[[7, 1, 1]]).all()


def test_memory_stays_when_the_repository_is_closed(tmp_path):
    with breccia.open(tmp_path / "x.brc", create=True) as repo:
        made = repo.session("main").create_array("a", shape=(1000,), dtype="float64")
        made[...] = 2.5
        got = np.from_dlpack(made.tensor(memory="pool"))
    del made, repo
    gc.collect()
    assert (got == 2.5).all()
    holder = [got]
    del got
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()


def test_what_dlpack_cannot_have_is_a_buffer_error(session, numbers):
    times = session.create_array("times", shape=(3,), dtype="M8[s]")
    with pytest.raises(BufferError, match="no name"):
        times.tensor().__dlpack__()
    made = numbers.tensor()
    with pytest.raises(BufferError):
        made.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        made.__dlpack__(copy=True)
    with pytest.raises(breccia.UnsupportedError, match="known: host, pool"):
        numbers.tensor(memory="nonsense")
    made.__dlpack__(), made.__dlpack__(max_version=(1, 0))  # capsules that nobody takes


@pytest.mark.parametrize("value", [NUMBERS[::-1], NUMBERS.T.copy().T, np.ascontiguousarray(NUMBERS)])
def test_tensors_of_numpy_are_written_as_they_lie(numbers, value):
    numbers[...] = 0
    numbers.set_tensor(..., value)
    assert (numbers[...] == value).all()
    numbers.set_tensor(np.s_[2:4], value[:2])
    with pytest.raises(breccia.InvalidError):
        numbers.set_tensor(np.s_[2:4], value)
    with pytest.raises(breccia.InvalidError):
        numbers.set_tensor(..., value.astype("f4"))


def test_read_only_tensors_are_written_too(numbers):
    value = NUMBERS * 3
    value.flags.writeable = False
    numbers.set_tensor(..., value)
    assert (numbers[...] == value).all()


def test_torch_takes_and_gives_tensors(numbers):
    torch = pytest.importorskip("torch")
    got = torch.from_dlpack(numbers.tensor())
    assert got.dtype == torch.int32 and (got.numpy() == NUMBERS).all()
    numbers.set_tensor(..., got.flip(0) * 2)
    assert (numbers[...] == NUMBERS[::-1] * 2).all()


def test_a_device_that_is_none(driver, numbers):
    made = numbers.tensor(memory="cuda:1", stream=7)
    assert made.device == made.__dlpack_device__() == (2, 1) and not made.spilled
    assert (np.from_dlpack(made, device="cpu") == NUMBERS).all()
    assert (np.from_dlpack(made.to_host()) == NUMBERS).all()
    numbers[...] = 0
    numbers.set_tensor(..., made)
    assert (numbers[...] == NUMBERS).all()
    locked = numbers.tensor(memory="locked")
    assert locked.device == (3, 0)
    room = ctypes.c_ulong.in_dll(driver, "fake_room")
    room.value = 1
    with pytest.raises(breccia.NoMemoryError):
        numbers.tensor(memory="cuda")
    spilled = numbers.tensor(memory="cuda", spill=True)
    room.value = 0
    assert spilled.spilled and spilled.device == (3, 0)
    numbers.set_tensor(..., spilled)
    del made, locked, spilled
    gc.collect()
    assert ctypes.c_ulong.in_dll(driver, "fake_live").value == 0


NVCOMP = """
import ctypes, sys
import numpy as np, breccia
plugins, file = sys.argv[1:]
driver = ctypes.CDLL(plugins + "/cuda.so", mode=ctypes.RTLD_GLOBAL)
"""
NVCOMP_THERE = """
calls = ctypes.c_ulong.in_dll(ctypes.CDLL(plugins + "/nvcomp5.so"), "nvcomp_calls")
breccia.use_nvcomp(plugins + "/nvcomp5.so")
values = np.arange(64 << 16) // 1000 % 251
with breccia.open(file, create=True) as repo:
    made = repo.session("main").create_array("a", shape=values.shape, dtype="uint8", chunks=(1 << 16,))
    made[...] = values.astype("u1")
    there = made.tensor(memory="cuda")
    print(calls.value, (np.from_dlpack(there, device="cpu") == values).all())
    try:
        breccia.use_nvcomp()
    except breccia.MisuseError as error:
        print("comes too late" in str(error))
"""
NVCOMP_MISSING = """
try:
    breccia.use_nvcomp(plugins + "/nvcomp_none.so")
except breccia.UnsupportedError as error:
    print("nvcomp_none.so" in str(error))
with breccia.open(file, create=True) as repo:
    made = repo.session("main").create_array("a", data=np.arange(10))
    print((np.from_dlpack(made.tensor(memory="cuda"), device="cpu") == np.arange(10)).all())
"""


@pytest.mark.parametrize("code, said", [(NVCOMP_THERE, "1 True True"), (NVCOMP_MISSING, "True True")])
def test_nvcomp_decodes_on_a_device_that_is_none(driver, tmp_path, code, said):
    plugins = pathlib.Path(__file__).resolve().parents[2] / "build/tests/plugins"
    if not (plugins / "nvcomp5.so").is_file():
        pytest.skip("make build/tests/plugins/nvcomp5.so first")
    got = subprocess.run([sys.executable, "-c", NVCOMP + code, plugins, tmp_path / "x.brc"], capture_output=True,
                         text=True)
    assert got.stdout.split() == said.split(), got.stderr


# ---- Arrow ----

def test_pyarrow_reads_numbers_without_a_copy(session, numbers):
    pa = pytest.importorskip("pyarrow")
    flat = session.create_array("flat", shape=(1000,), dtype="float64", chunks=(300,))
    flat[...] = np.arange(1000) / 3
    got = pa.array(flat)
    assert got.type == pa.float64() and (got.to_numpy(zero_copy_only=True) == np.arange(1000) / 3).all()
    rows = pa.array(numbers)
    assert rows.type == pa.list_(pa.field("item", pa.int32(), False), 5) and rows.to_pylist() == NUMBERS.tolist()
    assert rows.flatten().to_numpy(zero_copy_only=True).shape == (60,)
    table = pa.table(numbers)
    assert table.column_names == ["numbers"] and table["numbers"].to_pylist() == NUMBERS.tolist()
    assert pa.RecordBatchReader.from_stream(flat).read_all()["flat"].to_pylist() == flat[...].tolist()


def test_pyarrow_reads_and_gives_texts(session):
    pa = pytest.importorskip("pyarrow")
    words = ["", "a", "äöü", "日本語", "x" * 300]
    texts = session.create_array("texts", shape=(5,), dtype="string", chunks=(2,))
    texts[...] = words
    assert pa.array(texts).to_pylist() == words and pa.array(texts).type == pa.large_utf8()
    for kind in (pa.utf8(), pa.large_utf8()):
        texts.set_tensor(np.s_[1:4], pa.array(["z", words[4], "", "y", "no"], kind)[1:4])
        assert list(texts[...]) == ["", words[4], "", "y", words[4]]
    with pytest.raises(breccia.InvalidError, match="value 1 of the Arrow array is null"):
        texts.set_tensor(np.s_[:2], pa.array(["a", None]))
    raw = session.create_array("raw", shape=(2,), dtype="variable_length_bytes")
    raw.set_tensor(..., pa.array([b"\0\xff", b""], pa.binary()))
    assert pa.array(raw).to_pylist() == [b"\0\xff", b""]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "M8[ms]", "m8[ns]"])
def test_arrow_goes_round(session, dtype):
    pa = pytest.importorskip("pyarrow")
    made = session.create_array("a", shape=(7, 3), dtype=dtype)
    value = (np.arange(21).reshape(7, 3) % 5).astype(dtype)
    made[...] = value
    again = session.create_array("b", shape=(7, 3), dtype=dtype)
    again.set_tensor(..., pa.array(made))
    assert (again[...] == value).all()


def test_polars_and_duckdb_read_tables(session):
    made = session.create_array("height", shape=(50000,), dtype="float32", chunks=(1000,))
    made[...] = np.arange(50000)
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    series = polars.Series(made)
    assert series.dtype == polars.Float32 and len(series) == 50000 and series.max() == 49999
    height = made  # noqa: F841 (the query names it)
    assert duckdb.sql("select count(*), max(height) from height").fetchall() == [(50000, 49999.0)]


def test_capsules_that_nobody_takes_are_ended(numbers):
    for _ in range(50):
        numbers.__arrow_c_schema__(), numbers.__arrow_c_array__(), numbers.__arrow_c_stream__()
    gc.collect()
