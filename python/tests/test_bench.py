"""The arithmetic of the benchmarks, without measuring anything."""
import math
import pathlib
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

BENCH = pathlib.Path(__file__).parent.parent / "bench"
sys.path.insert(0, str(BENCH))

import against  # noqa: E402
import data  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import stats  # noqa: E402
import worker  # noqa: E402


def test_a_spread_is_the_median_and_the_extremes():
    assert stats.spread([3, 1, 2]) == (2, 1, 3)
    assert stats.spread([4, 1, 2, 3]) == (2.5, 1, 4)


def test_a_ratio_is_the_median_of_pairs_and_no_ratio_of_medians():
    assert stats.ratio([2, 40, 9], [1, 10, 3]) == (3, 2, 4)
    assert stats.ratio([2, 40], [1, 0]) == (2, 2, 2)
    with pytest.raises(ValueError):
        stats.ratio([1], [0])


@pytest.mark.parametrize("value, text", [(1234.5, "1,234"), (100, "100"), (1.234, "1.23"), (0.01234, "0.0123")])
def test_three_digits_are_shown(value, text):
    assert stats.shown(value) == text


def lines(**values):
    return [f"bulk\t8 MiB\t{label}\t{unit}\t{better}\t{value}\n" for label, (unit, better, value) in values.items()]


def test_rows_of_two_builds_are_compared_pair_by_pair(capsys):
    def run(seconds, rate, **others):
        return against.parse(lines(write=("s", "lower", seconds), rate=("", "higher", rate), size=("x", "-", rate),
                                   **others))

    old = [run(*v, gone=("s", "lower", 1)) for v in ((1, 100), (2, 80), (4, 60))]
    new = [run(*v, added=("s", "lower", 1)) for v in ((1.5, 50), (2.4, 80), (4.4, 30))]
    found = against.compare(new, old)
    write, rate = ("bulk", "8 MiB", "write", "s", "lower"), ("bulk", "8 MiB", "rate", "", "higher")
    assert list(found) == [write, rate]
    assert found[write] == pytest.approx((1.2, 1.1, 1.5))
    assert found[rate] == (2, 1, 2)  # above 1 is slower in both directions
    assert against.show(found, 1.25) == [rate]
    assert against.show(found, 1.1) == [write, rate]
    assert "| write | s | 1.20 | 1.10 to 1.50 |" in capsys.readouterr().out


def test_a_line_that_is_not_a_row_is_refused():
    with pytest.raises(ValueError, match="not a line"):
        against.parse(["bulk\twrite\t1\n"])


# ---- the page of `make bench-peers` ----


def row(title, group="whole", base="python", moved=0, counts="", times=1, **sides):
    return {"title": title, "group": group, "base": base, "moved": moved, "times": times, "counts": counts,
            "rounds": 3, "sides": sides}


def took(wall, synced=None, cpu=1.0, peak=1 << 20, **more):
    one = {"wall": wall, "cpu": [cpu] * len(wall), "peak": [peak] * len(wall), **more}
    return one if synced is None else {**one, "synced": synced}


@pytest.fixture
def results():
    rows = {
        "whole/a/write": row("write <all>", moved=2_000_000, python=took([1, 2, 4], [1, 2, 4]),
                             zarr=took([0.5, 2, 3], [2, 6, 12], cpu=3.0, peak=5 << 20), h5py={"cannot": "no shards"},
                             fused={"absent": "not installed"}, tensorstore=took([2, 4, 8], [2, 4, 8])),
        "whole/a/read": row("read", python=took([1, 1, 1]), zarr=took([0.5, 0.9, 0.8]), icechunk={"error": "wrong"}),
        "history/h/commits": row("commits", "history", times=100, python=took([1.0], chunks=[100], count=[100]),
                                 git=took([1.0], chunks=[100], count=[10])),
        "ten/ten/ten": row("ten versions", "ten", "ten-breccia", counts="bytes",
                           **{"ten-breccia": took([1.0], bytes=[4_000_000], one=[2e6], newest=[.001], oldest=[.002]),
                              "ten-git": took([2.0], bytes=[1_000_000], one=[2e6], newest=[.01], oldest=[.02])}),
    }
    about = {"date": "2026-01-02", "processor": "P", "cores": 2, "memory": 8, "kernel": "K", "file system": "ext4",
             "Python": "3", "versions": {"zarr": "3.1"}, "threads": 2, "size": 128, "rounds": 3, "commit": "abc"}
    groups = {key: {"title": key.title(), "date": "2026-01-02", "commit": key, "rounds": 3, "size": 8}
              for key in ("ten", "whole", "history")}
    return {"rows": rows, "groups": groups, "about": about}


def test_a_ratio_of_two_sides_is_of_what_one_execution_takes(results):
    commits = results["rows"]["history/h/commits"]
    assert report.ratio(commits, "git").median == 10
    assert report.amount(commits, "python") == "10.00 ms"
    write = results["rows"]["whole/a/write"]
    assert report.ratio(write, "zarr") == (0.75, 0.5, 1)
    assert report.ratio(write, "zarr", "synced") == (3, 2, 3)
    assert report.measures(write) == ["wall", "synced"]
    assert report.measures(results["rows"]["whole/a/read"]) == ["wall"]
    assert report.measures(results["rows"]["ten/ten/ten"]) == ["bytes"]
    assert report.ratio(results["rows"]["ten/ten/ten"], "ten-git", "bytes").median == 0.25


def test_the_page_has_each_ratio_once_and_says_where_others_are_faster(results):
    page = report.page(results).splitlines()
    assert "| time | breccia, Python | zarr-python | TensorStore | Icechunk | h5py |" in page
    assert "| *on the disk when a write returns* | yes | no | yes | no | no |" in page
    assert "| write <all> | 1 MB/s | **0.75** (0.5–1.00) | 2.00 (2.00–2.00) |  | – |" in page
    assert "| read | 1.00 s | **0.8** (0.5–0.9) |  | failed |  |" in page
    until = page[page.index("| time until all is on the disk | breccia, Python | zarr-python | TensorStore | h5py |"):]
    assert until[2] == "| write <all> | 1 MB/s | 3.00 (2.00–3.00) | 2.00 (2.00–2.00) | – |"
    assert "Others are faster in 3 of 6 comparisons:" in page
    assert "- write <all>: zarr-python before it is on the disk 0.75." in page
    assert "- read: zarr-python 0.8." in page
    assert "- ten versions: git, after git gc 0.25." in page
    assert "- h5py: no shards (write <all>)." in page
    assert "- git: 10 times (commits)." in page
    assert "Measured on 2026-01-02 at commit whole, 3 rounds, 8 MiB." in page
    assert "| git, after git gc | 1.00 | 0.50 | 2.00 | 10.0, 20.0 |" in page
    assert [line for line in page if line.startswith("## ")][-3:] == ["## Whole", "## History", "## Ten"]


def test_a_page_without_losses_says_so(results):
    results["rows"] = {"whole/a/read": row("read", python=took([1, 1]), zarr=took([2, 2]))}
    assert "Nobody is faster in any of 1 comparisons." in report.page(results)


def test_the_picture_is_a_document_with_a_dot_for_each_ratio(results):
    picture = xml.etree.ElementTree.fromstring(report.picture(results))
    space = "{http://www.w3.org/2000/svg}"
    assert picture.tag == f"{space}svg"
    dots = [dot for dot in picture.iter(f"{space}circle") if dot.find(f"{space}title") is not None]
    assert [dot.find(f"{space}title").text for dot in dots] == [
        "zarr-python: 3.00", "TensorStore: 2.00", "zarr-python: 0.8", "git: 10.00", "git, after git gc: 0.25"]
    assert float(dots[2].get("cx")) < report.place(1) < float(dots[1].get("cx")) < float(dots[0].get("cx"))
    assert "prefers-color-scheme: dark" in picture.find(f"{space}style").text


# ---- what is asked, and of which data ----


def test_the_rows_have_names_of_their_own_and_sides_that_exist():
    sizes = rows.Sizes(8, False, {}, {}, "/nowhere", 2)
    for name, item in (("smooth", 4), ("images", 2), ("labels", 1), ("noise", 1)):
        sizes.shapes[name], sizes.items[name] = data.shape(8, item), item
    sizes.shapes["embedding"], sizes.items["embedding"] = (8192, 256), 4
    made = [row for _, make in rows.GROUPS.values() for row in make(sizes)]
    assert len({row.id for row in made}) == len(made) > 70
    known = {*report.LABELS}
    for one in made:
        assert one.base in one.sides and known >= set(one.sides), one.id
        assert isinstance(one.args(0), dict)


@pytest.mark.parametrize("mib", [1, 8, 16, 64, 128])
def test_data_have_the_size_that_is_asked_for(mib):
    for item in (1, 2, 4):
        assert math.prod(data.shape(mib, item)) * item == mib << 20


def test_the_same_seed_gives_the_same_data():
    for make in data.SEEDED.values():
        first = make(1)
        assert first.nbytes == 1 << 20
        assert np.array_equal(first, make(1))


# ---- a side: what is checked ----


def side(tmp_path, key="python"):
    values = np.arange(4 * 8 * 8, dtype="f4")
    values.tofile(tmp_path / "source")
    made = worker.Worker(key)
    made.load({"folder": str(tmp_path), "shape": [4, 8, 8], "chunks": [2, 4, 4], "shards": None, "dtype": "float32",
               "codec": "zstd", "threads": 1, "data": str(tmp_path / "source")})
    return made


def ask(made, op, name="s", **more):
    q = {"row": op, "name": name, **more}
    made.prepare(q)
    took = made.run(q)
    made.check(q)
    return took


def test_each_row_of_an_array_is_measured_and_checked(tmp_path):
    made = side(tmp_path)
    assert ask(made, "write", "w").keys() == {"wall", "cpu", "peak", "synced"}
    for op, more in (("read", {}), ("read-cold", {}), ("rewrite-same", {}), ("rewrite-part", {"changed": [0, 255]}),
                     ("slice", {"boxes": [[0, 0, 0], [1, 2, 3]], "count": [2, 3, 4]}), ("rows", {"rows": [0, 3]}),
                     ("open", {"times": 2}), ("open-cold", {"times": 1})):
        assert ask(made, op, **more)["wall"] > 0, op
    assert made.data[0, 0, 0] == 1
    made.forget({})


def test_each_row_of_history_is_measured_and_checked(tmp_path):
    made = side(tmp_path)
    grid = {"side": 8, "touch": [1, 9, 63], "theirs": [2, 10], "version": 2, "branch": "b", "most": {"python": 9},
            "commits": 5, "differences": 3}
    for op, more in (("commit", {}), ("diff", {}), ("branch", {"branch": "c"}), ("commits", {"version": 3}),
                     ("log", {}), ("switch", {"version": 9}), ("merge", {"version": 10, "branch": "d"})):
        assert ask(made, op, **{**grid, **more})["wall"] > 0, op
    made.forget({})
    for op in ("gc", "fsck"):
        ask(made, op, "care", mib=8)
    made.forget({})


def test_a_side_that_gives_other_values_fails(tmp_path, monkeypatch):
    made = side(tmp_path)
    monkeypatch.setattr(made.side, "all", lambda opened: opened[...] + np.float32(1))
    for op in ("read", "read-cold", "write", "rewrite-same"):
        with pytest.raises(RuntimeError, match="other values"):
            ask(made, op, op)
    monkeypatch.setattr(made.side, "box", lambda opened, box: opened[box] * 2)
    with pytest.raises(RuntimeError, match="other values"):
        ask(made, "slice", boxes=[[1, 1, 1]], count=[1, 1, 1])
    made.forget({})


def test_equal_is_equal_to_the_bit():
    worker.same(np.float32([np.nan, 0]), np.float32([np.nan, 0]))
    for got in (np.float32([0, -0.0]), np.float64([0, 0]), np.float32([0]), np.float32([0, 1])):
        with pytest.raises(RuntimeError):
            worker.same(got, np.float32([0, 0]))


def test_ten_versions_are_compared_one_by_one(tmp_path, monkeypatch):
    np.save(tmp_path / "first.npy", np.linspace(0, 1, 512, dtype="f4").reshape(2, 16, 16))

    def measured(name):
        (tmp_path / name).mkdir()
        made = worker.Worker("ten-deeper")
        made.load({"folder": str(tmp_path / name), "shape": None, "chunks": [1, 16, 16], "shards": None,
                   "dtype": "float32", "codec": "zstd", "threads": 1, "data": ""})
        return made.run({"row": "ten", "first": str(tmp_path / "first.npy"), "count": 4, "times": 1})

    took = measured("right")
    assert took["bytes"] > 0 and took["one"] == 2048 and took["newest"] > 0 < took["oldest"]
    get = worker.versions.Plain.get
    monkeypatch.setattr(worker.versions.Plain, "get", lambda me, back: get(me, 0))
    with pytest.raises(RuntimeError, match="other values"):
        measured("wrong")
