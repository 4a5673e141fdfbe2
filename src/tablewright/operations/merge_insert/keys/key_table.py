"""The keys of the source: which source row has this key?

Each key column has a number for every value of the source (:mod:`.key_codes`). The numbers of two columns make one, by
which the pairs that occur are numbered again, and so on: a key of any number of columns and types ends as one number,
without rounding or hashing anything together. The number leads to the row.

A key with a null in it is equal to nothing: it is never found, and may come as often as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.operations.merge_insert.keys.key_codes import Coder, Codes, Column, NumberCoder, coded, numbered

__all__ = ["KeyTable", "Positions", "distinct_rows"]

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Numbering:
    """From the columns of a key to one number."""

    coders: tuple[Coder, ...]
    pairs: tuple[NumberCoder, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> tuple[_Numbering, Codes]:
        """A numbering of all keys of some rows, and the number of each row; -1 where there is a null in it."""
        first, *others = [coded(column) for column in columns]
        numbers, pairs = first[1], []
        for coder, codes in others:
            both = _paired(numbers, codes, coder.count)
            pair, numbers = numbered(both, both < 0)
            pairs.append(pair)
        return cls((first[0], *(coder for coder, _ in others)), tuple(pairs)), numbers

    @property
    def count(self) -> int:
        """How many different keys there are."""
        return (self.pairs[-1] if self.pairs else self.coders[0]).count

    def numbers(self, columns: Sequence[Column]) -> Codes:
        """The number of each key, -1 where it is not known."""
        numbers = self.coders[0].codes(columns[0])
        for coder, pair, column in zip(self.coders[1:], self.pairs, columns[1:], strict=True):
            both = _paired(numbers, coder.codes(column), coder.count)
            numbers = pair.find(both)
            numbers[both < 0] = -1
        return numbers


def _paired(numbers: Codes, codes: Codes, count: int) -> Codes:
    return np.where((numbers < 0) | (codes < 0), -1, numbers * count + codes)


class KeyTable:
    """The rows of a source by key. Threads may share it.

    ``duplicate`` are the first two rows that have one key, of the first key that comes more than once.

    >>> import pyarrow as pa
    >>> table = KeyTable([pa.array([7, None, 5]), pa.array(["a", "b", "a"])])
    >>> table.find([pa.array([5, 7, 7]), pa.array(["a", "b", "a"])]).tolist()
    [2, -1, 0]
    """

    def __init__(self, columns: Sequence[Column], first_row: int = 0) -> None:
        """``first_row`` is the position of the first of these rows in the source."""
        self._numbering, numbers = _Numbering.of(columns)
        rows = np.flatnonzero(numbers >= 0)
        self.duplicate: tuple[int, int] | None = None
        if len(rows) > self._numbering.count:
            first, second = _first_pair(numbers, self._numbering.count)
            self.duplicate = first + first_row, second + first_row
        self._rows = np.full(self._numbering.count + 1, -1, np.int64)  # the last place is for number -1
        self._rows[numbers[rows]] = rows + first_row

    def __len__(self) -> int:
        return self._numbering.count

    @property
    def rows_per_call(self) -> int:
        """From how many keys on a call of :meth:`find` is worth its fixed price."""
        return max(coder.rows_per_call for coder in self._numbering.coders)

    def find(self, columns: Sequence[Column]) -> Positions:
        """The position in the source of each key, -1 where it has none."""
        return self._rows[self._numbering.numbers(columns)]


def _first_pair(numbers: Codes, count: int) -> tuple[int, int]:
    known = numbers[numbers >= 0]
    counts = np.bincount(known, minlength=count)
    rows = np.flatnonzero(numbers == known[np.argmax(counts[known] > 1)])
    return int(rows[0]), int(rows[1])


def distinct_rows(columns: Sequence[Column], keep: str) -> Positions:
    """The rows that are left, ascending, when of several with one key the first or the last is kept.

    >>> import pyarrow as pa
    >>> distinct_rows([pa.array([1, 2, 1, None, None])], "last").tolist()
    [1, 2, 3, 4]
    """
    numbering, numbers = _Numbering.of(columns)
    rows = np.arange(len(numbers))
    keyed = rows[numbers >= 0]
    if keep == "first":
        keyed = keyed[::-1]
    chosen = np.empty(numbering.count, np.int64)
    chosen[numbers[keyed]] = keyed  # of several the last to be put there stays
    return np.sort(np.concatenate((chosen, rows[numbers < 0])))
