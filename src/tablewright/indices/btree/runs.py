"""Sorted runs: of rows in memory, of a file, and of an older segment whose ids are translated.

Tests: ``tests/unit/indices/btree/test_merge.py``, ``tests/unit/indices/btree/test_build.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.data.prefetch import prefetch
from tablewright.errors import CorruptTable
from tablewright.indices.btree.merge import Block, key_at
from tablewright.indices.btree.order import Longs, order_of
from tablewright.indices.btree.picking import Picker, picked
from tablewright.indices.btree.sort import entry_order
from tablewright.indices.building import Entries, Translate
from tablewright.indices.files import open_index_file
from tablewright.indices.query import Ids
from tablewright.storage.base import Store

__all__ = ["BLOCK_ROWS", "FileRun", "JoinedRun", "MemoryRun", "TranslatedRun", "rows_per_block"]

BLOCK_ROWS = 1 << 17
_BLOCK_BYTES = 4 * 1024 * 1024
_DECODED = 3  # what values take in memory, compared with the file
_PAGE_ROWS = 4096
_BLOCKS_AHEAD = 4
_PORTIONS_AHEAD = 2


def rows_per_block(values: int, nbytes: int) -> int:
    """Rows of a block, if ``values`` of them take ``nbytes``: whole pages, of 4 MiB at most where that is possible."""
    width = max(1, nbytes // max(1, values))
    return min(BLOCK_ROWS, max(_PAGE_ROWS, _BLOCK_BYTES // width // _PAGE_ROWS * _PAGE_ROWS))


class MemoryRun:
    """Entries in memory, in any order. They are sorted here, and copied block by block when they are read."""

    def __init__(self, values: pa.Array, ids: Ids) -> None:
        order = order_of(values.type)
        assert order is not None, f"no BTREE holds {values.type}"
        assert len(values) == len(ids), "each value has an id"
        self._values, self._ids = values, ids
        if values.null_count:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            self._null_ids = np.sort(ids[~valid])
            self._values, self._ids = values.drop_null(), ids[valid]
        else:
            self._null_ids = ids[:0]
        self._picker = Picker(self._values)
        keys = order.values(self._values)
        self._order: Longs = entry_order(keys, self._ids)

    @classmethod
    def of(cls, entries: list[Entries]) -> MemoryRun:
        """The entries of at least one batch. The list is emptied, so that they are in memory once."""
        values, ids = (
            pa.concat_arrays([each.values for each in entries]),
            np.concatenate([each.ids for each in entries]),
        )
        entries.clear()
        return cls(values, ids)

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._values.type

    @property
    def null_rows(self) -> int:
        """How many entries have no value."""
        return len(self._null_ids)

    def __len__(self) -> int:
        return len(self._ids) + len(self._null_ids)

    def nulls(self) -> Iterator[Block]:
        for start in range(0, len(self._null_ids), BLOCK_ROWS):
            ids = self._null_ids[start : start + BLOCK_ROWS]
            yield Block(pa.nulls(len(ids), self._values.type), ids)

    def values(self) -> Iterator[Block]:
        rows = rows_per_block(len(self._values), self._values.nbytes)
        return prefetch(self._block, [self._order[at : at + rows] for at in range(0, len(self._order), rows)], window=3)

    def _block(self, rows: Longs) -> Block:
        return Block(self._picker.pick(rows), picked(self._ids, rows))


@dataclass(frozen=True, slots=True)
class FileRun:
    """Rows of a sorted file: those from ``start`` up to ``nulls_end`` are nulls, those up to ``stop`` values."""

    store: Store
    directory: str
    name: str
    type: pa.DataType
    start: int
    nulls_end: int
    stop: int

    def nulls(self) -> Iterator[Block]:
        return self._blocks(self.start, self.nulls_end, are_null=True)

    def values(self) -> Iterator[Block]:
        return self._blocks(self.nulls_end, self.stop, are_null=False)

    def portions(self) -> Iterator[FileRun]:
        """The rows with values, in runs of a few blocks each."""
        if self.nulls_end < self.stop:
            reader = open_index_file(self.store, self.directory, self.name, ["values", "ids"])
            step = _BLOCKS_AHEAD * rows_per_block(reader.num_rows, _DECODED * sum(reader.column_bytes))
            for start in range(self.nulls_end, self.stop, step):
                yield replace(self, start=start, nulls_end=start, stop=min(self.stop, start + step))

    def _blocks(self, start: int, stop: int, *, are_null: bool) -> Iterator[Block]:
        if start >= stop:
            return
        reader = open_index_file(self.store, self.directory, self.name, ["values", "ids"])
        order, before = order_of(self.type), None  # the last key of the batch before
        rows = rows_per_block(reader.num_rows, _DECODED * sum(reader.column_bytes))
        for batch in reader.read(start, stop - start, rows):
            values, ids = stored(batch.column("values")), batch.column("ids")
            problem = _problem(values, ids, self.type, are_null)
            if not problem and not are_null and order is not None:
                keys = order.values(values)
                problem = "its values are not in order" if _falls(keys, before) else ""
                before = key_at(keys, len(keys) - 1)
            if problem:
                raise CorruptTable(reader.where, (problem,))
            yield Block(values, ids.to_numpy())


@dataclass(frozen=True, slots=True)
class JoinedRun:
    """Runs that follow each other in the order of entries. Values are read ahead, some blocks at a time."""

    runs: tuple[FileRun, ...]

    def nulls(self) -> Iterator[Block]:
        return (block for run in self.runs for block in run.nulls())

    def values(self) -> Iterator[Block]:
        portions = (portion for run in self.runs for portion in run.portions())
        before = None
        for portion, blocks in prefetch(_read_portion, portions, window=_PORTIONS_AHEAD):
            for block in filter(len, blocks):
                first, last = _ends(block)
                if before is not None and first < before:
                    where = f"{portion.directory}/{portion.name}"
                    raise CorruptTable(where, ("its values are not in order",))
                before = last
                yield block


def _read_portion(run: FileRun) -> tuple[FileRun, list[Block]]:
    return run, list(run.values())


def _ends(block: Block) -> tuple[Any, Any]:
    """The first and the last key."""
    order = order_of(block.values.type)
    assert order is not None, f"no BTREE holds {block.values.type}"
    keys = order.values(block.values.take(pa.array([0, len(block) - 1])))
    return key_at(keys, 0), key_at(keys, 1)


@dataclass(frozen=True, slots=True)
class TranslatedRun:
    """A run with the ids that its rows have now, without those that are gone."""

    run: FileRun
    translate: Translate

    def nulls(self) -> Iterator[Block]:
        return map(self._translated, self.run.nulls())

    def values(self) -> Iterator[Block]:
        return map(self._translated, self.run.values())

    def _translated(self, block: Block) -> Block:
        ids, kept = self.translate(block.ids)
        if kept.all():
            return Block(block.values, ids)
        return Block(block.values.filter(pa.array(kept)), ids[kept])


def stored(array: pa.Array) -> pa.Array:
    """Values as they are stored: without an extension type."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _problem(values: pa.Array, ids: pa.Array, kind: pa.DataType, are_null: bool) -> str:
    if values.type != kind or ids.type != pa.uint64():
        return f"its columns have the types {values.type} and {ids.type} instead of {kind} and uint64"
    if ids.null_count:
        return "it has entries without an id"
    if values.null_count != (len(values) if are_null else 0):
        return "its nulls are not those that the lookup counts"
    return ""


def _falls(keys: Any, before: Any) -> bool:
    """Whether values fall, or begin below the last one ``before`` them."""
    if before is not None and key_at(keys, 0) < before:
        return True
    if isinstance(keys, np.ndarray):
        return bool(np.any(keys[1:] < keys[:-1]))
    return bool(pc.less(keys.slice(1), keys.slice(0, len(keys) - 1)).true_count)
