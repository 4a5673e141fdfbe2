"""BTREE indices that pylance wrote: a lookup finds what a scan finds, reads little, and complains about damage."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader, LanceFileWriter
from tests.unit.indices.btree.test_lookup import write_index

from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.format.index import IndexMetadata
from tablewright.indices import (
    BTreeIndex,
    BTreeMatches,
    covered,
    find_rows,
    live_addresses,
    usable_btrees,
)
from tablewright.indices.btree import lookup, opened, windows
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
SPARSE = pytest.mark.parametrize("narrow", [False, True], ids=["read", "narrowed"])


def snapshot_of(uri: str | Path) -> Snapshot:
    return open_snapshot(World(open_store(str(uri))))


def identity(value: Any) -> Any:
    """What makes two values the same key: floats by their bits."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def expected(
    uri: str | Path, column: str, keys: Sequence[Any], fragments: Iterator[int] | Any
) -> list[tuple[int, int]]:
    """Positions of keys and addresses of the rows that hold them, by a flat scan of some fragments."""
    table = lance.dataset(str(uri)).scanner(columns=[column], with_row_address=True).to_table()
    rows: dict[Any, list[int]] = {}
    for value, address in zip(table[column].to_pylist(), table["_rowaddr"].to_pylist(), strict=True):
        if value is not None and address >> 32 in fragments:
            rows.setdefault(identity(value), []).append(address)
    return sorted((at, row) for at, key in enumerate(keys) if key is not None for row in rows.get(identity(key), ()))


def assert_finds(uri: str | Path, keys: pa.Array, column: str = "c", fragments: set[int] | None = None) -> None:
    """What the indices on a column find is what a scan of the covered fragments finds."""
    snapshot = snapshot_of(uri)
    field = next(field.id for field in snapshot.schema.fields if field.name == column)
    segments = usable_btrees(snapshot, field)
    known = covered(snapshot, segments)
    assert fragments is None or set(known) == fragments
    positions, addresses = find_rows(snapshot, segments, keys)
    found = list(zip(positions.tolist(), addresses.tolist(), strict=True))
    assert found == expected(uri, column, keys.to_pylist(), known)


@pytest.fixture
def narrowing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are narrowed even in an index of a few pages."""
    monkeypatch.setattr(lookup, "_FEW_PAGES", 0)
    monkeypatch.setattr(lookup, "_FEW_PAGES_BY_CODEC", 0)
    monkeypatch.setattr(windows, "_ROWS_PER_KEY", 0)
    monkeypatch.setattr(windows, "_PAGES_TO_NARROW", 0)
    monkeypatch.setattr(windows, "_WINDOW_ROWS", 1)


# --------------------------------------------------------------------------------------------------------------- types
DAY, SECOND = datetime.date(1970, 1, 1), datetime.datetime(1970, 1, 1)
KINDS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int8": (pa.int8(), lambda i: i % 250 - 125),
    "int32": (pa.int32(), lambda i: i * 1000 - 2**20),
    "int64": (pa.int64(), lambda i: (i - 2000) << 40),
    "uint8": (pa.uint8(), lambda i: i % 256),
    "uint64": (pa.uint64(), lambda i: 2**64 - 1 - i if i % 2 else i),
    "float32": (pa.float32(), lambda i: (i - 2000) / 4),
    "float64": (pa.float64(), lambda i: [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf][i] if i < 6 else i / 7),
    "string": (pa.string(), lambda i: ["", "Z", "a", "é", "𝄞", "a\0"][i] if i < 6 else f"key {i}"),
    "long strings": (pa.string(), lambda i: "prefix " * 50 + str(i)),
    "large string": (pa.large_string(), lambda i: str(i)),
    "date": (pa.date32(), lambda i: DAY + datetime.timedelta(days=i - 100)),
    "date64": (pa.date64(), lambda i: DAY + datetime.timedelta(days=i - 100)),
    "timestamp": (pa.timestamp("us"), lambda i: SECOND + datetime.timedelta(microseconds=i - 100)),
    "instant": (pa.timestamp("ms", "UTC"), lambda i: datetime.datetime.fromtimestamp(i - 9, datetime.UTC)),
    "time": (pa.time64("us"), lambda i: datetime.time(i % 24, i // 24 % 60)),
    "duration": (pa.duration("s"), lambda i: datetime.timedelta(seconds=i - 100)),
    "bool": (pa.bool_(), lambda i: i % 2 == 0),
    "binary": (pa.binary(), lambda i: i.to_bytes(3, "little")),
    "large binary": (pa.large_binary(), lambda i: b"\xff" * (i % 9)),
    "fixed": (pa.binary(4), lambda i: (i * 2654435761 % 2**32).to_bytes(4, "big")),
    "decimal": (pa.decimal128(20, 3), lambda i: decimal.Decimal(i - 2000) * 7 / 8),
    "decimal256": (pa.decimal256(50, 2), lambda i: decimal.Decimal(10) ** 40 * (i - 2000)),
}  # fmt: skip


@STABLE
@SPARSE
@pytest.mark.parametrize("name", KINDS)
def test_values_of_every_type_are_found(
    tmp_path: Path, request: pytest.FixtureRequest, name: str, stable: bool, narrow: bool
) -> None:
    """With nulls and duplicates, in several fragments and pages; probes hit, miss, repeat themselves and are null."""
    if narrow:
        request.getfixturevalue("narrowing")
    kind, make = KINDS[name]
    chosen = np.random.default_rng(1).integers(0, 4000, 9000)
    values = pa.array([None if i % 11 == 0 else make(int(i)) for i in chosen], kind)
    lance.write_dataset(pa.table({"c": values}), tmp_path, max_rows_per_file=4000, enable_stable_row_ids=stable)
    lance.dataset(tmp_path).create_scalar_index("c", "BTREE")
    lance.dataset(tmp_path).delete("_rowid % 5 = 0" if not stable else "_rowid % 5 = 1")
    keys = pa.array([*(make(i) for i in [*range(12), *range(0, 5000, 97)]), None, make(20), make(20)], kind)
    assert_finds(tmp_path, keys, fragments={0, 1, 2})


def test_many_equal_values_span_pages(tmp_path: Path) -> None:
    values = pa.array(np.repeat([1, 2, 3, 4], [10, 20_000, 5, 9000]))
    lance.write_dataset(pa.table({"c": values}), tmp_path).create_scalar_index("c", "BTREE")
    assert_finds(tmp_path, pa.array([2, 3, 5, 0, 1]))


@pytest.mark.parametrize("values", [[], [None] * 5000, [None] * 4095 + [1, 1], [None] * 4096 + [1]], ids=len)
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.decimal128(5)], ids=str)
def test_few_values_or_none(tmp_path: Path, values: list[Any], kind: pa.DataType) -> None:
    column = pa.array(values, pa.int8()).cast(kind)
    lance.write_dataset(pa.table({"c": column}), tmp_path).create_scalar_index("c", "BTREE")
    assert_finds(tmp_path, pa.array([1, 2, None]).cast(pa.int8()).cast(kind))
    assert_finds(tmp_path, pa.array([], kind))
    assert_finds(tmp_path, pa.nulls(3))


def test_floats_are_equal_as_in_pylance_merges(tmp_path: Path) -> None:
    """By their bits: -0.0 is another key than 0.0, and NaN is found."""
    floats = np.array([0, 1 << 63, 0x7FF8 << 48, 0xFFF8 << 48, 0x7FF8 << 48 | 1], np.uint64).view(np.float64)
    table = pa.table({"c": floats, "v": np.arange(5)})
    lance.write_dataset(table, tmp_path).create_scalar_index("c", "BTREE")
    snapshot = snapshot_of(tmp_path)
    positions, addresses = find_rows(snapshot, usable_btrees(snapshot, 0), pa.array(floats))
    assert positions.tolist() == addresses.tolist() == [0, 1, 2, 3, 4]
    for number in range(5):
        lance.dataset(tmp_path).merge_insert("c").when_matched_update_all().execute(
            pa.table({"c": floats[number : number + 1], "v": [100 + number]})
        )
    assert sorted(lance.dataset(tmp_path).to_table()["v"].to_pylist()) == [100, 101, 102, 103, 104]


@given(
    kind=st.sampled_from([pa.int64(), pa.string()]),
    numbers=st.lists(st.none() | st.integers(-3, 30), max_size=60),
    probes=st.lists(st.none() | st.integers(-5, 35), max_size=20),
)
def test_any_pylance_index_finds_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, kind: pa.DataType, numbers: list[Any], probes: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("any")
    column = pa.array(numbers, pa.int64()).cast(kind)
    lance.write_dataset(pa.table({"c": column}), path, max_rows_per_file=25).create_scalar_index("c", "BTREE")
    assert_finds(path, pa.array(probes, pa.int64()).cast(kind))


# -------------------------------------------------------------------------------------------- indices of our own making
def put(world: World, path: str, table: pa.Table) -> None:
    writer = DataFileWriter(world.store, path, table.schema, "2.2")
    for batch in table.to_batches():
        writer.write(batch)
    writer.close()


def new_index(**facts: Any) -> IndexMetadata:
    return IndexMetadata(uuid=uuid4(), fields=(0,), name="c_idx", dataset_version=1, **facts)


# -------------------------------------------------------------------------------------------------------------- tables
def rows(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    return pa.table({"c": numbers * 3 % 1000, "name": [f"n{i % 700}" for i in numbers], "v": numbers})


def fresh(dataset: Any) -> Any:
    return lance.dataset(dataset.uri)


HISTORY: dict[str, Callable[[Any], Any]] = {
    "delete": lambda d: d.delete("v % 7 = 0"),
    "append": lambda d: lance.write_dataset(rows(3000, 3600), d.uri, mode="append"),
    "update another column": lambda d: d.update({"v": "v + 10000"}, where="c % 10 = 3"),
    "update the key": lambda d: d.update({"c": "c + 1"}, where="v % 13 = 5"),
    "delta": lambda d: d.optimize.optimize_indices(num_indices_to_merge=0),
    "merge": lambda d: (
        d.merge_insert("v").when_matched_update_all().when_not_matched_insert_all().execute(rows(2900, 3700))
    ),
    "delete again": lambda d: d.delete("c between 100 and 300"),
    "compact": lambda d: d.optimize.compact_files(target_rows_per_fragment=1500),
    "append again": lambda d: lance.write_dataset(rows(4000, 4100), d.uri, mode="append"),
    "columns in place": lambda d: (
        d.merge_insert("v").when_matched_update_all().execute(rows(0, 50).select(["v", "name"]))
    ),
    "optimize": lambda d: d.optimize.optimize_indices(),
    "delete a fragment": lambda d: d.delete("v >= 3000 and v < 3300"),
    "compact all": lambda d: d.optimize.compact_files(),
    "rename": lambda d: d.alter_columns({"path": "name", "name": "title"}),
    "retrain": lambda d: d.optimize.optimize_indices(retrain=True),
}


@STABLE
def test_through_a_history_by_pylance(tmp_path: Path, stable: bool) -> None:
    dataset = lance.write_dataset(rows(0, 3000), tmp_path, max_rows_per_file=900, enable_stable_row_ids=stable)
    dataset.create_scalar_index("c", "BTREE")
    dataset.create_scalar_index("name", "BTREE")
    for step in HISTORY.values():
        step(fresh(dataset))
        text = "title" if "title" in fresh(dataset).schema.names else "name"
        assert_finds(tmp_path, pa.array([*range(0, 1100, 3), None]))
        assert_finds(tmp_path, pa.array([f"n{i}" for i in range(0, 800, 7)]), text)
    assert_finds(tmp_path, pa.array(range(1000)), fragments=set(snapshot_of(tmp_path).fragments.ids.tolist()))


@STABLE
def test_segments_of_one_index(tmp_path: Path, stable: bool) -> None:
    dataset = lance.write_dataset(rows(0, 3000), tmp_path, max_rows_per_file=900, enable_stable_row_ids=stable)
    segments = [dataset.create_index_uncommitted("c", "BTREE", fragment_ids=[id]) for id in (0, 1, 3)]
    dataset.commit_existing_index_segments("c_idx", "c", segments)
    snapshot = snapshot_of(tmp_path)
    assert len(usable_btrees(snapshot, 0)) == 3
    assert {BTreeIndex.open(snapshot, index).stores for index in usable_btrees(snapshot, 0)} == {"addresses"}
    assert_finds(tmp_path, pa.array(range(1000)), fragments={0, 1, 3})


def test_an_index_of_another_table_seen_from_a_branch(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 3000), tmp_path, max_rows_per_file=900)
    dataset.create_scalar_index("c", "BTREE")
    branch = fresh(dataset).create_branch("side")
    branch.delete("c % 4 = 0")
    assert_finds(tmp_path / "tree" / "side", pa.array(range(1000)), fragments={0, 1, 2, 3})


def test_a_nested_field(tmp_path: Path) -> None:
    inner = pa.array([{"c": i % 50, "d": i} for i in range(200)])
    lance.write_dataset(pa.table({"v": range(200), "s": inner}), tmp_path).create_scalar_index("s.c", "BTREE")
    snapshot = snapshot_of(tmp_path)
    positions, addresses = find_rows(snapshot, usable_btrees(snapshot, 2), pa.array([7, 60]))
    assert (positions.tolist(), addresses.tolist()) == ([0] * 4, [7, 57, 107, 157])


def test_a_row_that_two_indices_know_comes_once(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 3000), tmp_path)
    dataset.create_scalar_index("c", "BTREE", name="one")
    fresh(dataset).create_scalar_index("c", "BTREE", name="other")
    assert len(usable_btrees(snapshot_of(tmp_path), 0)) == 2
    assert_finds(tmp_path, pa.array(range(100)))


def test_row_ids_in_an_index_of_version_0_on_a_stable_table(tmp_path: Path) -> None:
    """Moved rows are found in the fragments that the bitmap was extended to; elsewhere, and deleted ones, are not."""
    dataset = lance.write_dataset(rows(0, 3000), tmp_path, max_rows_per_file=900, enable_stable_row_ids=True)
    state = dataset.scanner(columns=["c"], with_row_id=True).to_table()
    index = new_index(index_version=0, details_type_url="/lance.table.BTreeIndexDetails")
    write_index(World(open_store(str(tmp_path))), index, state["c"].combine_chunks(), state["_rowid"].to_numpy(), 64)
    dataset.update({"v": "v + 10000"}, where="c % 10 = 3")
    fresh(dataset).delete("c % 100 < 10")
    fresh(dataset).update({"v": "v + 10000"}, where="c % 30 = 13")
    snapshot = snapshot_of(tmp_path)
    ids = snapshot.fragments.ids.tolist()
    assert len(ids) == 6
    keys = pa.array(range(1000))
    for fragments in (ids, ids[:4], ids[2:], ids[-1:], []):
        known = index.with_coverage([*fragments, 77])
        matches = BTreeIndex.open(snapshot, known).lookup(keys)
        assert BTreeIndex.open(snapshot, known).stores == "row ids"
        positions, addresses = live_addresses(snapshot, known, matches)
        found = sorted(zip(positions.tolist(), addresses.tolist(), strict=True))
        assert found == expected(tmp_path, "c", keys.to_pylist(), fragments)


def test_fragments_of_a_deferred_compaction_are_covered_through_its_record(tmp_path: Path) -> None:
    """The index still holds old addresses, whatever its bitmap names: they are translated."""
    dataset = lance.write_dataset(rows(0, 3000), tmp_path, max_rows_per_file=1000)
    dataset.create_scalar_index("c", "BTREE")
    fresh(dataset).delete("c % 3 = 0")
    fresh(dataset).optimize.compact_files(defer_index_remap=True)
    assert_finds(tmp_path, pa.array(range(1000)), fragments={3})
    fresh(dataset).delete("v = 1")
    assert list(snapshot_of(tmp_path).manifest.indices[0].coverage or ()) == [3]
    assert_finds(tmp_path, pa.array(range(1000)), fragments={3})
    lance.write_dataset(rows(3000, 3100), tmp_path, mode="append")
    fresh(dataset).optimize.optimize_indices()
    assert_finds(tmp_path, pa.array(range(1000)), fragments={3, 4})


def test_which_indices_are_usable(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 100), tmp_path)
    dataset.create_scalar_index("c", "BTREE")
    dataset.create_scalar_index("name", "BITMAP")
    snapshot = snapshot_of(tmp_path)
    (index,) = usable_btrees(snapshot, 0)
    assert [len(usable_btrees(snapshot, field)) for field in (1, 2, 99)] == [0, 0, 0]
    for facts, usable in [
        ({"index_version": 1}, True),
        ({"index_version": None}, True),
        ({"index_version": 2}, False),
        ({"fragment_bitmap": None}, False),
        ({"fields": (0, 2)}, False),
        ({"details_type_url": None}, True),
        ({"files": ()}, True),
        ({"files": (), "details_type_url": None}, False),
        ({"files": tuple(replace(file, path=f"part_0_{file.path}") for file in index.files)}, False),
        ({"details_type_url": "/lance.table.BitmapIndexDetails"}, False),
    ]:
        manifest = replace(snapshot.manifest, indices=(replace(index, **facts),))
        changed = replace(snapshot, file=replace(snapshot.file, manifest=manifest))
        assert bool(usable_btrees(changed, 0)) is usable, facts


# ---------------------------------------------------------------------------------------------------------------- keys
@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path = tmp_path_factory.mktemp("typed")
    table = pa.table(
        {
            "i": pa.array([1, 2, 3], pa.int32()),
            "f": pa.array([1.5, 0.1, math.nan], pa.float32()),
            "s": ["a", "b", "c"],
            "t": pa.array([1, 2, 3], pa.timestamp("ms", "UTC")),
            "b": pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        }
    )
    lance.write_dataset(table, path)
    for name in table.schema.names:
        lance.dataset(path).create_scalar_index(name, "BTREE")
    return snapshot_of(path)


NUMBER, FLOAT, TEXT, TIME, BYTES = range(5)


@pytest.mark.parametrize(
    ("field", "keys", "found"),
    [
        (NUMBER, pa.array([3, 1], pa.int64()), [2, 0]),
        (NUMBER, pa.array([2.0, None]), [1]),
        (NUMBER, pa.chunked_array([[1], [], [2]], pa.uint8()), [0, 1]),
        (NUMBER, pa.array([decimal.Decimal("3.00")]), [2]),
        (NUMBER, pa.nulls(2), []),
        (FLOAT, pa.array([1.5, math.nan]), [0, 2]),
        (TEXT, pa.array(["c"], pa.large_string()), [2]),
        (TEXT, pa.array(["b", "b", "x"]).dictionary_encode(), [1, 1]),
        (TEXT, pa.array(["b"], pa.string_view()), [1]),
        (TIME, pa.array([2000, 5000], pa.timestamp("us", "Europe/Berlin")), [1]),
        (BYTES, pa.array([b"cd"]), [1]),
    ],
)
def test_keys_of_other_types_are_cast(typed: Snapshot, field: int, keys: Any, found: list[int]) -> None:
    assert find_rows(typed, usable_btrees(typed, field), keys)[1].tolist() == found


@pytest.mark.parametrize(
    ("field", "keys"),
    [
        (NUMBER, pa.array([2**40])),
        (NUMBER, pa.array([1.5])),
        (NUMBER, pa.array([decimal.Decimal("1.5")])),
        (NUMBER, pa.array(["1"])),
        (NUMBER, pa.array([True])),
        (FLOAT, pa.array([0.1])),
        (TEXT, pa.array([b"a"])),
        (TIME, pa.array([2500], pa.timestamp("us", "UTC"))),
        (TIME, pa.array([2], pa.timestamp("ms"))),
        (BYTES, pa.array([b"abc"])),
        (BYTES, pa.array([[b"ab"]])),
    ],
)
def test_keys_that_would_change_are_refused(typed: Snapshot, field: int, keys: pa.Array) -> None:
    (index,) = usable_btrees(typed, field)
    with pytest.raises(InvalidRequest, match="Keys of type"):
        BTreeIndex.open(typed, index).lookup(keys)


# ----------------------------------------------------------------------------------------------------- how much is read
@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path = tmp_path_factory.mktemp("million")
    numbers = np.random.default_rng(0).permutation(1_000_000)
    lance.write_dataset(pa.table({"c": numbers * 2}), path).create_scalar_index("c", "BTREE")
    return snapshot_of(path)


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many rows of values and ids were asked of the codec, and in how many requests."""
    counted = {"values": 0, "ids": 0, "requests": 0}

    def count(reader: DataFileReader, rows: int) -> None:
        for column in reader._wanted or ():
            counted[column] += rows
        counted["requests"] += reader._wanted is not None

    def read(self: DataFileReader, start: int, rows: int, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        count(self, rows)
        return whole_read(self, start, rows, rows_per_batch)

    def take(self: DataFileReader, offsets: Any, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        count(self, len(offsets))
        return whole_take(self, offsets, rows_per_batch)

    whole_read, whole_take = DataFileReader.read, DataFileReader.take
    monkeypatch.setattr(DataFileReader, "read", read)
    monkeypatch.setattr(DataFileReader, "take", take)
    return counted


@pytest.fixture(params=["codec alone", "value by value"])
def ids_taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether ids are taken by the codec, as in a file that is not local or has another encoding."""
    is_alone = request.param == "codec alone"
    if is_alone:
        monkeypatch.setattr(opened, "open_packed", lambda store, path, columns: (None,) * len(columns))
    return is_alone


def test_clustered_keys_read_the_pages_they_lie_in(
    million: Snapshot, rows_read: dict[str, int], ids_taken: bool
) -> None:
    (index,) = usable_btrees(million, 0)
    found = BTreeIndex.open(million, index).lookup(pa.array(np.arange(600_000, 800_000, 50)))
    assert found.positions.tolist() == list(range(4000))
    first, last = 300_000 // 4096, 399_999 // 4096
    ids, requests = (4000, 2) if ids_taken else (0, 1)
    assert rows_read == {"values": (last - first + 1) * 4096, "ids": ids, "requests": requests}


def test_few_pages_are_read_as_filters_read_them(million: Snapshot, rows_read: dict[str, int]) -> None:
    """Without the codec, and they are kept."""
    (index,) = usable_btrees(million, 0)
    found = BTreeIndex.open(million, index).lookup(pa.array(np.arange(600_000, 602_000)))
    assert found.positions.tolist() == list(range(0, 2000, 2))
    assert rows_read == {"values": 0, "ids": 0, "requests": 0}
    assert BTreeIndex.open(million, index).lookup(pa.array([600_002])).ids.tolist() == [found.ids[1]]


def test_scattered_keys_read_a_few_rows_each(million: Snapshot, rows_read: dict[str, int], ids_taken: bool) -> None:
    """100 keys lie in some 80 pages, which have 330,000 rows."""
    (index,) = usable_btrees(million, 0)
    keys = np.random.default_rng(1).choice(2_000_000, 100, replace=False)
    found = BTreeIndex.open(million, index).lookup(pa.array(keys))
    assert found.positions.tolist() == np.flatnonzero(keys % 2 == 0).tolist()
    assert rows_read["values"] <= (100 * (15 + 256) if ids_taken else 0)
    assert rows_read["ids"] == (len(found) if ids_taken else 0)


def test_keys_that_no_page_can_hold_read_nothing(million: Snapshot, rows_read: dict[str, int]) -> None:
    (index,) = usable_btrees(million, 0)
    assert len(BTreeIndex.open(million, index).lookup(pa.array([-5, 2_000_000, 10**12]))) == 0
    assert rows_read["requests"] == 0


def test_every_row_of_a_large_index_is_found_through_threads(million: Snapshot, ids_taken: bool) -> None:
    (index,) = usable_btrees(million, 0)
    found = BTreeIndex.open(million, index).lookup(pa.array(np.arange(0, 2_000_000, 3)))
    assert found.positions.tolist() == list(range(0, 666_667, 2))
    assert len(np.unique(found.ids)) == len(found)


# -------------------------------------------------------------------------------------------------------------- damage
@pytest.fixture
def table(tmp_path: Path) -> Path:
    lance.write_dataset(rows(0, 9000), tmp_path).create_scalar_index("c", "BTREE")
    return tmp_path


def look_up(path: Path) -> BTreeMatches:
    snapshot = snapshot_of(path)
    (index,) = usable_btrees(snapshot, 0)
    return BTreeIndex.open(snapshot, index).lookup(pa.array(range(1000)))


def file_of(path: Path, name: str) -> Path:
    (found,) = path.glob(f"_indices/*/{name}")
    return found


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    reader = LanceFileReader(str(file))
    old = reader.read_all().to_table().replace_schema_metadata(reader.metadata().schema.metadata)
    new = change(old)
    with LanceFileWriter(str(file), new.schema) as writer:
        writer.write_batch(new)


@pytest.mark.parametrize("name", ["page_data.lance", "page_lookup.lance"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "foreign", "scrambled"])
def test_damaged_files_are_named(table: Path, name: str, damage: str) -> None:
    file = file_of(table, name)
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "foreign":
        rewrite(file, lambda _: pa.table({"x": [1, 2]}))
    else:
        file.write_bytes(bytes(len(content) - 200) + content[-200:])
    with pytest.raises(CorruptTable, match=name):
        look_up(table)


def column(name: str, values: Any) -> Callable[[pa.Table], pa.Table]:
    return lambda t: t.set_column(t.schema.get_field_index(name), name, pa.array(values(t[name].to_numpy())))


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("page_lookup.lance", lambda t: t.slice(1), "2 pages of 4096 rows where page_data.lance has 9000"),
        ("page_lookup.lance", lambda t: t.drop_columns(["max"]), "no columns max"),
        ("page_lookup.lance", column("max", lambda v: v.astype("U")), "the types int64 and string"),
        ("page_lookup.lance", column("page_idx", lambda v: v + 1), "not numbered"),
        ("page_lookup.lance", column("min", lambda v: v[::-1]), "its pages are not in order"),
        ("page_lookup.lance", column("max", lambda v: [5, None, None]), "without values comes after"),
        ("page_lookup.lance", lambda t: t.replace_schema_metadata({"batch_size": "x"}), "batch_size"),
        ("page_data.lance", lambda t: t.drop_columns(["ids"]), "no column 'ids'"),
        ("page_data.lance", column("values", lambda v: v.astype(float)), "the type double instead of int64"),
        ("page_data.lance", column("values", lambda v: v[::-1]), "page 0 has other values than its bounds say"),
        ("page_data.lance", column("values", lambda v: [None, *v[1:]]), "nulls where the lookup counts none"),
        ("page_data.lance", column("ids", lambda v: v.astype(np.int32)), "the type int32 instead of uint64"),
    ],
)
def test_what_does_not_fit_is_said(table: Path, name: str, change: Any, problem: str) -> None:
    rewrite(file_of(table, name), change)
    with pytest.raises(CorruptTable, match=problem) as caught:
        look_up(table)
    assert caught.value.path.endswith(name)


def test_unsorted_values_are_noticed_while_narrowing(table: Path, narrowing: None) -> None:
    rewrite(file_of(table, "page_data.lance"), column("values", lambda v: v[::-1]))
    with pytest.raises(CorruptTable, match="its values are not in order"):
        look_up(table)


def test_addresses_beyond_a_fragment_are_damage(table: Path) -> None:
    rewrite(file_of(table, "page_data.lance"), column("ids", lambda v: v + np.uint64(5)))
    snapshot = snapshot_of(table)
    with pytest.raises(CorruptTable, match="beyond the 9000 of fragment 0"):
        find_rows(snapshot, usable_btrees(snapshot, 0), pa.array(range(1000)))


def test_an_index_in_parts_is_refused(table: Path) -> None:
    rewrite(file_of(table, "page_lookup.lance"), lambda t: t.replace_schema_metadata({"range_partitioned": "true"}))
    with pytest.raises(UnsupportedFeature, match="several parts"):
        look_up(table)


def test_shared_by_threads(million: Snapshot) -> None:
    from concurrent.futures import ThreadPoolExecutor

    (index,) = usable_btrees(million, 0)
    tree = BTreeIndex.open(million, index)
    keys = [pa.array(np.arange(start, 2_000_000, 9973)) for start in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(tree.lookup, keys))
    for probe, matches in zip(keys, found, strict=True):
        assert matches.positions.tolist() == np.flatnonzero(probe.to_numpy() % 2 == 0).tolist()
