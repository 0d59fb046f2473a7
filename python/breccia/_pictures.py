"""Small pictures for notebooks: the chunks of an array, and its elements, as SVG and PNG in the page itself."""
from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from typing import Any

import numpy as np

from ._native import printable

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

MOST_DECODED = 1 << 25  # bytes of the chunks that a picture is made of
SIDE, SIDE_COLORS = 160, 96  # the longer side of a picture in elements: as a page it has at most 64 KiB
POINTS = 600            # of a line
DRAWN = 20              # chunks along an axis; of more, some lines are left out

# Every 17th of viridis' 256 colours; the others lie nearly on straight lines between these.
_VIRIDIS = ("440154481a6c472f7d414487" "39568c31688e2a788e23888e1f988b22a88435b77954c568"
            "7ad151a5db36d2e21bfde725")


def palette() -> Pixels:
    """256 colours as red, green and blue."""
    some = np.frombuffer(bytes.fromhex(_VIRIDIS), "u1").reshape(-1, 3)
    between = [np.interp(np.arange(256), np.arange(0, 256, 17), some[:, i]) for i in range(3)]
    made: Pixels = np.rint(np.stack(between, 1)).astype(np.uint8)
    return made


def png(pixels: Pixels, missing: bool = False) -> bytes:
    """A PNG file of numbers of colours, (height, width), or of red, green, blue and perhaps opacity, (height, width, 3
    or 4). `missing`: the last colour, number 255, is transparent."""
    rows = pixels.reshape(pixels.shape[0], -1)
    kind = {2: 3}.get(pixels.ndim) or {3: 2, 4: 6}[pixels.shape[2]]
    raw = np.pad(rows, ((0, 0), (1, 0))).tobytes()  # before each line the filter: none
    parts = [(b"IHDR", struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, kind, 0, 0, 0))]
    if kind == 3:
        parts.append((b"PLTE", palette().tobytes()))
        if missing:
            parts.append((b"tRNS", b"\xff" * 255 + b"\x00"))
    parts += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)


def is_color(array: Any) -> bool:
    """Returns whether the last dimension is red, green, blue and perhaps opacity, as in `read --image`."""
    return array.data_type == "uint8" and array.ndim > 2 and array.shape[-1] in (3, 4)


def sample(array: Any) -> np.ndarray[Any, Any] | None:
    """Evenly spread elements of the last dimensions, the first of all others; None where nothing can be drawn, or
    where more than MOST_DECODED bytes would be decoded for it."""
    dtype, item, color = array._form.dtype, array._form.item, is_color(array)
    if dtype is None or dtype.kind not in "biuf" or not array.ndim or not array.size:
        return None
    shown = min(array.ndim, 3 if color else 2)
    sides = [SIDE_COLORS, SIDE_COLORS, 4] if color else [POINTS] if shown == 1 else [SIDE, SIDE]
    key: list[Any] = [0] * (array.ndim - shown)
    decoded, shape = item * math.prod(array.chunks), array.shape[-shown:]
    common = max(-(-n // side) for n, side in zip(shape, sides, strict=True))
    for n, chunk in zip(shape, array.chunks[-shown:], strict=True):
        step = min(common, -(-n // 8))  # the ratio of the sides stays, unless one is very short
        key.append(slice(None, None, step))
        decoded *= min(-(-n // chunk), -(-n // step))
    return None if decoded > MOST_DECODED else np.asarray(array[tuple(key)])


def _scaled(data: np.ndarray[Any, Any], parts: tuple[float, float]) -> tuple[Any, float, float] | None:
    """Numbers from 0 to 1, NaN where there is none, and what 0 and 1 stand for: these percentiles."""
    values = data.astype("f8")
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    # Halves, since the difference of two large numbers may be infinite.
    low, high = map(float, np.percentile(finite / 2, parts) * 2)
    if low == high:
        low, high = float(finite.min()), float(finite.max())
    with np.errstate(all="ignore"):
        scaled = (values / 2 - low / 2) / ((high / 2 - low / 2) or 1)
    return np.clip(scaled, 0, 1), low, high


def _image(data: bytes, shape: tuple[int, ...], says: str) -> str:
    height, width = np.multiply(shape[:2], max(1, SIDE // max(shape[:2])))
    return (f"<img src='data:image/png;base64,{base64.b64encode(data).decode()}' width='{width}' height='{height}' "
            f"style='image-rendering:pixelated' title='{says}' alt='{says}'>")


def picture(array: Any) -> str:
    """A thumbnail of an array with two dimensions (of more, its first plane; of colours, its first image), or a line
    of one with one. "" where there is nothing to draw."""
    data = sample(array)
    if data is None:
        return ""
    if is_color(array):
        return _image(png(data), data.shape, "red, green and blue")
    found = _scaled(data, (2, 98) if data.ndim == 2 else (0, 100))
    if found is None:
        return ""
    scaled, low, high = found
    if data.ndim == 2:
        missing = bool(np.isnan(scaled).any())
        top = 254 if missing else 255
        colors = np.where(np.isnan(scaled), 255, np.minimum(scaled * (top + 1), top)).astype(np.uint8)
        return _image(png(colors, missing), colors.shape, f"{low:g} to {high:g}")
    points = " ".join(f"{i * 300 / max(1, len(data) - 1):.1f},{98 - 96 * scaled[i]:.1f}"
                      for i in np.flatnonzero(np.isfinite(data)))
    return (f"<svg width='300' height='100' role='img'><title>{low:g} to {high:g}</title><polyline "
            f"fill='none' stroke='currentColor' points='{points}'/></svg>")


def _cuts(extent: int, chunk: int, size: float) -> list[float]:
    """Where the lines between chunks are on a side of `size`, with both ends; of many chunks not all."""
    n = -(-extent // chunk)
    cuts = range(0, n, -(-n // DRAWN))
    return [min(1.0, i * chunk / extent) * size for i in cuts] + [size]


def _lines(corner: tuple[float, float], right: tuple[float, float], down: tuple[float, float],
           cuts: tuple[list[float], list[float]]) -> str:
    """A parallelogram with the lines in it, along `right` and `down`, which have the length 1."""
    (x, y), ends = corner, (cuts[0][-1], cuts[1][-1])
    at = [(x + right[0] * a + down[0] * b, y + right[1] * a + down[1] * b)
          for a, b in ((0, 0), (ends[0], 0), (ends[0], ends[1]), (0, ends[1]))]
    out = "<polygon fill='#8883' points='" + " ".join(f"{a:.1f},{b:.1f}" for a, b in at) + "'/><path d='"
    for one, other, way, end in ((right, down, cuts[0], ends[1]), (down, right, cuts[1], ends[0])):
        for cut in way:
            a, b = x + one[0] * cut, y + one[1] * cut
            out += f"M{a:.1f} {b:.1f}l{other[0] * end:.1f} {other[1] * end:.1f}"
    return out + "'/>"


def chunk_figure(array: Any) -> str:
    """The last three dimensions and how they are cut into chunks: a line, an area or a block. "" without elements."""
    extents, chunks = array.shape[-3:], array.chunks[-3:]
    if not extents or not array.size:
        return ""
    longest = max(extents)
    sizes = [max(16.0, 120 * (n / longest) ** 0.5) for n in extents]
    cuts = [_cuts(n, c, s) for n, c, s in zip(extents, chunks, sizes, strict=True)]
    cuts = [[0.0, 16.0]] * (len(cuts) == 1) + cuts
    height, width = cuts[-2][-1], cuts[-1][-1]
    deep = cuts[0] if len(cuts) == 3 else []
    slant = [c * 0.5 for c in deep]  # the first dimension goes to the back
    shift = slant[-1] * 0.7 if slant else 0.0
    body = ""
    if slant:
        back = (0.7, -0.7)
        body += _lines((1, shift + 1), (1, 0), back, (cuts[-1], slant))
        body += _lines((width + 1, shift + 1), (0, 1), back, (cuts[-2], slant))
    body += _lines((1, shift + 1), (1, 0), (0, 1), (cuts[-1], cuts[-2]))
    names = [printable(n) if n else "" for n in (array.dimension_names or [""] * array.ndim)[-3:]]
    says = " × ".join(f"{n}{' ' if n else ''}{e}" for n, e in zip(names, extents, strict=True))
    return (f"<svg width='{width + shift + 2:.0f}' height='{height + shift + 2:.0f}' role='img' stroke='currentColor' "
            f"stroke-width='0.7' fill='none'><title>{html.escape(says)}, in chunks of "
            f"{' × '.join(map(str, chunks))}</title>{body}</svg>")
