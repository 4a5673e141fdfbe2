"""Update in both ways, alone and mixed, refereed by pylance on the same table."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import FrozenBitMap
from tests.unit.operations.test_update import numbers
from tests.unit.operations.updates import update_rows

import tablewright as tw
from tablewright.format.row_ids import decode_row_ids
from tablewright.operations.rewrite.limits import RewriteLimits
from tablewright.operations.update import (
    UpdateOptions,
    UpdatePlan,
    plan_update,
)

MODES = ("rewrite_rows", "rewrite_columns", "auto")


@pytest.fixture(params=["addresses", "stable"])
def stable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "stable")


@pytest.fixture
def table(stable: bool, tmp_path: Path) -> tw.LanceDataset:
    dataset = tw.write_dataset(numbers(60), tmp_path / "t", max_rows_per_file=20, enable_stable_row_ids=stable)
    dataset.delete("id in (3, 4, 25)")
    return dataset


def rows_by_id(dataset: Any) -> list[dict[str, Any]]:
    return sorted(dataset.to_table().to_pylist(), key=lambda row: row["id"])


def refereed(dataset: tw.LanceDataset) -> list[dict[str, Any]]:
    """The rows as pylance reads them, by id, after it has looked at everything."""
    theirs = lance.dataset(dataset.uri)
    theirs.validate()
    dataset.validate()
    assert theirs.version == dataset.version
    system = ["_rowid", "_rowaddr"]
    if dataset.has_stable_row_ids:
        system += ["_row_created_at_version", "_row_last_updated_at_version"]
    columns = [*dataset.schema.names, *system]
    assert theirs.to_table(columns=columns).equals(dataset.to_table(columns=columns))
    return rows_by_id(theirs)


UPDATES: list[tuple[dict[str, str], Any]] = [
    ({"x": "x * 2 + 1"}, "id % 3 = 0"),
    ({"x": "1"}, None),
    ({"x": "NULL"}, "id < 20"),
    ({"s": "concat(s, '!')"}, "s is not null"),
    ({"s": "upper(s)", "x": "cast(id as double)"}, "id > 50 or id < 5"),
    ({"x": "2", "id": "id + 1000"}, "id in (1, 30, 59)"),
    ({"st": "named_struct('a', 1, 'b', named_struct('c', 'z'))"}, "id % 2 = 0"),
    ({"st": "NULL"}, "id % 2 = 0"),
    ({"s": "id"}, "id = 7"),
    ({"x": "'2.5'"}, "id = 7"),
    ({"x": "x"}, "false"),
    ({"x": "0"}, "x is null"),
    ({"x": "-1"}, pc.field("id") >= 40),
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("updates", "where"), UPDATES, ids=str)
def test_as_pylance_does_it(
    table: tw.LanceDataset, tmp_path: Path, updates: dict[str, str], where: Any, mode: str
) -> None:
    theirs = lance.write_dataset(table.to_table(), tmp_path / "twin", max_rows_per_file=20)
    expected = theirs.update(updates, where=where)
    assert table.update(updates, where, write_mode=mode) == expected
    assert refereed(table) == rows_by_id(theirs)


@pytest.mark.parametrize("mode", MODES)
class TestMeaning:
    def test_all_see_the_old_values(self, tmp_path: Path, mode: str) -> None:
        dataset = tw.write_dataset({"id": [1, 2], "a": [10, 20], "b": [1, 2]}, tmp_path / "t")
        dataset.update({"a": "b", "b": "a + id"}, where="a > 0", write_mode=mode)
        assert refereed(dataset) == [{"id": 1, "a": 1, "b": 11}, {"id": 2, "a": 2, "b": 22}]

    def test_expressions_see_no_other_rows(self, table: tw.LanceDataset, mode: str) -> None:
        table.update({"x": "100 / (id - 7)"}, where="id <> 7", write_mode=mode)
        by_id = {row["id"]: row["x"] for row in refereed(table)}
        assert (by_id[7], by_id[8], by_id[57]) == (7 / 4, 100.0, 2.0)

    def test_case(self, table: tw.LanceDataset, mode: str) -> None:
        table.update({"s": "CASE WHEN id % 2 = 0 THEN 'even' ELSE s END"}, write_mode=mode)
        found = {row["id"]: row["s"] for row in refereed(table)}
        assert found == {
            i: "even" if i % 2 == 0 else None if i % 5 == 2 else f"row {i}" for i in range(60) if i not in (3, 4, 25)
        }

    def test_now_is_one_moment(self, tmp_path: Path, mode: str) -> None:
        times = pa.array([None] * 6, pa.timestamp("ns"))
        dataset = tw.write_dataset(
            pa.table({"id": range(6), "t": times, "u": times}), tmp_path / "t", max_rows_per_file=1
        )
        dataset.update({"t": "now()", "u": "now()"}, write_mode=mode)
        moments = {value for row in refereed(dataset) for value in (row["t"], row["u"])}
        assert len(moments) == 1

    def test_names_are_found_without_case(self, table: tw.LanceDataset, mode: str) -> None:
        table.update({"X": "5", "ST.B.C": "'deep'"}, where="ID = 8", write_mode=mode)
        row = next(row for row in refereed(table) if row["id"] == 8)
        assert (row["x"], row["st"]) == (5.0, {"a": 8, "b": {"c": "deep"}})

    def test_system_columns_can_be_read(self, table: tw.LanceDataset, mode: str) -> None:
        before = {row["id"]: row["_rowid"] for row in table.to_table(columns=["id", "_rowid"]).to_pylist()}
        table.update({"x": "_rowid"}, where="_rowaddr >= 4294967296", write_mode=mode)
        found = {row["id"]: row["x"] for row in refereed(table)}
        assert all(found[i] == before[i] for i in found if i >= 20)

    def test_a_field_of_a_struct(self, table: tw.LanceDataset, mode: str) -> None:
        table.update({"st.a": "id * 2"}, where="id < 10", write_mode=mode)
        found = {row["id"]: row["st"] for row in refereed(table)}
        assert found[2] == {"a": 4, "b": {"c": "2"}}
        assert found[5] == {"a": 10, "b": None}  # it was null
        assert found[16] is None
        assert found[17] == {"a": 17, "b": {"c": "17"}}

    def test_two_fields_of_a_struct(self, table: tw.LanceDataset, mode: str) -> None:
        table.update({"st.a": "-1", "st.b.c": "s"}, where="id in (6, 12)", write_mode=mode)
        found = {row["id"]: row["st"] for row in refereed(table)}
        assert found[6] == {"a": -1, "b": {"c": "row 6"}}
        assert found[12] == {"a": -1, "b": {"c": None}}

    def test_nothing_matches(self, table: tw.LanceDataset, mode: str) -> None:
        before = refereed(table)
        assert table.update({"x": "1"}, where="id = 99", write_mode=mode) == {"num_rows_updated": 0}
        assert (table.version, refereed(table)) == (3, before)
        operation: Any = table.read_transaction(3).operation  # type: ignore[union-attr]
        assert (operation.update_mode, operation.fields_for_preserving_frag_bitmap) == ("rewrite_rows", [1])

    def test_an_empty_table(self, tmp_path: Path, mode: str) -> None:
        dataset = tw.write_dataset(numbers(0), tmp_path / "t")
        assert dataset.update({"x": "1"}, write_mode=mode) == {"num_rows_updated": 0}
        assert dataset.update({"x": "1"}, "id = 1", write_mode=mode) == {"num_rows_updated": 0}
        assert refereed(dataset) == []

    def test_again_and_again(self, table: tw.LanceDataset, mode: str) -> None:
        for n in range(4):
            table.update({"x": f"{n}", "s": "concat(coalesce(s, ''), '.')"}, where=f"id % 4 = {n}", write_mode=mode)
            table.delete(f"id = {n + 40}")
        found = {row["id"]: row for row in refereed(table)}
        assert found[10]["x"] == 2.0
        assert found[11]["s"] == "row 11."
        assert sorted(found) == [i for i in range(60) if i not in (3, 4, 25, 40, 41, 42, 43)]

    def test_a_fragment_of_several_files(self, table: tw.LanceDataset, mode: str) -> None:
        lance.dataset(table.uri).add_columns({"twice": "id * 2", "text": "cast(id as string)"})
        table.checkout_latest()
        table.update({"twice": "twice + 1", "x": "twice"}, where="id % 2 = 0", write_mode=mode)
        table.update({"text": "'t'"}, where="twice % 4 = 1", write_mode=mode)
        found = {row["id"]: (row["twice"], row["text"], row["x"]) for row in refereed(table)}
        assert (found[6], found[9]) == ((13, "t", 12.0), (18, "9", 9 / 4))

    def test_columns_that_no_file_holds(self, table: tw.LanceDataset, mode: str) -> None:
        lance.dataset(table.uri).add_columns(pa.schema([("later", pa.int32()), ("word", pa.string())]))
        table.checkout_latest()
        table.update({"later": "id", "word": "'w'"}, where="id < 30", write_mode=mode)
        found = {row["id"]: (row["later"], row["word"]) for row in refereed(table)}
        assert (found[29], found[30]) == ((29, "w"), (None, None))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_file_versions(tmp_path: Path, version: str, mode: str) -> None:
    data = numbers(30).drop_columns(["st"])
    data = data.append_column("at", pa.array([{"a": i, "b": [i]} for i in range(30)]))
    dataset = tw.write_dataset(data, tmp_path / "t", data_storage_version=version, max_rows_per_file=7)
    dataset.delete("id % 10 = 1")
    dataset.update({"at.a": "-id", "x": "id"}, where="id % 3 = 0", write_mode=mode)
    dataset.update({"s": "'s'"}, where="id % 2 = 0", write_mode=mode)
    found = {row["id"]: row for row in refereed(dataset)}
    assert found[6] == {"id": 6, "x": 6.0, "s": "s", "at": {"a": -6, "b": [6]}}
    assert found[5] == {"id": 5, "x": 1.25, "s": "row 5", "at": {"a": 5, "b": [5]}}


DAY, MOMENT = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)
STRICT = pa.struct([pa.field("p", pa.int32(), False)])
INSIDE = pa.struct({"w": pa.dictionary(pa.int32(), pa.string())})
ZONED = dt.datetime(2024, 2, 3, tzinfo=dt.UTC)
UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * 4, pa.binary(16)))
TYPES: dict[str, tuple[pa.Array, str, Any]] = {
    "i8": (pa.array([1] * 4, pa.int8()), "100", 100),
    "u64": (pa.array([1] * 4, pa.uint64()), "18446744073709551615", 2**64 - 1),
    "f16": (pa.array(np.ones(4, np.float16)), "1.5", 1.5),
    "bool": (pa.array([True] * 4), "i8 > 3", False),
    "large": (pa.array(["a"] * 4, pa.large_string()), "'b'", "b"),
    "bytes": (pa.array([b"a"] * 4), "'xyz'", b"xyz"),
    "two": (pa.array([b"ab"] * 4, pa.binary(2)), "x'0102'", b"\x01\x02"),
    "day": (pa.array([DAY] * 4), "'2024-02-03'", dt.date(2024, 2, 3)),
    "time": (pa.array([MOMENT] * 4, pa.timestamp("us")), "day + interval '1 day'", dt.datetime(2024, 1, 2)),
    "zoned": (pa.array([MOMENT] * 4, pa.timestamp("us", "UTC")), "'2024-02-03'", ZONED),
    "money": (pa.array([decimal.Decimal("1.00")] * 4, pa.decimal128(10, 2)), "1.239", decimal.Decimal("1.24")),
    "list": (pa.array([[1, 2], None, [], [3]], pa.list_(pa.int32())), "[7, 8]", [7, 8]),
    "vector": (pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2)), "[3, 4.5]", [3.0, 4.5]),
    "words": (pa.array(["a", "b", None, "a"]).dictionary_encode(), "'new'", "new"),
    "no words": (pa.array(["a", "b", None, "a"]).dictionary_encode(), "NULL", None),
    "codes": (pa.array([7, 7, 8, 9], pa.dictionary(pa.int8(), pa.int64())), "5", 5),
    "span": (pa.array([1, 2, 3, None], pa.duration("s")), "5", dt.timedelta(seconds=5)),
    "strict": (pa.array([{"p": 1}] * 4, STRICT), "named_struct('p', 2)", {"p": 2}),
    "inside": (pa.array([{"w": "a"}] * 4, INSIDE), "named_struct('w', 'b')", {"w": "b"}),
    "uuid": (UUIDS, "x'" + "31" * 16 + "'", uuid.UUID("31" * 16)),
    "json": (pa.array(['{"a":1}'] * 4, pa.json_()), "'[2]'", "[2]"),
    "map": (pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int32())), "NULL", None),
    "structs": (pa.array([[{"p": 1}], [], None, [{"p": 2}]]), "NULL", None),
    "null": (pa.nulls(4), "NULL", None),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
@pytest.mark.parametrize("name", TYPES)
def test_types(tmp_path: Path, name: str, mode: str) -> None:
    data = pa.table({"id": range(4), **{each: array for each, (array, _, _) in TYPES.items()}})
    dataset = tw.write_dataset(data, tmp_path / "t")
    _, sql, value = TYPES[name]
    assert dataset.update({f"`{name}`": sql}, where="id in (1, 3)", write_mode=mode) == {"num_rows_updated": 2}
    expected = data.to_pylist()
    expected[1][name] = expected[3][name] = value
    assert refereed(dataset) == expected


class TestWays:
    """What is written, and what the transaction says about it (``docs/format/transactions.md#update``)."""

    def test_rows(self, table: tw.LanceDataset) -> None:
        table.update({"st.a": "0"}, where="id in (1, 45) or id >= 20 and id < 40", write_mode="rewrite_rows")
        operation: Any = table.read_transaction(3).operation  # type: ignore[union-attr]
        assert operation.update_mode == "rewrite_rows"
        assert operation.removed_fragment_ids == [1]
        assert [(f.id, f.num_deletions) for f in operation.updated_fragments] == [(0, 3), (2, 1)]
        assert [(f.id, f.physical_rows) for f in operation.new_fragments] == [(0, 21)]
        assert (operation.fields_modified, operation.fields_for_preserving_frag_bitmap) == ([], [3, 4])
        assert operation.updated_fragment_offsets is None
        refereed(table)

    def test_columns(self, table: tw.LanceDataset) -> None:
        table.update({"st.a": "0"}, where="id in (1, 45)", write_mode="rewrite_columns")
        operation: Any = table.read_transaction(3).operation  # type: ignore[union-attr]
        assert operation.update_mode == "rewrite_columns"
        assert (operation.removed_fragment_ids, operation.new_fragments) == ([], [])
        assert [f.id for f in operation.updated_fragments] == [0, 2]
        assert operation.updated_fragments[0].num_deletions == 2
        assert [file.fields for file in operation.updated_fragments[0].files] == [[0, 1, 2, -2, -2], [4, 6]]
        assert (operation.fields_modified, operation.fields_for_preserving_frag_bitmap) == ([3, 4, 5, 6], [])
        offsets = {id: FrozenBitMap.deserialize(data) for id, data in operation.updated_fragment_offsets.items()}
        assert offsets == {0: FrozenBitMap([1]), 2: FrozenBitMap([5])}
        refereed(table)

    def test_both(self, tmp_path: Path, stable: bool) -> None:
        dataset = tw.write_dataset(numbers(60), tmp_path / "t", max_rows_per_file=20, enable_stable_row_ids=stable)
        ids = [row["_rowid"] for row in dataset.to_table(columns=["_rowid"]).to_pylist()]
        assert dataset.update({"x": "-1"}, where="id < 20 or id = 30 or id = 50") == {"num_rows_updated": 22}
        operation: Any = dataset.read_transaction(2).operation  # type: ignore[union-attr]
        assert operation.update_mode == "rewrite_columns"
        assert [f.id for f in operation.updated_fragments] == [0, 1, 2]
        assert [f.physical_rows for f in operation.new_fragments] == [2]
        assert (operation.fields_modified, operation.fields_for_preserving_frag_bitmap) == ([1], [1])
        assert sorted(operation.updated_fragment_offsets) == [0]
        found = {row["id"]: row["x"] for row in refereed(dataset)}
        assert [i for i, x in found.items() if x == -1] == [*range(20), 30, 50]
        if stable:
            now = {row["id"]: row["_rowid"] for row in dataset.to_table(columns=["id", "_rowid"]).to_pylist()}
            assert [now[i] for i in range(60)] == ids

    def test_an_old_file_without_columns_leaves(self, tmp_path: Path) -> None:
        dataset = tw.write_dataset({"x": [1, 2]}, tmp_path / "t")
        dataset.update({"x": "x + 1"})
        assert len(dataset.get_fragments()[0].data_files()) == 1
        assert lance.dataset(dataset.uri).to_table().to_pydict() == {"x": [2, 3]}

    def test_small_updates_make_one_file(self, tmp_path: Path) -> None:
        dataset = tw.write_dataset(numbers(400), tmp_path / "t", max_rows_per_file=20)
        dataset.update({"x": "0"}, where="id % 20 = 3", write_mode="rewrite_rows")
        assert [f.physical_rows for f in dataset.get_fragments()] == [20] * 20 + [20]
        refereed(dataset)

    def test_row_ids_where_the_output_rolls_over(self, tmp_path: Path) -> None:
        dataset = tw.write_dataset(numbers(60), tmp_path / "t", max_rows_per_file=20, enable_stable_row_ids=True)
        dataset.delete("id % 10 = 1")
        before = {row["id"]: row["_rowid"] for row in dataset.to_table(columns=["id", "_rowid"]).to_pylist()}
        dataset = update_rows(dataset, {"x": "0"}, "id % 3 > 0", RewriteLimits(rows_per_file=16))
        assert [f.physical_rows for f in dataset.get_fragments()[3:]] == [16, 16, 4]
        refereed(dataset)
        assert {row["id"]: row["_rowid"] for row in dataset.to_table(columns=["id", "_rowid"]).to_pylist()} == before

    @pytest.mark.parametrize("fragments", [3, 30])
    def test_row_ids_take_the_shorter_form(self, tmp_path: Path, fragments: int) -> None:
        dataset = tw.write_dataset(
            numbers(10 * fragments), tmp_path / "t", max_rows_per_file=10, enable_stable_row_ids=True
        )
        dataset.update({"x": "0"}, where="id % 10 = 3", write_mode="rewrite_rows")
        operation: Any = dataset.read_transaction(2).operation  # type: ignore[union-attr]
        (new,) = operation.new_fragments
        assert len(decode_row_ids(new.to_fragment().row_ids, "here").segments) == 1
        refereed(dataset)

    @pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
    def test_versions_of_rows(self, tmp_path: Path, mode: str) -> None:
        dataset = tw.write_dataset(numbers(20), tmp_path / "t", max_rows_per_file=10, enable_stable_row_ids=True)
        dataset.insert(numbers(25).slice(20))
        dataset.update({"x": "0"}, where="id in (5, 15, 22)", write_mode=mode)
        columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        found = {row["id"]: tuple(row.values())[1:] for row in dataset.to_table(columns=columns).to_pylist()}
        assert (found[5], found[15], found[22]) == ((5, 1, 3), (15, 1, 3), (22, 2, 3))
        assert (found[4], found[21]) == ((4, 1, 1), (21, 2, 2))
        refereed(dataset)


class TestIndices:
    """Coverage after an update: of an index on a column that changes, and of one on another."""

    @pytest.fixture
    def indexed(self, tmp_path: Path, stable: bool) -> tw.LanceDataset:
        theirs = lance.write_dataset(numbers(60), tmp_path / "t", max_rows_per_file=20, enable_stable_row_ids=stable)
        theirs.create_scalar_index("x", "BITMAP")
        theirs.create_scalar_index("s", "BITMAP")
        return tw.dataset(tmp_path / "t")

    def coverage(self, dataset: tw.LanceDataset) -> dict[str, set[int]]:
        return {index["fields"][0]: index["fragment_ids"] for index in dataset.list_indices()}

    def answers(self, dataset: tw.LanceDataset) -> None:
        theirs = lance.dataset(dataset.uri)
        for condition in ("x < 0", "x > 10", "s = 'row 33'", "s is null"):
            flat = theirs.scanner(filter=condition, columns=["id"], use_scalar_index=False).to_table()
            assert sorted(theirs.to_table(filter=condition, columns=["id"])["id"].to_pylist()) == sorted(
                flat["id"].to_pylist()
            )

    def test_rows(self, indexed: tw.LanceDataset, stable: bool) -> None:
        indexed.update({"x": "-1"}, where="id in (5, 33)", write_mode="rewrite_rows")
        assert self.coverage(indexed) == {"x": {0, 1, 2}, "s": {0, 1, 2, 3} if stable else {0, 1, 2}}
        self.answers(indexed)

    def test_columns(self, indexed: tw.LanceDataset) -> None:
        indexed.update({"x": "-1"}, where="id in (5, 33)", write_mode="rewrite_columns")
        assert self.coverage(indexed) == {"x": {2}, "s": {0, 1, 2}}
        self.answers(indexed)

    def test_both(self, indexed: tw.LanceDataset, stable: bool) -> None:
        indexed.update({"x": "-1"}, where="id < 20 or id = 33")
        coverage = self.coverage(indexed)
        assert 0 not in coverage["x"]
        assert coverage["s"] >= {0, 1, 2}
        self.answers(indexed)


class TestSteps:
    def plan(self, table: tw.LanceDataset, updates: dict[str, str], where: Any, mode: str = "auto") -> UpdatePlan:
        return plan_update(table._snapshot, updates, where, UpdateOptions(write_mode=mode), 0)

    def test_structs_without_members_move(self, tmp_path: Path) -> None:
        data = pa.table({"id": range(4), "empty": pa.array([{}] * 4, pa.struct([]))})
        dataset = tw.write_dataset(data, tmp_path / "t")
        dataset.update({"empty": "NULL"}, where="id > 0")
        assert dataset.read_transaction(2).operation.update_mode == "rewrite_rows"  # type: ignore[union-attr]
        assert [row["id"] for row in refereed(dataset)] == [0, 1, 2, 3]


def test_nulls_of_deleted_rows_do_not_matter(tmp_path: Path) -> None:
    dataset = tw.write_dataset({"id": [1, 2, 3], "x": [None, 5, 6]}, tmp_path / "t")
    dataset.delete("x is null")
    lance.dataset(dataset.uri).alter_columns({"path": "x", "nullable": False})
    dataset.checkout_latest()
    dataset.update({"x": "x + 1"}, where="id = 2", write_mode="rewrite_columns")
    assert refereed(dataset) == [{"id": 2, "x": 6}, {"id": 3, "x": 6}]
