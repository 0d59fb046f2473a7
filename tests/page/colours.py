"""The colour maps of the command and of the page, for NumPy: from the same tables, by a calculation of their own."""

import pathlib
import re

import numpy as np

SOURCE = pathlib.Path(__file__).parents[2] / "cli" / "picture.c"


def viridis() -> np.ndarray:
    table = re.search(r"viridis_table\[256\] = \{(.*?)\};", SOURCE.read_text(), re.S)
    assert table
    numbers = [int(n, 16) for n in re.findall(r"0x([0-9a-f]{6})", table.group(1))]
    return np.array([[n >> 16, n >> 8 & 255, n & 255] for n in numbers], dtype=np.uint8)


def line(points: list[list[int]], n: int) -> np.ndarray:
    at = np.linspace(0, len(points) - 1, n)
    channels = [np.interp(at, np.arange(len(points)), np.array(points)[:, c]) for c in range(3)]
    return np.floor(np.stack(channels, axis=1) + 0.5).astype(np.uint8)


def diverging() -> np.ndarray:
    ends = [[23, 50, 140], [90, 150, 220], [247, 247, 247], [225, 115, 80], [140, 10, 35]]
    return np.concatenate([line(ends[:3], 128), line(ends[2:], 128)])


def grey() -> np.ndarray:
    return np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)


def shade(values: np.ndarray, low: float, high: float, table: np.ndarray) -> np.ndarray:
    """Returns red, green and blue of numbers between limits."""
    at = (values / 2 - low / 2) / (high / 2 - low / 2) * 256
    return table[np.clip(np.floor(at), 0, 255).astype(int)]
