"""The arithmetic of the benchmarks, without measuring anything."""
import pathlib
import sys

import pytest

BENCH = pathlib.Path(__file__).parent.parent / "bench"
sys.path.insert(0, str(BENCH))

import against  # noqa: E402
import stats  # noqa: E402


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
