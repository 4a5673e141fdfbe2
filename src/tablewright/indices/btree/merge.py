"""Merging sorted runs in blocks: memory is one block per run, whatever their length.

1. Each run has a block in memory. The smallest of their last entries is the *bound*: no later block of any run holds
   an entry below it.
2. All entries up to the bound are cut off the blocks, sorted together and passed on. The run of the bound is used up
   by that, and reads its next block.

Entries are ordered by value, then id. Nulls are merged by ids alone: they come as blocks of nulls, before all values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tablewright.indices.btree.order import Order
from tablewright.indices.btree.picking import picked
from tablewright.indices.btree.sort import entry_order
from tablewright.indices.query import Ids

__all__ = ["Block", "Run", "merged"]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Entries of an index: either all values are null, or none is."""

    values: pa.Array
    ids: Ids

    def __len__(self) -> int:
        return len(self.ids)

    def slice(self, start: int, stop: int) -> Block:
        """The entries from ``start`` up to ``stop``."""
        return Block(self.values.slice(start, stop - start), self.ids[start:stop])


class Run(Protocol):
    """A sorted run of entries, read in blocks. Each method may be called once."""

    def nulls(self) -> Iterator[Block]:
        """Those without a value, by ids."""

    def values(self) -> Iterator[Block]:
        """Those with a value, by value."""


def merged(runs: Sequence[Run], order: Order) -> Iterator[Block]:
    """The entries of all runs in one order.

    >>> from tablewright.indices.btree.order import order_of
    >>> from tablewright.indices.btree.runs import MemoryRun
    >>> one = MemoryRun(pa.array([3, None, 1]), np.array([0, 1, 2], np.uint64))
    >>> two = MemoryRun(pa.array([2, 4]), np.array([7, 8], np.uint64))
    >>> blocks = list(merged([one, two], order_of(pa.int64())))
    >>> [value for block in blocks for value in block.values.to_pylist()]
    [None, 1, 2, 3, 4]
    """
    yield from _merged([run.nulls() for run in runs], lambda block: np.zeros(len(block), np.int64))
    yield from _merged([run.values() for run in runs], lambda block: order.values(block.values))


class _Source:
    """One run: what is left of its current block, and the keys of that."""

    def __init__(self, blocks: Iterator[Block], keys_of: Any) -> None:
        self._blocks, self._keys_of = blocks, keys_of
        self._block, self._keys = Block(pa.nulls(0), np.zeros(0, np.uint64)), np.zeros(0, np.int64)
        self.advance()

    def advance(self) -> None:
        """Read the next block that has entries; there is none after the last."""
        for block in self._blocks:
            if len(block):
                self._block, self._keys = block, self._keys_of(block)
                return
        self._block = self._block.slice(0, 0)

    def __len__(self) -> int:
        return len(self._block)

    def last(self) -> tuple[Any, int]:
        """The last entry of the block."""
        return key_at(self._keys, len(self._keys) - 1), int(self._block.ids[-1])

    def cut(self, bound: tuple[Any, int]) -> tuple[Block, Any]:
        """Take off the entries up to ``bound``, included, and their keys."""
        key, highest = bound
        low, high = position(self._keys, key, "left"), position(self._keys, key, "right")
        count = low + int(np.searchsorted(self._block.ids[low:high], np.uint64(highest), "right"))
        return self._take(count)

    def rest(self) -> tuple[Block, Any]:
        """Take off the whole block."""
        return self._take(len(self))

    def _take(self, count: int) -> tuple[Block, Any]:
        taken = self._block.slice(0, count), self._keys[:count]
        self._block, self._keys = self._block.slice(count, len(self)), self._keys[count:]
        return taken


def _merged(runs: Sequence[Iterator[Block]], keys_of: Any) -> Iterator[Block]:
    sources = [source for source in (_Source(run, keys_of) for run in runs) if len(source)]
    while len(sources) > 1:
        lasts = [source.last() for source in sources]
        bound = min(lasts)
        ending = lasts.index(bound)
        pieces = [source.rest() if at == ending else source.cut(bound) for at, source in enumerate(sources)]
        yield _sorted(pieces)
        for source in sources:
            if not len(source):
                source.advance()
        sources = [source for source in sources if len(source)]
    for source in sources:
        while len(source):
            yield source.rest()[0]
            source.advance()


def _sorted(pieces: Sequence[tuple[Block, Any]]) -> Block:
    """The entries of several sorted pieces in one order."""
    pieces = [piece for piece in pieces if len(piece[0])]
    if len(pieces) == 1:
        return pieces[0][0]
    keys = joined([keys for _, keys in pieces])
    ids = np.concatenate([block.ids for block, _ in pieces])
    order = entry_order(keys, ids)
    return Block(pa.concat_arrays([block.values for block, _ in pieces]).take(pa.array(order)), picked(ids, order))


# ---------------------------------------------------------------------------------------------------------------- keys
def key_at(keys: Any, at: int) -> Any:
    """One of the keys, as a Python value that compares as they do."""
    return int(keys[at]) if isinstance(keys, np.ndarray) else keys[at].as_py()


def position(keys: Any, key: Any, side: str) -> int:
    """How many of the ascending keys are smaller than ``key`` (``left``), or not greater (``right``)."""
    if isinstance(keys, np.ndarray):
        return int(keys.searchsorted(keys.dtype.type(key), side))  # type: ignore[call-overload]
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        found = keys[middle].as_py()
        if found < key or (side == "right" and found == key):
            low = middle + 1
        else:
            high = middle
    return low


def joined(parts: Sequence[Any]) -> Any:
    """Keys of several arrays as one."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)
