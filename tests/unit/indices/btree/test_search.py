"""What a BTREE answers, how much it reads for that, and that damaged files are refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.indices.btree.tables import built, plan_of, table_of, tiny
from tests.unit.indices.btree.test_lookup import put

import tablewright as tw
from tablewright.data.encoder import DataFileReader
from tablewright.data.number_files import NumberFile
from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.format.index import IndexMetadata
from tablewright.indices import btree
from tablewright.indices.query import Between, Contains, HasAny, IsIn, IsNull, Query, StartsWith
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.storage.identity import SETTLED_NS
from tablewright.world import World


# ------------------------------------------------------------------------------------------------------- what it can do
@pytest.mark.parametrize(
    ("kind", "can"),
    [
        *((kind, True) for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.string())),
        *((kind, True) for kind in (pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(4), pa.date32())),
        *((kind, True) for kind in (pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("ns", "UTC"))),
        *((kind, True) for kind in (pa.duration("s"), pa.decimal128(9, 2), pa.decimal256(50, 2), pa.uuid())),
        *((kind, False) for kind in (pa.null(), pa.list_(pa.int8()), pa.struct([("a", pa.int8())]))),
        *((kind, False) for kind in (pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.float32(), 4))),
    ],
    ids=str,
)
def test_the_types_that_pylance_accepts(kind: pa.DataType, can: bool) -> None:
    assert btree.supported(kind) is can
    if can:
        assert btree.answers(IsNull(), kind)
    assert btree.answers(StartsWith("a"), kind) is (
        kind in (pa.string(), pa.large_string()) or pa.types.is_dictionary(kind)
    )


@pytest.mark.parametrize(
    "query", [Contains("a"), HasAny(pa.array(["a"])), StartsWith("a")], ids=lambda query: type(query).__name__
)
def test_other_questions_are_refused(query: Query) -> None:
    snapshot = table_of(pa.array([1, 2]), 10)
    index = built(snapshot)
    assert not btree.answers(query, pa.int64())
    with pytest.raises(TypeError, match="does not answer"):
        btree.search(snapshot, index, query)
    with pytest.raises(InvalidRequest, match="can't be looked up"):
        btree.search(snapshot, index, IsIn(pa.array(["text"])))


def test_prefixes_end_before_the_next_text() -> None:
    texts = ["a", "ab", "ab\U0010ffff", "ab\U0010ffffz", "ac", "b", "ab"]
    snapshot = table_of(pa.array(texts), 3)
    with tiny(2):
        index = built(snapshot)
    for prefix in ("a", "ab", "ab\U0010ffff", "b", "c", "\U0010ffff"):
        found = btree.search(snapshot, index, StartsWith(prefix)).ids
        assert sorted((int(id) >> 32) * 3 + (int(id) & 0xFFFF) for id in found) == [
            at for at, text in enumerate(texts) if text.startswith(prefix)
        ]


# ----------------------------------------------------------------------------------------------------- how much is read
@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, IndexMetadata]:
    """100,000 rows on a disk, where pages can be cached."""
    path = tmp_path_factory.mktemp("large")
    numbers = np.random.default_rng(0).permutation(100_000)
    tw.write_dataset(pa.table({"c": numbers}), path, max_rows_per_file=30_000)
    snapshot = open_snapshot(World(open_store(str(path))))
    index = built(snapshot)
    time.sleep(2 * SETTLED_NS / 1e9)  # what was written just now is not cached
    return snapshot, index


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each request asks for, of the codec or without it."""
    asked: list[int] = []
    read, read_numbers = DataFileReader.read, NumberFile.read

    def counting(self: DataFileReader, start: int, count: int, rows_per_batch: int) -> Any:
        asked.append(count)
        return read(self, start, count, rows_per_batch)

    def counting_numbers(self: NumberFile, places: list[int], start: int, stop: int) -> Any:
        asked.append(stop - start)
        return read_numbers(self, places, start, stop)

    monkeypatch.setattr(DataFileReader, "read", counting)
    monkeypatch.setattr(NumberFile, "read", counting_numbers)
    return asked


def test_a_lookup_reads_a_page_once(large: tuple[Snapshot, IndexMetadata], requests: list[int]) -> None:
    snapshot, index = large
    query = IsIn(pa.array([5000, 5001]))
    (first, again) = (btree.search(snapshot, index, query).ids.tolist() for _ in "ab")
    assert first == again
    assert len(first) == 2
    assert requests == [25, 4096]  # the lookup, and a page


def test_without_a_cache_a_page_is_read_once_per_query(requests: list[int]) -> None:
    snapshot = table_of(pa.array(range(50)), 50)
    index = built(snapshot)
    requests.clear()
    assert len(btree.search(snapshot, index, IsIn(pa.array([4, 5, 6]))).ids) == 3
    assert requests == [1, 50]


def test_between_reads_the_ids_alone_of_what_lies_between(
    large: tuple[Snapshot, IndexMetadata], requests: list[int]
) -> None:
    snapshot, index = large
    found = btree.search(snapshot, index, Between(low=pa.scalar(5000), high=pa.scalar(90_000), high_inclusive=False))
    assert len(found.ids) == 85_000
    about = btree.estimate(snapshot, index, Between(low=pa.scalar(5000), high=pa.scalar(90_000)))
    assert about == pytest.approx(85_001, abs=2)
    assert max(requests) == 4096 * (90_000 // 4096 - 5000 // 4096 - 1)


def test_estimates_of_keys_are_about_one_row_each(large: tuple[Snapshot, IndexMetadata]) -> None:
    snapshot, index = large
    assert btree.estimate(snapshot, index, IsIn(pa.array([5, 77_000]))) == pytest.approx(2, abs=0.01)
    assert btree.estimate(snapshot, index, IsIn(pa.array([-5, 10**9]))) == 0
    assert btree.estimate(snapshot, index, IsNull()) == 0


def test_estimates_of_values_that_fill_pages() -> None:
    snapshot = table_of(pa.array(["a"] * 10 + ["b"] * 20), 30)
    with tiny(5):
        index = built(snapshot)
    assert btree.estimate(snapshot, index, IsIn(pa.array(["b"]))) == 20
    assert btree.estimate(snapshot, index, StartsWith("a")) == 10


@pytest.mark.parametrize("rows_per_page", [100, 5])
def test_estimates_where_a_page_begins_with_nulls(rows_per_page: int) -> None:
    snapshot = table_of(pa.array([None] * 7 + list(range(20)), pa.int64()), 30)
    with tiny(rows_per_page):
        index = built(snapshot)
    assert btree.estimate(snapshot, index, Between(low=pa.scalar(5))) == pytest.approx(15, abs=2)
    assert btree.estimate(snapshot, index, Between(low=pa.scalar(0), high=pa.scalar(9))) == pytest.approx(10, abs=2)
    assert btree.estimate(snapshot, index, IsIn(pa.array([0, 19]))) == pytest.approx(2, abs=1)


# --------------------------------------------------------------------------------------------------------------- damage
@pytest.fixture
def twelve() -> tuple[Snapshot, IndexMetadata]:
    snapshot = table_of(pa.array([*range(11), None]), 20)
    with tiny(4, by_tasks=False):
        return snapshot, built(snapshot)


def rewritten(
    table: tuple[Snapshot, IndexMetadata], name: str, change: Callable[[pa.Table], pa.Table]
) -> tuple[Snapshot, IndexMetadata]:
    """A copy of the index with one of its files changed."""
    snapshot, index = table
    store, directory = snapshot.index_place(index)
    other = replace(index, uuid=uuid4())
    for file in ("page_data.lance", "page_lookup.lance"):
        reader = DataFileReader(store, f"{directory}/{file}")
        rows = pa.Table.from_batches(list(reader.read(0, reader.num_rows, 1000)), schema=reader.schema)
        put(snapshot.world, f"_indices/{other.uuid}/{file}", change(rows) if file == name else rows)
    return snapshot, other


def column(name: str, values: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(at)
        return rows.set_column(at, field, pa.array(values(rows[name].to_pylist()), field.type))

    return change


LOOKUP, DATA = "page_lookup.lance", "page_data.lance"
DAMAGE: dict[str, tuple[str, Callable[[pa.Table], pa.Table], str]] = {
    "too few pages": (LOOKUP, lambda rows: rows.slice(1), "pages of 4 rows"),
    "too many rows": (DATA, lambda rows: pa.concat_tables([rows, rows]), "pages of 4 rows"),
    "no null_count": (LOOKUP, lambda rows: rows.drop_columns(["null_count"]), "no columns null_count"),
    "no ids": (DATA, lambda rows: rows.drop_columns(["ids"]), "no column 'ids'"),
    "bounds fall": (LOOKUP, column("min", lambda values: [*values[:1], 9, 3]), "not in order"),
    "pages renumbered": (LOOKUP, column("page_idx", lambda values: values[::-1]), "not numbered"),
    "more nulls": (LOOKUP, column("null_count", lambda values: [9, 0, 0]), "it counts 9 nulls"),
    "fewer nulls": (LOOKUP, column("null_count", lambda values: [0, 0, 0]), "nulls where the lookup counts none"),
    "other bounds": (LOOKUP, column("max", lambda values: [1, *values[1:]]), "other values than its bounds"),
    "values fall": (DATA, column("values", lambda values: [None, 1, 0, *values[3:]]), "other values than its bounds"),
    "another type": (
        DATA,
        lambda rows: rows.set_column(0, "values", rows["values"].cast(pa.int32())),
        "type int32 instead of int64",
    ),
    "no batch size": (
        LOOKUP,
        lambda rows: rows.replace_schema_metadata({"batch_size": "many"}),
        "no positive number",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_refused(name: str, twelve: tuple[Snapshot, IndexMetadata]) -> None:
    file, change, problem = DAMAGE[name]
    snapshot, index = rewritten(twelve, file, change)
    with pytest.raises(CorruptTable, match=problem):
        btree.search(snapshot, index, IsIn(pa.array([0])))


@pytest.mark.parametrize("name", ["values fall", "fewer nulls", "another type", "no ids", "too few pages"])
def test_damaged_files_are_not_remapped(name: str, twelve: tuple[Snapshot, IndexMetadata]) -> None:
    file, change, _ = DAMAGE[name]
    snapshot, index = rewritten(twelve, file, change)
    with pytest.raises(CorruptTable):
        btree.remap(snapshot, index, lambda ids: (ids, ids == ids), snapshot.world, "_indices/new")
    assert list(snapshot.world.store.list("_indices/new")) == []


def test_an_index_in_several_parts_is_not_read(twelve: tuple[Snapshot, IndexMetadata]) -> None:
    snapshot, index = rewritten(
        twelve, LOOKUP, lambda rows: rows.replace_schema_metadata({"batch_size": "4", "range_partitioned": "true"})
    )
    with pytest.raises(UnsupportedFeature, match="several parts"):
        btree.search(snapshot, index, IsNull())


def test_the_plan_decides_what_is_read() -> None:
    snapshot = table_of(pa.array([1, 2, 3, 4]), 2)
    index = built(snapshot, plan_of(snapshot, fragments=tuple(snapshot.fragments)[1:]))
    assert btree.search(snapshot, index, Between()).ids.tolist() == [1 << 32, (1 << 32) + 1]
