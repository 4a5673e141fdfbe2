"""Split-block Bloom filters, as Parquet defines them, many at once.

A filter is a row of blocks of 256 bits, each of eight 32-bit words. A hash picks a block by its upper half, and by its
lower half one bit of each word of that block. Filters have a power of two of bytes, the smallest for which the expected
rate of false positives is low enough; the rate is that of Putze, Sanders and Singler, *Cache-, Hash- and
Space-Efficient Bloom Filters* (2007), equation 3.

Specification: https://parquet.apache.org/docs/file-format/bloomfilter/

Tests: ``tests/unit/indices/bloomfilter/test_blocks.py``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tablewright.indices.bloomfilter.hashes import Hashes

__all__ = ["BLOCK_BYTES", "bytes_needed", "filters_of", "may_hold", "widened"]

BLOCK_BYTES = 32
_BYTES_MAX = 128 << 20
_WORDS, _WORD_BITS = 8, 32
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_CELLS_MAX = 1 << 22  # bits that are set, or hashes that are looked for, at a time


@lru_cache(maxsize=64)
def bytes_needed(items: int, probability: float) -> int:
    """The size of a filter of this many values with at most this probability of a false positive.

    >>> bytes_needed(8192, 0.00057), bytes_needed(24, 0.01), bytes_needed(25, 0.01)
    (32768, 32, 64)
    """
    size = BLOCK_BYTES
    while size < _BYTES_MAX and _false_positives(items, size) > probability:
        size *= 2
    return size


def _false_positives(items: int, size: int) -> float:
    """The expected rate: over the number of values in a block, which has a Poisson distribution."""
    mean = items * BLOCK_BYTES / size
    most = int(mean + 20 * math.sqrt(mean) + 100)
    counts = np.arange(1, most, dtype=np.float64)
    logs = counts * math.log(mean) - mean - np.cumsum(np.log(counts))
    return float(np.sum(np.exp(logs) * (1 - (1 - 1 / _WORD_BITS) ** counts) ** _WORDS))


def filters_of(hashes: Hashes, groups: npt.NDArray[np.int64], count: int, size: int) -> npt.NDArray[np.uint8]:
    """``count`` filters of ``size`` bytes, one in each row; filter ``groups[i]`` gets hash i. Groups ascend."""
    filters = np.zeros((count, size), np.uint8)
    step = max(1, _CELLS_MAX // (size * 8))
    for first in range(0, count, step):
        last = min(count, first + step)
        low, high = np.searchsorted(groups, [first, last])
        bits = np.zeros((last - first) * size * 8, np.bool_)
        begins = (groups[low:high] - first) * (size * 8) + _blocks(hashes[low:high], size // BLOCK_BYTES) * 256
        lower = hashes[low:high].astype(np.uint32)
        for word, salt in enumerate(_SALTS):
            bits[begins + ((lower * salt) >> np.uint32(27)) + word * _WORD_BITS] = True
        filters[first:last] = np.packbits(bits, bitorder="little").reshape(last - first, size)
    return filters


def may_hold(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], hashes: Hashes
) -> npt.NDArray[np.bool_]:
    """Which of the filters, at ``starts`` of ``data``, may hold at least one of the hashes."""
    found = np.zeros(len(starts), np.bool_)
    words = np.ndarray((max(0, len(data) - 3),), np.dtype("<u4"), np.ascontiguousarray(data), strides=(1,))
    masks = np.uint32(1) << _bits(hashes).astype(np.uint32)
    step = max(1, _CELLS_MAX // max(1, len(starts) * _WORDS))
    for first in range(0, len(hashes), step):
        some = slice(first, first + step)
        left = np.flatnonzero(~found)
        blocks = _blocks(hashes[some][np.newaxis, :], (sizes[left] // BLOCK_BYTES)[:, np.newaxis])
        places = starts[left][:, np.newaxis] + blocks * BLOCK_BYTES
        held = words[places[:, :, np.newaxis] + np.arange(_WORDS) * 4] & masks[some] == masks[some]
        found[left] = held.all(axis=2).any(axis=1)
    return found


def widened(blocks: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """A filter in more bytes, which holds all that it held; one that can't be widened becomes one that holds all."""
    if size % len(blocks):
        return np.full(size, 0xFF, np.uint8)
    return np.repeat(blocks.reshape(-1, BLOCK_BYTES), size // len(blocks), axis=0).ravel()


def _blocks(hashes: Hashes, count: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
    upper = hashes >> np.uint64(32)
    return ((upper * np.asarray(count).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def _bits(hashes: Hashes) -> npt.NDArray[np.int64]:
    """The bit of each word, eight for each hash."""
    lower = hashes.astype(np.uint32)
    return ((lower[:, np.newaxis] * _SALTS) >> np.uint32(27)).astype(np.int64)
