"""The two ways in which index files write a set of ids: how its bitmaps are put together and taken apart.

- *address map*: u32 count; per high word u32 high word, u32 length in bytes, bitmap. Length 0 means every row of the
  fragment with this number; nothing is known to write it, and only the fragment says how many rows these are.
- *treemap*: u64 count; per high word u32 high word, bitmap.

High words ascend. Format: ``docs/format/indices.md#row-sets``.

Tests: ``tests/unit/format/id_sets/test_sets.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.id_sets.bitmaps import Bitmaps, Longs, Words, gather, read_u32
from tablewright.format.id_sets.pack import pack
from tablewright.format.id_sets.unpack import headers
from tablewright.format.roaring import decode_bitmap, measure_bitmap

__all__ = ["ADDRESS_MAP", "TREEMAP", "Form", "join_sets", "split_sets"]

_Found = tuple[Longs, Longs, Longs, Longs]

_WORD = 0xFFFF
_ROUNDS = 32
_VALUES_MAX = 1 << 31


@dataclass(frozen=True, slots=True)
class Form:
    """Words before all bitmaps, words before each, and whether these hold the bitmap's length."""

    name: str
    head_words: int
    entry_words: int
    has_lengths: bool


ADDRESS_MAP = Form("row-address map", 2, 4, True)
TREEMAP = Form("treemap", 4, 2, False)


# ------------------------------------------------------------------------------------------------------------ together
def join_sets(bitmaps: Bitmaps, count: int, form: Form) -> pa.Array:
    """The bytes of ``count`` sets. The bitmaps ascend by set and high word; a set without one is empty."""
    per_set = np.bincount(bitmaps.owners, minlength=count).astype(np.int64)
    entries = form.entry_words + bitmaps.sizes
    at = np.cumsum(entries) - entries + form.head_words * (bitmaps.owners + 1)
    words_of = form.head_words + np.bincount(bitmaps.owners, weights=entries, minlength=count).astype(np.int64)
    ends = np.cumsum(words_of)
    starts = ends - words_of
    out = np.zeros(int(words_of.sum()), np.uint16)
    is_head = np.zeros(len(out), np.bool_)
    for place in range(form.head_words):
        is_head[starts + place] = True
    out[starts], out[starts + 1] = per_set & _WORD, per_set >> 16
    for place in range(form.entry_words):
        is_head[at + place] = True
    out[at], out[at + 1] = bitmaps.highs & _WORD, bitmaps.highs >> 16
    if form.has_lengths:
        size = 2 * bitmaps.sizes
        out[at + 2], out[at + 3] = size & _WORD, size >> 16
    out[~is_head] = gather(bitmaps.words, bitmaps.starts, bitmaps.sizes)
    offsets = 2 * np.append(0, ends).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers)


# --------------------------------------------------------------------------------------------------------------- apart
def split_sets(sets: pa.Array, form: Form) -> Bitmaps:
    """The bitmaps of a column of sets, in its order; what is in them is not looked at. Else ``ValueError``."""
    if sets.null_count:
        raise ValueError("a set of rows is null")
    try:
        found = _split(sets, form)
    except _OddBytesError:
        found = _one_by_one(sets, form)
    same = found.owners[1:] == found.owners[:-1]
    if np.any(same & (found.highs[1:] <= found.highs[:-1])):
        raise ValueError(f"the high words of the {form.name} are not in order")
    return found


class _OddBytesError(Exception):
    """A bitmap has an odd number of bytes: it has containers of runs, or is damaged."""


def _split(sets: pa.Array, form: Form) -> Bitmaps:
    words, edges = _words(sets)
    starts, ends = edges[:-1], edges[1:]
    if np.any(starts + form.head_words > ends):
        raise ValueError(f"the {form.name} ends too early")
    counts = read_u32(words, starts)
    if not form.has_lengths and np.any(read_u32(words, starts + 2)):
        raise ValueError(f"the {form.name} ends too early")
    if np.any(counts * form.entry_words > ends - starts):
        raise ValueError(f"the {form.name} ends too early")
    return _by_rounds(words, starts + form.head_words, ends, counts, form)


def _words(sets: pa.Array) -> tuple[Words, Longs]:
    """The bytes of a column as words, and the words at which its values begin and end."""
    wide = sets if sets.type == pa.large_binary() else sets.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    if not len(wide) or offsets is None:
        return np.zeros(0, np.uint16), np.zeros(1, np.int64)
    edges = np.frombuffer(memoryview(offsets), np.int64)[wide.offset : wide.offset + len(wide) + 1]
    if np.any((edges - edges[0]) % 2):
        raise _OddBytesError
    content = np.frombuffer(memoryview(data or b""), np.uint8)[edges[0] : edges[-1]]
    aligned = content if content.ctypes.data % 2 == 0 else content.copy()
    return aligned.view(np.uint16), (edges - edges[0]) // 2


def _by_rounds(words: Words, at: Longs, ends: Longs, counts: Longs, form: Form) -> Bitmaps:
    """The first bitmap of every set, then the second of every set that has two, and so on; sorted by set in the end.

    After some rounds few sets are left, and each of them is walked to its end.
    """
    found: list[_Found] = []
    at, active = at.copy(), np.flatnonzero(counts > 0)
    for done in range(1, _ROUNDS + 1):
        if not len(active):
            break
        here, limits = at[active], ends[active]
        if np.any(here + form.entry_words > limits):
            raise ValueError(f"the {form.name} ends too early")
        highs, body = read_u32(words, here), here + form.entry_words
        sizes = _lengths(words, here, highs) if form.has_lengths else _measured(words, body, limits)
        if np.any(body + sizes > limits):
            raise ValueError(f"the {form.name} ends too early")
        found.append((active, highs, body, sizes))
        at[active] = body + sizes
        active = active[counts[active] > done]
    for number in active.tolist():
        part, at[number] = _walk(words, int(at[number]), int(ends[number]), int(counts[number]) - _ROUNDS, form)
        found.append((np.full(len(part[0]), number), *part))
    if np.any(at != ends):
        raise ValueError(f"the {form.name} has more bytes than were expected")
    if not found:
        empty = np.zeros(0, np.int64)
        return Bitmaps(words, empty, empty, empty, empty)
    owners, highs, starts, sizes = (np.concatenate(column) for column in zip(*found, strict=True))
    return Bitmaps(words, owners, highs, starts, sizes).pick(np.argsort(owners, kind="stable"))


def _lengths(words: Words, at: Longs, highs: Longs) -> Longs:
    lengths = read_u32(words, at + 2)
    if not np.all(lengths):
        raise ValueError(_all_rows(int(highs[lengths == 0][0])))
    if np.any(lengths % 2):
        raise _OddBytesError
    return lengths // 2


def _measured(words: Words, starts: Longs, limits: Longs) -> Longs:
    sizes = headers(words, starts, limits).sizes.copy()
    for number in np.flatnonzero(sizes < 0).tolist():
        size = measure_bitmap(words[starts[number] : limits[number]].tobytes())
        if size % 2:
            raise _OddBytesError
        sizes[number] = size // 2
    return sizes


def _walk(words: Words, at: int, end: int, count: int, form: Form) -> tuple[tuple[Longs, Longs, Longs], int]:
    """High words, starts and sizes of the next ``count`` bitmaps of one set, and where they end."""
    found = np.zeros((3, count), np.int64)
    for number in range(count):
        entry = words[at : at + form.entry_words].tolist()
        if at + form.entry_words > end:
            raise ValueError(f"the {form.name} ends too early")
        high, at = entry[0] | entry[1] << 16, at + form.entry_words
        if form.has_lengths:
            length = entry[2] | entry[3] << 16
            if not length:
                raise ValueError(_all_rows(high))
            if length % 2:
                raise _OddBytesError
            size = length // 2
        else:
            size = int(_measured(words, np.array([at]), np.array([end]))[0])
        if at + size > end:
            raise ValueError(f"the {form.name} ends too early")
        found[:, number] = high, at, size
        at += size
    return (found[0], found[1], found[2]), at


# ---------------------------------------------------------------------------------------------------------- one by one
def _one_by_one(sets: pa.Array, form: Form) -> Bitmaps:
    """Sets some of whose bitmaps have an odd number of bytes: each is read, and laid out anew without runs."""
    parts = [_single(value.as_py(), form) for value in sets]
    ids = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    return pack(ids, np.array([len(part) for part in parts], np.int64))


def _single(data: bytes, form: Form) -> npt.NDArray[np.uint64]:
    if len(data) < 2 * form.head_words:
        raise ValueError(f"the {form.name} ends too early")
    count, at = int.from_bytes(data[: 2 * form.head_words], "little"), 2 * form.head_words
    found: list[npt.NDArray[np.uint64]] = []
    before = -1
    for _ in range(count):  # ends with the bytes, whatever the count claims
        body = at + 2 * form.entry_words
        if len(data) < body:
            raise ValueError(f"the {form.name} ends too early")
        high = int.from_bytes(data[at : at + 4], "little")
        length = int.from_bytes(data[at + 4 : at + 8], "little") if form.has_lengths else measure_bitmap(data[body:])
        if not length:
            raise ValueError(_all_rows(high))
        if high <= before:
            raise ValueError(f"the high words of the {form.name} are not in order")
        lows = np.frombuffer(decode_bitmap(data[body : body + length], _VALUES_MAX).to_array(), np.uint32)
        found.append(lows.astype(np.uint64) | (np.uint64(high) << np.uint64(32)))
        before, at = high, body + length
    if at != len(data):
        raise ValueError(f"the {form.name} has more bytes than were expected")
    return np.concatenate(found) if found else np.zeros(0, np.uint64)


def _all_rows(high: int) -> str:
    return f"it names all rows of fragment {high} at once, which is not supported"
