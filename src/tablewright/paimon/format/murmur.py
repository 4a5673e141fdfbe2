"""MurmurHash3, 32 bits, seed 42, of many rows at once.

Rows are whole 8-byte words, so the hash has no tail step. It is vectorised over rows: all rows mix in their first word,
then all their second, and so on. Leading words that are equal in all rows are mixed once.

Format: ``docs/format/paimon.md#key-hash``.

>>> hash_row(bytes(8))
-1670924195

Tests: ``tests/unit/paimon/format/test_binary_row.py``, ``tests/property/test_key_hashes.py``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tablewright.paimon.format.binary_cells import WORD, Words

__all__ = ["RowHashes", "hash_row"]

Hashes = npt.NDArray[np.int32]
Halves = npt.NDArray[np.uint32]

_SEED = 42
_C1, _C2, _ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_FINAL_1, _FINAL_2 = 0x85EBCA6B, 0xC2B2AE35
_ALL = 0xFFFFFFFF


class RowHashes:
    """The hashes of ``count`` rows under way: :meth:`mix` their words in order, then :meth:`finish`.

    >>> rows = RowHashes(2)
    >>> rows.mix_same(0)
    >>> rows.mix(np.array([1, 42], np.uint64))
    >>> rows.finish(16).tolist()
    [1465514398, 907821237]
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._same = _SEED  # the state of all rows, as long as they don't differ
        self._states: Halves | None = None
        self._scratch = np.empty((2, count), np.uint32)

    def mix_same(self, word: int) -> None:
        """Mix in a word that is the same in all rows. Only before any that differs."""
        for half in (word & _ALL, word >> 32):
            self._same = _mixed(self._same, half)

    def mix(self, words: Words, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Mix in the next word of these rows (``None``: of all)."""
        if self._states is None:
            self._states = np.full(self._count, self._same, np.uint32)
        halves = np.ascontiguousarray(words).view(np.uint32)
        states = self._states if rows is None else self._states[rows]
        keys, spare = self._scratch[0, : len(states)], self._scratch[1, : len(states)]
        _mix(states, halves[0::2], keys, spare)
        _mix(states, halves[1::2], keys, spare)
        if rows is not None:
            self._states[rows] = states

    def finish(self, lengths: int | npt.NDArray[np.int64]) -> Hashes:
        """The hashes of rows of these lengths in bytes."""
        states = np.full(self._count, self._same, np.uint32) if self._states is None else self._states
        spare = self._scratch[1]
        states ^= np.uint32(lengths) if isinstance(lengths, int) else lengths.astype(np.uint32)
        for shift, factor in ((16, _FINAL_1), (13, _FINAL_2), (16, 1)):
            np.right_shift(states, np.uint32(shift), out=spare)
            states ^= spare
            states *= np.uint32(factor)
        return states.view(np.int32)


def hash_row(row: bytes) -> int:
    """The hash of one row, a partition for example."""
    rows = RowHashes(1)
    for at in range(0, len(row), WORD):
        rows.mix_same(int.from_bytes(row[at : at + WORD], "little"))
    return int(rows.finish(len(row))[0])


def _mix(states: Halves, halves: Halves, keys: Halves, spare: Halves) -> None:
    np.multiply(halves, np.uint32(_C1), out=keys)
    _rotate(keys, 15, spare)
    keys *= np.uint32(_C2)
    states ^= keys
    _rotate(states, 13, spare)
    states *= np.uint32(5)
    states += np.uint32(_ADDED)


def _rotate(values: Halves, bits: int, spare: Halves) -> None:
    np.left_shift(values, np.uint32(bits), out=spare)
    values >>= np.uint32(32 - bits)
    values |= spare


def _mixed(state: int, half: int) -> int:
    key = half * _C1 & _ALL
    key = (key << 15 | key >> 17) & _ALL
    state ^= key * _C2 & _ALL
    state = (state << 13 | state >> 19) & _ALL
    return (state * 5 + _ADDED) & _ALL
