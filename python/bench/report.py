"""Makes docs/BENCHMARKS.md and docs/benchmarks.svg of the results of peers.py: `report.py RESULTS.json FOLDER`."""
from __future__ import annotations

import html
import json
import math
import os
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import stats
from rows import GROUPS

LABELS = {
    "python": "breccia, Python", "c": "breccia, C", "python-none": "Python, readback none",
    "c-none": "C, readback none", "command": "breccia, command",
    "zarr-breccia": "zarr over breccia", "flat": "flat file, C", "zarr": "zarr-python",
    "fused": "zarr, fused pipeline", "zarrs": "zarr, zarrs pipeline", "tensorstore": "TensorStore", "ocdbt": "OCDBT",
    "icechunk": "Icechunk", "h5py": "h5py", "mapped": "NumPy, memory-mapped",
    "git": "git", "dvc": "DVC", "ten-breccia": "breccia",
    "ten-delta": "breccia, repack --delta", "ten-deeper": "breccia, repack --delta --depth 9",
    "ten-icechunk": "Icechunk", "ten-git": "git, after git gc", "ten-dvc": "DVC", "ten-zstd": "zstd files"}
OWN = {"python", "c", "python-none", "c-none", "command", "zarr-breccia", "ten-breccia", "ten-delta", "ten-deeper"}
# Sides whose writes are on the disk when they return.
DURABLE = {*OWN, "tensorstore", "ocdbt", "flat"}
COLORS = {"zarr": "#e6550d", "fused": "#fdae6b", "zarrs": "#b8860b", "tensorstore": "#3182bd", "ocdbt": "#17becf",
          "icechunk": "#9467bd", "h5py": "#31a354", "git": "#d62728", "dvc": "#e377c2", "flat": "#bbbbbb",
          "c": "#6b6b6b", "mapped": "#8c564b", "ten-icechunk": "#9467bd", "ten-git": "#d62728",
          "ten-dvc": "#e377c2", "ten-zstd": "#bcbd22"}
NEAR = 0.95  # below this a side is faster


def costs(result: dict[str, Any], key: str, what: str = "wall") -> list[float]:
    """Returns what one execution took in each round. A side that did fewer says how many, as "count"."""
    one = result["sides"][key]
    return [value / (one["count"][i] if "count" in one else result["times"]) for i, value in enumerate(one[what])]


def ratio(result: dict[str, Any], key: str, what: str = "wall") -> stats.Spread:
    """Returns what a side takes, with breccia's as 1: above 1 breccia is ahead. breccia's writes are on the disk."""
    base = "wall" if what == "synced" else what
    return stats.ratio(costs(result, key, what), costs(result, result["base"], base))


def has(result: dict[str, Any], key: str, what: str = "wall") -> bool:
    return what in result["sides"].get(key, {}) and what in result["sides"].get(result["base"], {}) | {"synced": 0}


def measures(result: dict[str, Any]) -> list[str]:
    """Returns what is compared in a row: seconds as each side leaves it, and until all is on the disk; or bytes."""
    if result["counts"]:
        return [result["counts"]]
    synced = any("synced" in one for key, one in result["sides"].items() if key not in DURABLE)
    return ["wall", "synced"] if synced else ["wall"]


def amount(result: dict[str, Any], key: str, what: str = "wall") -> str:
    """Returns what a side takes: MB/s, bytes or seconds."""
    if what == "bytes":
        return f"{statistics.median(result['sides'][key]['bytes']) / 1e6:.2f} MB"
    seconds = statistics.median(costs(result, key, what))
    if result["moved"] and what == "wall":
        return f"{result['moved'] / seconds / 1e6:,.0f} MB/s"
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * scale >= 1 or unit == "µs":
            return f"{stats.shown(seconds * scale)} {unit}"
    raise ValueError(seconds)


def cell(result: dict[str, Any], key: str, what: str) -> str:
    one = result["sides"].get(key)
    if one is None or "absent" in one:
        return ""
    if "error" in one:
        return "failed"
    if "cannot" in one:
        return "–"
    used = "wall" if what == "synced" and key in DURABLE else what
    if not has(result, key, used):
        return ""
    found = ratio(result, key, used)
    text = stats.shown(found.median)
    if found.median < NEAR and key not in OWN:
        text = f"**{text}**"
    return f"{text} ({stats.shown(found.least)}–{stats.shown(found.greatest)})" if result["rounds"] > 1 else text


def columns(rows: list[dict[str, Any]]) -> list[str]:
    """Returns the sides that some row has, but for the base, in the order of LABELS."""
    there = {key for row in rows for key, one in row["sides"].items() if "absent" not in one}
    return [key for key in LABELS if key in there and any(key != row["base"] for row in rows if key in row["sides"])]


def table(rows: list[dict[str, Any]], what: str, own: str) -> list[str]:
    keys = columns(rows)
    lines = [f"| {own} | {LABELS[rows[0]['base']]} | {' | '.join(LABELS[key] for key in keys)} |",
             "| --- | --- |" + " --- |" * len(keys)]
    if what == "wall" and any("synced" in measures(row) for row in rows):
        said = ["yes" if key in DURABLE else "no" for key in [rows[0]["base"], *keys]]
        lines.append(f"| *on the disk when a write returns* | {' | '.join(said)} |")
    for row in rows:
        base = row["base"]
        if "wall" in row["sides"].get(base, {}):
            lines.append(f"| {row['title']} | {amount(row, base, 'wall' if what == 'synced' else what)} | "
                         f"{' | '.join(cell(row, key, what) for key in keys)} |")
    return lines


def memory(rows: list[dict[str, Any]]) -> list[str]:
    keys = [rows[0]["base"], *columns(rows)]
    lines = [f"| peak, MiB | {' | '.join(LABELS[key] for key in keys)} |", "| --- |" + " --- |" * len(keys)]
    for row in rows:
        sides = [row["sides"].get(key, {}) for key in keys]
        cells = [f"{max(one['peak']) / 2**20:,.0f}" if "peak" in one else "" for one in sides]
        lines.append(f"| {row['title']} | {' | '.join(cells)} |")
    return lines


def reasons(rows: list[dict[str, Any]]) -> list[str]:
    """Why there are dashes, and which sides have smaller grids."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for key, one in row["sides"].items():
            if "cannot" in one:
                found.setdefault((LABELS[key], one["cannot"]), []).append(row["title"])
            base = row["sides"].get(row["base"], {})
            for name, word in (("chunks", "chunks"), ("count", "times")):
                if name in one and name in base and one[name][0] != base[name][0]:
                    found.setdefault((LABELS[key], f"{int(one[name][0]):,} {word}"), []).append(row["title"])
    return [f"- {who}: {why} ({'; '.join(dict.fromkeys(titles))})." for (who, why), titles in found.items()]


def losses(results: dict[str, Any]) -> tuple[list[str], int, int]:
    """Returns the comparisons in which another is faster, and of how many comparisons how many those are."""
    lines: list[str] = []
    compared = behind = 0
    for row in [row for _, rows in groups(results) for row in rows]:
        said = []
        for key in row["sides"]:
            if key in OWN or key == "flat":
                continue
            for what in measures(row):
                if key in DURABLE and what == "synced" or not has(row, key, what):
                    continue  # the same as without
                compared += 1
                found = ratio(row, key, what).median
                if found < NEAR:
                    behind += 1
                    where = " before it is on the disk" if what == "wall" and "synced" in row["sides"][key] else ""
                    said.append(f"{LABELS[key]}{where if key not in DURABLE else ''} {stats.shown(found)}")
        if said:
            lines.append(f"- {row['title']}: {', '.join(said)}.")
    return lines, compared, behind


def groups(results: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    for key in GROUPS:
        group = results["groups"].get(key)
        rows = [row for row in results["rows"].values()
                if row["group"] == key and "wall" in row["sides"].get(row["base"], {})]
        if rows:
            yield group, rows


TEXT = """# breccia beside other libraries and programs

`make bench-peers` measured the figures of this page and made the page. A figure says how many times as long as breccia
a side takes: above 1 breccia is ahead, and another's figure below 0.95 is bold. In brackets are the least and the
greatest of the rounds.

![The ratios of all rows](benchmarks.svg)

## Where breccia is behind

{lost}

## What was measured, and how

{date}, breccia at commit {commit}: {processor}, {cores} cores, {memory} GiB, {file system}, {kernel}, Python {Python};
{libraries}.

- The sides take turns, {rounds} rounds of them (3 for whole arrays of other data or another codec than zstd; one where
  no spread is shown), each round in another order. Each side is a process of its own. A figure is the median of the
  ratios of the rounds.
- All have the same data ({size} MiB where nothing else is said), chunks, codec and level. Each process may use
  {threads} cores, and each library's pools have {threads} threads; TensorStore waits for files with 4 or more.
- breccia's writes and TensorStore's are on the disk when they return; others' are not. Their rows come twice: as each
  side leaves it, and until its files and folders are on the disk (fsync). breccia reads each chunk back before the
  chunk is stored; "readback none" is without that.
- Warm rows read what is in the page cache. Before a cold row the store is closed, written to the disk and dropped from
  the page cache (posix_fadvise, which needs no rights; names of files stay cached); the row then opens the store. No
  side keeps decoded chunks.
- Each round of a write makes a new store, which is timed too. Imports, data and checks are not timed. What a side
  reads, also of what it wrote, is compared with the source bit by bit.
- Processor seconds are of all threads and child processes. The peak is the memory that was resident beyond imports and
  source data; of programs it is all of theirs.
- The C side has the wheel's libzstd. "flat file, C" is the same codec on as many threads over one flat file, without
  versions, checksums or an index: a bound.

```sh
make bench-peers                     # all rows, into build/bench-peers.json, and this page
make bench-peers ROWS='whole part'   # some groups; the results of others stay
make bench-peers QUICK=1             # everything small: does every row of every side work?
```
"""


def page(results: dict[str, Any]) -> str:
    about = results["about"]
    lost, compared, behind = losses(results)
    said = [f"Others are faster in {behind} of {compared} comparisons:", "", *lost] if lost else [
        f"Nobody is faster in any of {compared} comparisons."]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [TEXT.format(**{**about, "commit": about["commit"] or "unknown"}, lost="\n".join(said), libraries=versions)]
    for group, rows in groups(results):
        lines += [f"## {group['title']}", "", f"Measured on {group['date']} at commit {group['commit'] or 'unknown'}, "
                  f"{group['rounds']} rounds, {group['size']} MiB.", ""]
        kinds = {"wall": "time", "synced": "time until all is on the disk", "bytes": "bytes"}
        for what in kinds:
            some = [row for row in rows if what in measures(row)]
            if some:
                lines += [*table(some, what, kinds[what]), ""]
        if any(row["counts"] for row in rows):
            lines += [*history(rows), ""]
        if dashes := reasons(rows):
            lines += ["Dashes, and other sizes:", "", *dashes, ""]
        lines += [*table(rows, "cpu", "processor time"), "", *memory(rows), ""]
    return "\n".join(lines)


def history(rows: list[dict[str, Any]]) -> list[str]:
    """The versions of an array: bytes and times as they are."""
    lines = ["| | MB | of one version | written in, s | read the newest, the oldest, ms |",
             "| --- | --- | --- | --- | --- |"]
    for row in rows:
        for key, one in row["sides"].items():
            if "bytes" in one:
                size, single = one["bytes"][0], one["one"][0]
                lines.append(f"| {LABELS[key]} | {size / 1e6:.2f} | {size / single:.2f} | {one['wall'][0]:.2f} | "
                             f"{one['newest'][0] * 1e3:.1f}, {one['oldest'][0] * 1e3:.1f} |")
    return lines


STYLE = """
text { font: 11px sans-serif; fill: #222; } .head { font-weight: bold; } .grid { stroke: #ddd; } .one { stroke: #222; }
.paper { fill: #fff; }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd; } .grid { stroke: #333; } .one { stroke: #ddd; } .paper { fill: #0d1117; } }
"""
LEFT, WIDTH, LINE = 430, 560, 17


def place(found: float) -> float:
    """The horizontal position of a ratio: logarithmic, from 1/8 to 1,000."""
    least, most = math.log(1 / 8), math.log(1000)
    return LEFT + WIDTH * (min(max(math.log(found), least), most) - least) / (most - least)


def picture(results: dict[str, Any]) -> str:
    """One line for each row, with a dot for each side: to the right of 1 breccia is ahead."""
    body, y = [], 58.0
    shown: dict[str, str] = {}
    for group, rows in groups(results):
        body.append(f'<text class="head" x="8" y="{y + 4:.0f}">{html.escape(group["title"])}</text>')
        y += LINE
        for row in rows:
            what = measures(row)[-1]
            body.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{html.escape(row["title"])}</text>')
            for key, one in row["sides"].items():
                used = "wall" if what == "synced" and key in DURABLE else what
                if key not in COLORS or key == row["base"] or not has(row, key, used):
                    continue
                found = ratio(row, key, used)
                shown.setdefault(COLORS[key], LABELS[key])
                body.append(f'<circle cx="{place(found.median):.1f}" cy="{y:.0f}" r="4.5" fill="{COLORS[key]}" '
                            f'fill-opacity="0.8"><title>{html.escape(LABELS[key])}: {stats.shown(found.median)}</title>'
                            "</circle>")
            y += LINE
        y += LINE / 2
    lines = []
    for tick in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 10, 30, 100, 300, 1000):
        x = place(tick)
        lines.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="46" y2="{y:.0f}"/>'
                     f'<text x="{x:.1f}" y="40" text-anchor="middle">{tick:,.4g}</text>')
    legend, x = [], 8.0
    for color, label in shown.items():
        legend.append(f'<circle cx="{x + 5:.0f}" cy="14" r="4.5" fill="{color}"/>'
                      f'<text x="{x + 14:.0f}" y="18">{html.escape(label)}</text>')
        x += 30 + 6.4 * len(label)
    width, height = max(LEFT + WIDTH + 30, x), y + 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}">\n<style>{STYLE}</style>\n'
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>\n'
            f'<text x="8" y="40">time, breccia\'s is 1; to the right breccia is ahead</text>\n'
            + "\n".join([*legend, *lines, *body]) + "\n</svg>\n")


def main() -> None:
    results, folder = sys.argv[1:]
    with open(results) as file:
        found = json.load(file)
    for name, text in (("BENCHMARKS.md", page(found)), ("benchmarks.svg", picture(found))):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
