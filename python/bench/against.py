"""Runs two builds of `build/bench` in turns and compares their rows: `make bench-against REV=COMMIT`.

Each round runs every group with both programs, one after the other, the first of which alternates. A row's figure is
the median of new over old, round by round, with the least and the greatest; above 1 the new build is slower. The exit
status is 1 if some row's median is above the bound. Beside other work, times by the clock are noise: then look at the
rows of the processor ("cpu s"), and let rows that fail run again alone, with more rounds.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable

import stats

Row = tuple[str, str, str, str, str]  # title, what, label, unit, better


def parse(lines: Iterable[str]) -> dict[Row, float]:
    """The rows of one run of bench --tsv; tests/bench/report.c says what a line has. A row that comes twice counts
    once, as it came first."""
    rows: dict[Row, float] = {}
    for line in lines:
        *key, value = line.rstrip("\n").split("\t")
        if len(key) != 5:
            raise ValueError(f"not a line of bench --tsv: {line!r}")
        rows.setdefault((key[0], key[1], key[2], key[3], key[4]), float(value))
    return rows


def compare(new: list[dict[Row, float]], old: list[dict[Row, float]]) -> dict[Row, stats.Spread]:
    """Compares the rows that all runs have: what the new build takes, with the old one's as 1; above 1 is worse."""
    found = {}
    for row in new[0]:
        if row[4] == "-" or not all(row in run for run in [*new, *old]):
            continue
        mine, base = [run[row] for run in new], [run[row] for run in old]
        if row[4] == "higher":
            mine, base = base, mine
        if min(mine + base) > 0:
            found[row] = stats.ratio(mine, base)
    return found


def show(rows: dict[Row, stats.Spread], bound: float) -> list[Row]:
    """Prints the tables, and returns the rows above the bound."""
    slow, group = [], None
    for row, ratio in rows.items():
        if group != row[:2]:
            group = row[:2]
            print(f"\n### {row[0]}: {row[1]}\n\n| row | of | new, old's is 1 | spread | |\n"
                  "| --- | --- | --- | --- | --- |")
        word = "slower" if ratio.median > bound else ""
        if word:
            slow.append(row)
        print(f"| {row[2]} | {row[3] or 'ratio'} | {ratio.median:.2f} | {ratio.least:.2f} to {ratio.greatest:.2f} | "
              f"{word} |", flush=True)
    return slow


def run(program: str, folder: str, options: list[str]) -> dict[Row, float]:
    path = os.path.join(folder, "rows.tsv")
    # The exit status of bench says whether costs bend, which is not what is asked here.
    subprocess.run([program, "--dir", folder, "--tsv", path, *options], stdout=subprocess.DEVNULL, check=False)
    if not os.path.exists(path):
        sys.exit(f"bench-against: {program} printed no row")
    with open(path) as file:
        rows = parse(file)
    os.unlink(path)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("new")
    parser.add_argument("old")
    parser.add_argument("groups", nargs="*", help="of bench (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bound", type=float, default=1.10)
    parser.add_argument("--dir", default="/var/tmp", help="where the files go (default: %(default)s)")
    parser.add_argument("--options", default="", help="of bench, such as '--size 256 --pairs 3'")
    options = parser.parse_args()
    groups = options.groups or subprocess.run([options.new, "--names"], stdout=subprocess.PIPE, text=True,
                                              check=True).stdout.split()
    programs, slow = {"new": options.new, "old": options.old}, []
    print(f"{options.rounds} rounds; slower is a median above {options.bound:g}. On a machine that does other work, "
          "rows by the clock say little")
    with tempfile.TemporaryDirectory(prefix="breccia-against-", dir=options.dir) as folder:
        for group in groups:
            took: dict[str, list[dict[Row, float]]] = {"new": [], "old": []}
            for turn in range(options.rounds):
                for name in ("new", "old") if turn % 2 else ("old", "new"):
                    took[name].append(run(programs[name], folder, [*options.options.split(), group]))
            slow += show(compare(took["new"], took["old"]), options.bound)
    print(f"\n{len(slow)} rows slower than {options.bound:g} times the old build")
    for row in slow:
        print(f"  {row[0]}: {row[2]} ({row[3] or 'ratio'})")
    sys.exit(bool(slow))


if __name__ == "__main__":
    main()
