"""Medians and spreads of measurements that took turns."""
from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    """A median with the least and the greatest value."""

    median: float
    least: float
    greatest: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def ratio(mine: Sequence[float], base: Sequence[float]) -> Spread:
    """The spread of mine over base, measurement by measurement: what was measured in the same round is a pair."""
    pairs = [a / b for a, b in zip(mine, base) if b > 0]
    if not pairs:
        raise ValueError("a ratio needs at least one pair of measurements")
    return spread(pairs)


def shown(value: float) -> str:
    """Three digits, and whole numbers from a hundred on."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"
