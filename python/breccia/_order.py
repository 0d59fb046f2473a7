"""In which order the samples of an epoch come: a function of the seed, the epoch and how windows are cut, and of
nothing else. Nothing here is as long as the data set, but for the order of its chunks.

      blocks, shuffled     3 0 5 1 | 4 6 2 7 | ...        a block: the rows of one chunk
      window               3 0 5 1                        its blocks are decoded together, their rows shuffled
      with two lanes       3 5 and 0 1                    a batch has rows of one lane, and lanes take turns
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ._rows import Rows

WINDOW_BYTES, WINDOW_BLOCKS, MOST_LANES = 64 << 20, 16, 8


def shuffled(n: int, *key: int) -> Any:
    """A permutation of n numbers: the same for the same key everywhere, with every version of NumPy."""
    return np.argsort(np.random.Philox(np.random.SeedSequence(key)).random_raw(n), kind="stable")


class Order:
    """How the samples are cut into blocks, windows, lanes and batches."""

    def __init__(self, rows: Rows, *, shuffle: bool, seed: int, window: int | None, lanes: int | None,
                 batch: int | None) -> None:
        for name, value in ("window", window), ("lanes", lanes), ("batch_size", batch), ("seed", seed + 1):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value if name != 'seed' else seed}, which is too small")
        self.rows, self.shuffle, self.seed, self.batch = rows, shuffle, seed, batch or 1
        self.block = max(rows.fields, key=lambda f: f.nbytes).chunk
        self.begin = rows.first // self.block
        self.blocks = -(-rows.stop // self.block) - self.begin if len(rows) else 0
        if window is None:
            size = self.block * max(1, sum(f.nbytes for f in rows.fields))
            each = max(WINDOW_BLOCKS, WINDOW_BYTES // size)
        else:
            each = window // self.block
        each = max(1, min(each, self.blocks))
        if lanes is None:
            lanes = 1
            while shuffle and lanes < MOST_LANES and each // (2 * lanes) >= WINDOW_BLOCKS:
                lanes *= 2
        if lanes > each or (lanes > 1 and not shuffle):
            raise ValueError(f"{lanes} lanes do not fit: a window has {each} chunks" if shuffle else
                             f"{lanes} lanes do not fit an order that is not shuffled")
        self.lanes, self.each = lanes, each - each % lanes
        self.window = min(len(rows), self.each * self.block)

    @property
    def described(self) -> dict[str, Any]:
        """What the order depends on besides the epoch."""
        return {"shuffle": self.shuffle, "seed": self.seed, "block": self.block, "window": self.window,
                "lanes": self.lanes, "batch_size": self.batch, "rows": [self.rows.first, self.rows.stop]}

    def epoch(self, number: int) -> Epoch:
        return Epoch(self, number)


class Epoch:
    """The order of one epoch."""

    def __init__(self, order: Order, number: int) -> None:
        self.order, self.number = order, number
        self._blocks = shuffled(order.blocks, order.seed, number) if order.shuffle else np.arange(order.blocks)
        self._blocks += order.begin
        start, stop = self._bounds(self._blocks)
        cuts = np.arange(0, order.blocks, order.each)
        # Where each window begins in the epoch, and at last where the epoch ends.
        lengths = np.add.reduceat(stop - start, cuts) if len(cuts) else np.zeros(0, np.int64)
        self.starts = np.concatenate([[0], np.cumsum(lengths)])

    def _bounds(self, blocks: Any) -> tuple[Any, Any]:
        size, rows = self.order.block, self.order.rows
        return np.maximum(blocks * size, rows.first), np.minimum((blocks + 1) * size, rows.stop)

    def _rows(self, blocks: Any) -> Any:
        return np.concatenate([np.arange(a, b) for a, b in zip(*self._bounds(blocks))])

    def window(self, g: int) -> Any:
        """The rows of a window in their order."""
        order = self.order
        blocks = self._blocks[g * order.each:(g + 1) * order.each]
        key = order.seed, self.number, g
        if not order.shuffle:
            return self._rows(blocks)
        if order.lanes == 1:
            rows = self._rows(blocks)
            return rows[shuffled(len(rows), *key, 0)]
        return self._in_lanes([blocks[lane::order.lanes] for lane in range(min(order.lanes, len(blocks)))],
                              int(self.starts[g]), key)

    def _in_lanes(self, lanes: list[Any], start: int, key: tuple[int, ...]) -> Any:
        """Batches of one lane each, in turn; what is left of all lanes completes the batch that the window before
        began, and begins the last."""
        size, count = self.order.batch, self.order.lanes
        head = -start % size
        whole: list[Any] = []
        left: list[Any] = []
        lane_of: list[Any] = []
        turn_of: list[Any] = []
        for lane, blocks in enumerate(lanes):
            rows = self._rows(blocks)
            rows = rows[shuffled(len(rows), *key, lane)]
            full = len(rows) // size
            if full and lane == len(lanes) - 1 and sum(len(one) for one in left) + len(rows) - full * size < head:
                full -= 1
            whole.append(rows[:full * size].reshape(full, size))
            left.append(rows[full * size:])
            lane_of.append(np.full(full, (lane - (start + head) // size) % count))
            turn_of.append(np.arange(full))
        rest = np.concatenate(left)
        rest = rest[shuffled(len(rest), *key, len(lanes))]
        batches = np.concatenate(whole)[np.lexsort((np.concatenate(lane_of), np.concatenate(turn_of)))]
        return np.concatenate([rest[:head], batches.reshape(-1), rest[head:]])

    def needed(self, rows: Any, mine: Any) -> tuple[Any, Any]:
        """The blocks of the rows that are `mine`, and for each row its place where these lie one behind the other."""
        numbers, within = np.divmod(rows, self.order.block)
        blocks = np.unique(numbers[mine])
        return blocks, np.searchsorted(blocks, numbers) * self.order.block + within
