"""The data that the sides store: made from seeds, or the real arrays that SHARED has."""
from __future__ import annotations

import gzip
import os
from typing import Any

import numpy as np


def blocks(mib: int) -> tuple[int, int, int]:
    """Returns how many cubes of 8 MiB along each axis make about `mib` MiB, nearly a cube."""
    count = max(1, round(mib / 8))
    best = min(((a, b, count // (a * b)) for a in range(1, count + 1) for b in range(a, count + 1)
                if count % (a * b) == 0 and count // (a * b) >= b), key=lambda s: s[2] - s[0])
    return best


def shape(mib: int, item: int = 4) -> tuple[int, int, int]:
    """A cube of 128 x 128 x 128 elements of 4 bytes has 8 MiB; elements of fewer bytes have longer axes. The
    smallest cube has 1 MiB."""
    z, y, x = (128 * n for n in blocks(mib)) if mib >= 8 else (64, 64, 64)
    return z, y * (2 if item == 1 else 1), x * (2 if item < 4 else 1)


def smooth(mib: int) -> Any:
    """A smooth field and a little noise, rounded to 14 bits of mantissa: what weather and ocean models store."""
    random = np.random.default_rng(1)
    z, y, x = np.meshgrid(*[np.linspace(0, 6, n, dtype="f4") for n in shape(mib)], indexing="ij", sparse=True)
    field = (np.sin(z * 2 + y) + np.cos(x * 3 - z)).astype("f4")
    field += random.standard_normal(field.shape, dtype="f4") * np.float32(1e-4)
    return (field.view("u4") & np.uint32(0xFFFFFE00)).view("f4")


def images(mib: int) -> Any:
    """Spots of light, and noise that grows with the light: microscopy."""
    random = np.random.default_rng(2)
    depth, height, width = shape(mib, 2)
    made = np.full((depth, height, width), 100, "f4")
    for _ in range(200):
        z, y, x = random.random(3) * (depth, height, width)
        radius = 4 + random.random() * 12
        cut = [slice(max(0, int(c - 3 * radius)), int(c + 3 * radius) + 1) for c in (z, y, x)]
        grid = np.ogrid[tuple(slice(c.start, min(c.stop, n)) for c, n in zip(cut, made.shape))]
        distance = sum((g - c) ** 2 for g, c in zip(grid, (z, y, x)))
        made[tuple(cut)] += 4000 * np.exp(-distance / (2 * radius**2))
    made += random.standard_normal(made.shape, dtype="f4") * np.sqrt(made) * np.float32(0.7)
    return made.astype("i2")


def labels(mib: int) -> Any:
    """Cells around random seeds, and a background: segmentations."""
    random = np.random.default_rng(3)
    size = shape(mib, 1)
    coarse = tuple(max(1, n // 4) for n in size)
    seeds = random.random((60, 3)) * coarse
    z, y, x = np.ogrid[tuple(slice(0, n) for n in coarse)]
    nearest, made = np.full(coarse, np.inf, "f4"), np.zeros(coarse, "u1")
    for label, seed in enumerate(seeds, 1):
        distance = ((z - seed[0]) ** 2 + (y - seed[1]) ** 2 + (x - seed[2]) ** 2).astype("f4")
        closer = distance < nearest
        nearest[closer], made[closer] = distance[closer], label
    made[nearest > (max(coarse) / 5) ** 2] = 0
    return np.repeat(np.repeat(np.repeat(made, 4, 0), 4, 1), 4, 2)


def noise(mib: int) -> Any:
    size = shape(mib, 1)
    return np.frombuffer(np.random.default_rng(4).bytes(int(np.prod(size))), "u1").reshape(size)


def embedding(mib: int) -> Any:
    """Rows of 256 numbers, of length 1."""
    made = np.random.default_rng(5).standard_normal((mib * 1024, 256), dtype="f4")
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def winds(shared: str) -> Any:
    made = np.load(os.path.join(shared, "data", "era-u-wind-f32.npy"))
    return np.ascontiguousarray(made.reshape(-1, *made.shape[-2:]))


def heights(shared: str) -> Any:
    made = np.load(os.path.join(shared, "data", "era-z-packed-i16.npy"))
    return np.ascontiguousarray(made.reshape(-1, *made.shape[-2:]))


def digits(shared: str) -> Any:
    with gzip.open(os.path.join(shared, "data", "mnist-t10k-images-idx3-ubyte.gz")) as file:
        return np.frombuffer(file.read(), "u1", offset=16).reshape(-1, 28, 28)


SEEDED = {"smooth": smooth, "images": images, "labels": labels, "noise": noise, "embedding": embedding}
SHARED = {"winds": winds, "heights": heights, "digits": digits}
