"""Merging runs in blocks: every entry once, in order, however the runs are cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable
from tablewright.indices.btree import runs
from tablewright.indices.btree.merge import Block, merged, position
from tablewright.indices.btree.order import Order, order_of
from tablewright.indices.btree.pages import data_schema
from tablewright.indices.btree.runs import FileRun, JoinedRun, MemoryRun, rows_per_block
from tablewright.indices.files import write_index_file
from tablewright.storage import open_store

entries = st.lists(st.tuples(st.none() | st.integers(0, 5), st.integers(0, 999)), max_size=20)


@dataclass(frozen=True)
class Unsorted:
    """A run whose ids do not ascend among equal values, as after a translation."""

    blocks: tuple[Block, ...]

    def nulls(self) -> Iterator[Block]:
        return iter(())

    def values(self) -> Iterator[Block]:
        return iter(self.blocks)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
@given(parts=st.lists(entries, max_size=4), rows=st.integers(1, 6))
def test_runs_of_any_length(kind: pa.DataType, parts: list[list[tuple[int | None, int]]], rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BLOCK_ROWS", rows)
        found = list(merged([run_of(part, kind) for part in parts], _order(kind)))
    values = [value for block in found for value in block.values.cast(pa.int64()).to_pylist()]
    ids = [int(id) for block in found for id in block.ids]
    everything = [entry for part in parts for entry in part]
    nulls = sorted(id for value, id in everything if value is None)
    assert list(zip(values, ids, strict=True)) == [
        *((None, id) for id in nulls),
        *sorted((value, id) for value, id in everything if value is not None),
    ]


def joined(cuts: list[pa.Array], name: str) -> JoinedRun:
    """Files with some values each, one after the other; ids count them."""
    store = open_store(f"memory://joined-{name}")
    kind, rows, files = cuts[0].type, 0, []
    for number, values in enumerate(cuts):
        ids = np.arange(rows, rows + len(values), dtype=np.uint64)
        batch = pa.record_batch([values, pa.array(ids)], schema=data_schema(kind))
        write_index_file(store, "_indices/a", f"{number}.lance", batch.schema, [batch])
        files.append(FileRun(store, "_indices/a", f"{number}.lance", kind, 0, values.null_count, len(values)))
        rows += len(values)
    return JoinedRun(tuple(files))


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_files_that_follow_each_other(kind: pa.DataType, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read ahead in portions of any size; nulls come first."""
    monkeypatch.setattr(runs, "rows_per_block", lambda values, nbytes: rows)
    monkeypatch.setattr(runs, "_BLOCKS_AHEAD", 2)
    first = pa.array([None, None, *range(10, 20)], pa.int64()).cast(kind)
    second, third = pa.array([19], pa.int64()).cast(kind), pa.array(range(20, 50), pa.int64()).cast(kind)
    run = joined([first, second, third], f"{kind}-{rows}")
    assert [len(block) for block in run.nulls()] == ([2] if rows > 1 else [1, 1])
    blocks = list(run.values())
    values = [value for block in blocks for value in block.values.cast(pa.int64()).to_pylist()]
    assert values == [*range(10, 20), 19, *range(20, 50)]
    assert [int(id) for block in blocks for id in block.ids] == list(range(2, 43))


def test_files_that_do_not_follow_each_other() -> None:
    run = joined([pa.array([1, 5]), pa.array([4, 6])], "falling")
    with pytest.raises(CorruptTable, match=r"1\.lance.*not in order"):
        list(run.values())


def run_of(part: list[tuple[int | None, int]], kind: pa.DataType) -> MemoryRun:
    values = pa.array([value for value, _ in part], pa.int64()).cast(kind)
    return MemoryRun(values, np.array([id for _, id in part], np.uint64))


def _order(kind: pa.DataType) -> Order:
    order = order_of(kind)
    assert order is not None
    return order


def test_ids_in_any_order_lose_no_entry() -> None:
    def run(*ids: int) -> Unsorted:
        return Unsorted(tuple(Block(pa.array([7, 7]), np.array(pair, np.uint64)) for pair in pairwise(ids)))

    found = list(merged([run(9, 1, 8), run(5, 6, 0), run(3, 3)], _order(pa.int64())))
    assert sorted(int(id) for block in found for id in block.ids) == sorted([9, 1, 1, 8, 5, 6, 6, 0, 3, 3])


def test_positions_in_keys() -> None:
    numbers, texts = np.array([1, 3, 3, 5]), pa.array([b"a", b"b", b"b", b"d"], pa.large_binary())
    assert [position(numbers, key, "left") for key in (0, 3, 9)] == [0, 1, 4]
    assert [position(numbers, key, "right") for key in (0, 3, 9)] == [0, 3, 4]
    assert [position(texts, key, "left") for key in (b"", b"b", b"c", b"z")] == [0, 1, 3, 4]
    assert [position(texts, key, "right") for key in (b"", b"b", b"c", b"z")] == [0, 3, 3, 4]


def test_blocks_of_wide_rows_are_shorter_but_whole_pages() -> None:
    assert rows_per_block(1000, 8000) == 1 << 17
    assert rows_per_block(1000, 1000 * 200) == 20_480
    assert rows_per_block(10, 10**9) == 4096
