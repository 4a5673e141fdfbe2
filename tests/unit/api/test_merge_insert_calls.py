"""Merge insert: data of all kinds, bad input, settings, plans, and nothing left behind."""

from __future__ import annotations

import itertools
import pickle
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from tests.unit.operations.merge_insert.merge_model import builder

import tablewright as tw
from tablewright.errors import CommitConflict, InvalidRequest, SchemaMismatch
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits, SourceLimits

_numbers = itertools.count()


def new_uri() -> str:
    return f"memory://merge-insert-calls-{next(_numbers)}"


def small(**options: Any) -> tw.LanceDataset:
    table = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    return tw.write_dataset(table, new_uri(), max_rows_per_file=2, **options)


def upsert(ds: tw.LanceDataset, on: Any = "id", limits: MergeLimits | None = None, **settings: Any) -> Any:
    merge = builder(ds, on, limits).when_matched_update_all().when_not_matched_insert_all()
    for name, value in settings.items():
        merge = getattr(merge, name)(value)
    return merge


def _limits(*, keys_per_pass: int = 1 << 22, **source: int) -> MergeLimits:
    return MergeLimits(source=SourceLimits(**source), match=MatchLimits(keys_per_pass=keys_per_pass))


def rows(ds: tw.LanceDataset) -> list[dict[str, Any]]:
    return ds.to_table(order_by=[ds.schema.names[0]]).to_pylist()


def files(ds: tw.LanceDataset) -> set[str]:
    return {entry.path for entry in ds._world.store.list("") if not entry.path.endswith("latest_version_hint.json")}


NEW = pa.table({"id": [2, 4], "s": ["B", "D"], "x": [20.0, 40.0]})
UPSERTED = [
    {"id": 1, "s": "a", "x": 1.0},
    {"id": 2, "s": "B", "x": 20.0},
    {"id": 3, "s": "c", "x": 3.0},
    {"id": 4, "s": "D", "x": 40.0},
]

KINDS: dict[str, Callable[[], Any]] = {
    "table": lambda: NEW,
    "batch": lambda: NEW.to_batches()[0],
    "reader": lambda: NEW.to_reader(),
    "batches": lambda: iter(NEW.to_batches(max_chunksize=1)),
    "dataset": lambda: pads.dataset(NEW),
    "scanner": lambda: pads.dataset(NEW).scanner(),
    "lance dataset": lambda: tw.write_dataset(NEW, new_uri()),
    "pandas": lambda: NEW.to_pandas(),
    "polars": lambda: pl.from_arrow(NEW),
    "lazy polars": lambda: pl.from_arrow(NEW).lazy(),  # type: ignore[union-attr]
    "dict": lambda: NEW.to_pydict(),
    "list of dicts": lambda: NEW.to_pylist(),
    "other order": lambda: NEW.select(["x", "s", "id"]),
    "smaller types": lambda: NEW.cast(pa.schema({"id": pa.int16(), "s": pa.large_string(), "x": pa.float32()})),
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_all_kinds(kind: str) -> None:
    ds = small()
    result = upsert(ds).execute(KINDS[kind]())
    assert (result["num_inserted_rows"], result["num_updated_rows"]) == (1, 1)
    assert rows(ds) == UPSERTED
    assert ds.schema.types == [pa.int64(), pa.string(), pa.float64()]


def test_python_values_take_the_types_of_the_table() -> None:
    ds = tw.write_dataset(
        pa.table({"id": pa.array([1], pa.uint8()), "v": pa.array([[1, 2]], pa.list_(pa.float32(), 2))}), new_uri()
    )
    upsert(ds).execute([{"id": 1, "v": [3, 4]}, {"id": 2, "v": None}])
    assert rows(ds) == [{"id": 1, "v": [3.0, 4.0]}, {"id": 2, "v": None}]


def test_a_generator_with_a_schema() -> None:
    ds = small()
    upsert(ds).execute((batch for batch in NEW.to_batches()), schema=NEW.schema)
    assert rows(ds) == UPSERTED


def test_the_table_as_its_own_source() -> None:
    whole = [{"id": 1, "s": "a", "x": 1.0}, {"id": 2, "s": "b", "x": 2.0}, {"id": 3, "s": "c", "x": 3.0}]
    for data in (lambda ds: ds, lambda ds: ds.scanner(), lambda ds: ds.to_batches(batch_size=1)):
        ds = small()
        assert upsert(ds).execute(data(ds))["num_updated_rows"] == 3
        assert rows(ds) == whole
    ds = small()
    query = ds.scanner(columns={"id": "id + 1", "x": "x * 10"}, filter="id > 1")
    assert upsert(ds).execute(query)["num_inserted_rows"] == 1
    assert rows(ds) == [*whole[:2], {"id": 3, "s": "c", "x": 20.0}, {"id": 4, "s": None, "x": 30.0}]


@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "on disk"])
def test_what_can_be_read_once_is_read_again_after_a_conflict(
    on_disk: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    limits = _limits(memory_bytes=0 if on_disk else 1 << 20)
    for data in (lambda: NEW.to_reader(max_chunksize=1), lambda: (batch for batch in NEW.to_batches(max_chunksize=1))):
        ds = small()
        tw.dataset(ds.uri).insert({"id": [4, 5], "s": ["theirs", "theirs"], "x": [0.0, 0.0]})
        result = upsert(ds, limits=limits).execute(data())
        assert (result["num_updated_rows"], result["num_inserted_rows"], result["num_attempts"]) == (2, 0, 2)
        assert rows(ds) == [*UPSERTED, {"id": 5, "s": "theirs", "x": 0.0}]
    assert not list(tmp_path.iterdir())


# -------------------------------------------------------------------------------------------------------- semantics
def test_an_empty_source() -> None:
    ds = small()
    result = upsert(ds).execute(NEW.slice(0, 0))
    assert result["num_inserted_rows"] + result["num_updated_rows"] == 0 and ds.version == 2
    result = builder(ds, "id").when_not_matched_by_source_delete().execute(NEW.slice(0, 0))
    assert result["num_deleted_rows"] == 3 and ds.count_rows() == 0 and len(ds.get_fragments()) == 0
    assert upsert(ds).execute(NEW)["num_inserted_rows"] == 2


def test_key_only_sources() -> None:
    ds = small()
    keys = NEW.select(["id"])
    assert builder(ds, "id").when_matched_delete().execute(keys)["num_deleted_rows"] == 1
    assert upsert(ds).execute(pa.table({"id": [3, 9]}))["num_updated_rows"] == 1
    assert rows(ds) == [UPSERTED[0], UPSERTED[2], {"id": 9, "s": None, "x": None}]


def test_nested_keys_and_structs_given_in_part() -> None:
    kind = pa.struct({"k": pa.int64(), "text": pa.string(), "deep": pa.struct({"u": pa.int8(), "v": pa.int8()})})
    table = pa.table(
        {
            "t": pa.array(
                [{"k": 1, "text": "a", "deep": {"u": 1, "v": 1}}, {"k": 2, "text": "b", "deep": None}, None], kind
            ),
            "n": [1, 2, 3],
        }
    )
    some = pa.struct({"deep": pa.struct({"v": pa.int8()}), "k": pa.int64()})
    new = pa.table(
        {"t": pa.array([{"k": 2, "deep": {"v": 9}}, {"k": 1, "deep": None}, {"k": 7, "deep": {"v": 3}}, None], some)}
    )
    for mode in ("rewrite_rows", "rewrite_columns"):
        ds = tw.write_dataset(table, new_uri())
        result = upsert(ds, "t.k", write_mode=mode).execute(new)
        assert (result["num_updated_rows"], result["num_inserted_rows"]) == (2, 2)
        by_key = {row["t"] and row["t"]["k"]: row for row in ds.to_table().to_pylist() if row["n"] is not None}
        assert by_key[1] == {"t": {"k": 1, "text": "a", "deep": {"u": 1, "v": None}}, "n": 1}
        assert by_key[2] == {"t": {"k": 2, "text": "b", "deep": {"u": None, "v": 9}}, "n": 2}
        assert by_key[None] == {"t": None, "n": 3}
        added = [row["t"] for row in ds.to_table().to_pylist() if row["n"] is None]
        assert added == [{"k": 7, "text": None, "deep": {"u": None, "v": 3}}, None]


def test_members_of_python_values_are_given_in_part_too() -> None:
    table = pa.table({"id": [1, 2], "t": [{"a": 1, "b": "x", "deep": {"u": 1, "v": 1}}, None]})
    for data in ({"id": [1, 7], "t": [{"b": "y"}, None]}, [{"id": 1, "t": {"b": "y"}}, {"id": 7, "t": None}]):
        ds = tw.write_dataset(table, new_uri())
        upsert(ds).execute(data)
        assert [row["t"] for row in rows(ds)] == [{"a": 1, "b": "y", "deep": {"u": 1, "v": 1}}, None, None]
    upsert(ds).execute([{"id": 2, "t": {"deep": {"v": 5}, "a": 0}}])
    assert rows(ds)[1]["t"] == {"a": 0, "b": None, "deep": {"u": None, "v": 5}}


def test_structs_in_lists_are_given_as_a_whole() -> None:
    """Which of the old items would a new one with some members be? New rows have null in the others."""
    ds = tw.write_dataset(pa.table({"id": [1], "l": [[{"a": 1, "b": 2}]]}), new_uri())
    some = pa.table({"id": [1, 2], "l": [[{"b": 5}], [{"b": 6}]]})
    for data in (some, some.to_pylist(), some.to_pydict()):
        with pytest.raises(SchemaMismatch, match=r"missing=\[l\.item\.a\].*structs in lists need all their members"):
            upsert(ds).execute(data)
    with pytest.raises(OSError, match=r"missing=\[t\.a\]"):
        upsert(tw.write_dataset(pa.table({"id": [1], "t": [{"a": 1}]}), new_uri())).execute(
            pa.table({"id": [1], "t": pa.array([{}], pa.struct([]))})
        )
    assert ds.latest_version == 1


def test_types_that_are_awkward_to_move() -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2, 3]),
            "d": pa.array(["a", "b", None]).dictionary_encode(),
            "l": pa.array([[1], None, [2, 3]]),
            "ls": pa.array([[{"p": 1}], [], None]),
            "v": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)),
            "b": pa.array([b"x", None, b""]),
            "flag": pa.array([True, False, None]),
        }
    )
    new = table.slice(1).set_column(0, "id", pa.array([3, 8]))
    for mode, select in itertools.product(
        ("rewrite_rows", "rewrite_columns"), (table.column_names, ["id", "d", "ls", "v"])
    ):
        ds = tw.write_dataset(table, new_uri(), max_rows_per_file=2)
        upsert(ds, write_mode=mode).execute(new.select(select))
        given = {name: new[name].to_pylist() for name in select}
        expected = [
            row | ({name: given[name][0] for name in select} if row["id"] == 3 else {}) for row in table.to_pylist()
        ]
        expected.append({name: given[name][1] if name in given else None for name in table.column_names})
        assert rows(ds) == expected


def test_conditions_see_both_sides() -> None:
    ds = small()
    merge = builder(ds, "id").when_matched_update_all("source.x > target.x + 1 and target.s <> 'c'")
    result = merge.when_not_matched_insert_all().execute(pa.table({"id": [1, 2, 3, 4], "x": [1.5, 9.0, 9.0, 9.0]}))
    assert (result["num_updated_rows"], result["num_inserted_rows"]) == (1, 1)
    assert [row["x"] for row in rows(ds)] == [1.0, 9.0, 3.0, 9.0]


def test_dedupe_by_source_order() -> None:
    twice = pa.table({"id": [2, 7, 2, None, 7, None], "s": list("abcdef"), "x": [0.0] * 6})
    for keep_one, values in (("first", {2: "a", 7: "b"}), ("last", {2: "c", 7: "e"})):
        ds = small()
        result = upsert(ds, dedupe=keep_one).execute(twice)
        assert (result["num_updated_rows"], result["num_inserted_rows"]) == (1, 3)
        assert {row["id"]: row["s"] for row in rows(ds) if row["id"] in values} == values
    ds = small()
    assert ds.merge_insert("id", dedupe="last").when_matched_update_all().execute(twice)["num_updated_rows"] == 1


@pytest.mark.parametrize("keys", [[2, 2], [8, 8]], ids=["matched", "new"])
def test_duplicate_keys_are_an_error_before_anything_is_written(keys: list[int]) -> None:
    ds = small()
    before = files(ds)
    with pytest.raises(OSError, match=rf"Ambiguous merge inserts are prohibited.*\(id = {keys[0]}\).*dedupe") as caught:
        upsert(ds).execute(pa.table({"id": keys, "s": ["p", "q"], "x": [0.0, 1.0]}))
    assert isinstance(caught.value, ValueError)
    assert files(ds) == before and ds.version == 1


def test_new_columns_on_request() -> None:
    ds = small()
    wider = NEW.append_column("note", pa.array(["n1", "n2"]))
    with pytest.raises(SchemaMismatch, match=r"unexpected=\[note\].*schema_evolution=True"):
        upsert(ds).execute(wider)
    result = upsert(ds, schema_evolution=True).execute(wider)
    assert (result["num_updated_rows"], result["version"]) == (1, 3)
    assert [row["note"] for row in rows(ds)] == [None, "n1", None, "n2"]
    assert upsert(ds, schema_evolution=True).execute(wider)["version"] == 4


def test_stable_ids_and_versions() -> None:
    for mode in ("rewrite_rows", "rewrite_columns"):
        ds = small(enable_stable_row_ids=True)
        upsert(ds, write_mode=mode).execute(NEW)
        system = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        found = ds.to_table(columns=["id", *system]).to_pylist()
        assert sorted(tuple(row.values()) for row in found) == [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 1, 1), (4, 3, 2, 2)]


# ------------------------------------------------------------------------------------------------------- bad input
TEXT_KEYS = pa.record_batch({"id": ["text"], "s": ["q"], "x": [1.0]})
NAMELESS = pa.record_batch({"zz": [1], "s": ["q"], "x": [1.0]})
BAD: dict[str, tuple[Callable[[tw.LanceDataset], Any], type[Exception], str]] = {
    "nothing to do": (
        lambda ds: builder(ds, "id").execute(NEW),
        ValueError,
        "not configured to change the data in any way",
    ),
    "nothing to explain": (lambda ds: builder(ds, "id").explain_plan(), ValueError, "not configured to change"),
    "no key": (lambda ds: builder(ds, None), ValueError, "requires join keys"),
    "unknown key": (
        lambda ds: builder(ds, "nope"),
        ValueError,
        "Merge insert key column 'nope' does not exist in schema",
    ),
    "system column as key": (lambda ds: builder(ds, "_rowid"), ValueError, "does not exist in schema"),
    "key of a wrong type": (lambda ds: builder(ds, 5), TypeError, "must be a str or iterable of str"),
    "key missing in the source": (lambda ds: upsert(ds).execute(NEW.select(["s"])), OSError, "No field named id"),
    "unknown column": (lambda ds: upsert(ds).execute(NEW.append_column("zz", NEW["x"])), OSError, r"unexpected=\[zz\]"),
    "another type": (
        lambda ds: upsert(ds).execute(NEW.set_column(0, "id", NEW["s"])),
        OSError,
        "`id` should have type int64 but type was string",
    ),
    "a fraction for a whole number": (
        lambda ds: upsert(ds).execute(NEW.set_column(0, "id", pa.array([0.5] * len(NEW)))),
        ValueError,
        'Cannot cast column "id" from double to int64: the value 0.5 does not fit',
    ),
    "a stream that lies": (
        lambda ds: upsert(ds).execute(pa.RecordBatchReader.from_batches(NEW.schema, iter([TEXT_KEYS]))),
        ValueError,
        'Cannot cast column "id" from string to int64',
    ),
    "other names in a stream": (
        lambda ds: upsert(ds).execute(pa.RecordBatchReader.from_batches(NEW.schema, iter([NAMELESS]))),
        OSError,
        r"missing=\['id'\]; unexpected=\['zz'\]",
    ),
    "batches of two schemas": (
        lambda ds: upsert(ds).execute(iter([*NEW.to_batches(), TEXT_KEYS])),
        ValueError,
        "Batch 1 of the iterable has another schema",
    ),
    "something else after batches": (
        lambda ds: upsert(ds).execute(iter([*NEW.to_batches(), 5])),
        TypeError,
        "Unknown data type <class 'int'>",
    ),
    "a name twice": (
        lambda ds: upsert(ds).execute(pa.Table.from_arrays([[1], [2]], names=["id", "id"])),
        ValueError,
        "Duplicate column names",
    ),
    "a name in other case": (
        lambda ds: upsert(ds).execute(pa.table({"ID": [1]})),
        OSError,
        r"missing=\[id\], unexpected=\[ID\]",
    ),
    "a number for a float key": (
        lambda ds: upsert(ds, "x").execute(pa.table({"x": [2**53 + 1]})),
        ValueError,
        'Cannot cast column "x" from int64 to double: the value 9007199254740993 does not fit',
    ),
    "a condition that fails": (
        lambda ds: builder(ds, "id").when_matched_update_all("1 / (source.id - 2) > 0").execute(NEW),
        OSError,
        "Divide by zero",
    ),
    "by source condition that fails": (
        lambda ds: builder(ds, "id").when_not_matched_by_source_delete("1 / (id - 1) > 0").execute(NEW),
        ValueError,
        "Divide by zero",
    ),
    "data of no kind": (lambda ds: upsert(ds).execute(5), TypeError, "Unknown data type"),
    "generator without schema": (lambda ds: upsert(ds).execute(iter(())), ValueError, "Must provide schema"),
    "condition": (
        lambda ds: builder(ds, "id").when_matched_update_all("source.q > 1").execute(NEW),
        OSError,
        "No field named source.q",
    ),
    "condition of a wrong type": (lambda ds: builder(ds, "id").when_matched_update_all(5), TypeError, "must be text"),
    "by source condition": (
        lambda ds: builder(ds, "id").when_not_matched_by_source_delete("zz > 1"),
        ValueError,
        "No field named zz",
    ),
    "no boolean": (lambda ds: builder(ds, "id").when_not_matched_by_source_delete("x"), ValueError, "boolean"),
    "write mode": (lambda ds: builder(ds, "id").write_mode("x"), ValueError, "Invalid write_mode: x"),
    "dedupe": (lambda ds: builder(ds, "id").dedupe("any"), ValueError, "dedupe must be"),
    "retries": (lambda ds: builder(ds, "id").conflict_retries(-1), ValueError, "non-negative"),
    "timeout": (lambda ds: builder(ds, "id").retry_timeout(5), TypeError, "timedelta"),
    "use_index": (lambda ds: builder(ds, "id").use_index("yes"), TypeError, "True or False"),
    "file version": (
        lambda ds: builder(ds, "id").data_storage_version("9.9"),
        ValueError,
        "Unknown data_storage_version",
    ),
    "columns of a key only": (
        lambda ds: upsert(ds).write_mode("rewrite_columns").execute(NEW.select(["id"])),
        OSError,
        "cannot express this merge insert: the source carries no column besides the join key",
    ),
    "a match": (
        lambda ds: (
            builder(ds, ["id", "s"])
            .when_matched_fail()
            .when_not_matched_insert_all()
            .execute({"id": [9, 2], "s": ["z", "b"]})
        ),
        OSError,
        'Merge insert failed: found matching row with key values: id = 2, s = "b"',
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(name: str) -> None:
    call, kind, message = BAD[name]
    ds = small()
    before = files(ds)
    with pytest.raises(kind, match=message) as caught:
        call(ds)
    assert isinstance(caught.value, InvalidRequest)
    assert files(ds) == before and ds.version == ds.latest_version == 1


def test_nulls_where_none_may_be() -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("must", pa.int64(), nullable=False)])
    ds = tw.write_dataset(pa.table([[1, 2], [1, 2]], schema=schema), new_uri())
    before = files(ds)
    with pytest.raises(SchemaMismatch, match="non-nullable"):
        upsert(ds).execute(pa.table({"id": [2, 5], "must": [None, 1]}))
    with pytest.raises(OSError, match="non-nullable and not provided by the source"):
        upsert(ds).execute(pa.table({"id": [2, 5]}))
    merge = builder(ds, "id").when_matched_update_all()
    for mode in ("rewrite_rows", "rewrite_columns"):
        with pytest.raises(SchemaMismatch, match="'must' is declared as non-nullable"):
            merge.write_mode(mode).execute(pa.table({"id": [2, 1], "must": [None, 1]}))
    assert files(ds) == before
    assert merge.write_mode("auto").execute(pa.table({"id": [2, 5]}))["num_updated_rows"] == 1


def test_nulls_that_are_not_written_do_not_matter() -> None:
    """Where nothing is inserted: null keys are equal to nothing, and rows that match nothing are left out."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("must", pa.int64(), nullable=False)])
    ds = tw.write_dataset(pa.table([[1, 2, 3], [1, 2, 3]], schema=schema), new_uri())
    data = pa.table({"id": [None, 2, 9], "must": [1, 7, None]})
    assert builder(ds, "id").when_matched_update_all().execute(data)["num_updated_rows"] == 1
    assert builder(ds, "id").when_matched_delete().execute(data.slice(1))["num_deleted_rows"] == 1
    assert builder(ds, "id").when_not_matched_by_source_delete().execute(pa.table({"id": [3, None]}))
    assert rows(ds) == [{"id": 3, "must": 3}]
    with pytest.raises(SchemaMismatch, match="'id' is declared as non-nullable"):
        upsert(ds).execute(pa.table({"id": [None], "must": [1]}))


def test_a_generator_that_fails_midway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its own error comes out, and neither the table nor the temporary directory has anything of it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    limits, ds = _limits(memory_bytes=1, part_bytes=1), small()
    before = files(ds)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from NEW.to_batches()
        yield from NEW.to_batches()
        raise LookupError("no more")

    for data in (batches(), pa.RecordBatchReader.from_batches(NEW.schema, batches())):
        with pytest.raises(LookupError, match="no more"):
            upsert(ds, limits=limits).execute(data)
    with pytest.raises(OSError, match="Ambiguous"):
        upsert(ds, limits=limits).execute(pa.concat_tables([NEW, NEW]))
    with pytest.raises(OSError, match="found matching row"):
        builder(ds, "id", limits).when_matched_fail().execute(NEW)
    upsert(ds, limits=limits).analyze_plan(NEW)
    upsert(ds, limits=limits).execute_uncommitted(NEW.slice(0, 0))
    assert files(ds) == before and not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------- plans, and no commit
def test_uncommitted_then_committed() -> None:
    ds = small()
    transaction, stats = upsert(ds).execute_uncommitted(NEW)
    assert ds.version == ds.latest_version == 1
    assert (stats["num_inserted_rows"], stats["num_updated_rows"], stats["num_deleted_rows"]) == (1, 1, 0)
    ds.delete("id = 1")
    assert rows(tw.CommitBuilder(ds).execute(transaction)) == UPSERTED[1:]


def test_uncommitted_keys_are_compared_when_it_is_committed() -> None:
    ds = small()
    transaction, _ = upsert(ds).execute_uncommitted(NEW)
    travelled = pickle.loads(pickle.dumps(transaction))
    tw.dataset(ds.uri).insert({"id": [4], "s": ["theirs"], "x": [0.0]})
    with pytest.raises(CommitConflict, match="have keys of this merge"):
        tw.CommitBuilder(ds).execute(transaction)
    with pytest.raises(CommitConflict, match="did not travel"):
        tw.CommitBuilder(ds).execute(travelled)
    ds = small()
    transaction, _ = upsert(ds).execute_uncommitted(NEW)
    assert rows(tw.CommitBuilder(ds).execute(pickle.loads(pickle.dumps(transaction)))) == UPSERTED


def test_explained() -> None:
    ds = small()
    text = upsert(ds).when_not_matched_by_source_delete("x < 0").explain_plan()
    assert text.startswith("MergeInsert: on=[id], when_matched=UpdateAll, when_not_matched=InsertAll, ")
    for words in (
        "when_not_matched_by_source=DeleteIf(x < 0)",
        "projection=[id, x]",
        "strategy: broadcast",
        "engine=local",
    ):
        assert words in text
    partial = (
        builder(ds, "id")
        .when_matched_update_all("source.x > target.x")
        .explain_plan(NEW.select(["x", "id"]).schema, verbose=True)
    )
    assert "partial, columns=[id, x]" in partial and "reads target [x] of matched rows only" in partial
    with pytest.raises(OSError, match="unexpected"):
        upsert(ds).explain_plan(pa.schema({"id": pa.int64(), "zz": pa.int64()}))


def test_analyzed_without_a_trace() -> None:
    ds = small()
    before = files(ds)
    text = upsert(ds).analyze_plan(NEW)
    assert files(ds) == before and ds.latest_version == 1 and rows(ds)[1]["s"] == "b"
    for words in (
        "MergeInsert",
        "metrics=[num_inserted_rows=1, num_updated_rows=1",
        "bytes_written=",
        "num_files_written=3",
        "Matching: ",
    ):
        assert words in text


def test_plans_say_what_this_merge_writes() -> None:
    ds = small()
    merge = builder(ds, "id").when_matched_delete()
    assert merge.explain_plan().endswith("  write: deletion files for rows that go")
    merge.when_not_matched_insert_all().when_matched_update_all().write_mode("rewrite_rows")
    written = "  write: updated rows move to new fragments; source rows that match nothing go to new fragments"
    assert merge.explain_plan().endswith(written)
    assert "decided after the match, by bytes" in merge.write_mode("auto").explain_plan()
    assert builder(ds, "id").when_matched_fail().explain_plan().endswith("  write: nothing")


def test_numbers_of_each_stage_are_right() -> None:
    """Deletion files count in files and in bytes; what is not read does not count as read."""
    ds = small()
    text = builder(ds, "id").when_matched_delete().analyze_plan({"id": [1]})
    assert "Decision" not in text and "  kept source: rows=1, bytes=8, in memory\n" in text
    assert "Matching: " in text and "fragments=2, rows_read=3, bytes_read=24" in text
    before = files(ds)
    result = builder(ds, "id").when_matched_delete().execute({"id": [1]})
    (deletion,) = [path for path in files(ds) - before if path.startswith("_deletions/")]
    assert (result["num_files_written"], result["bytes_written"]) == (1, len(ds._world.store.get(deletion)))
    everything = builder(ds, "id").when_matched_update_all().write_mode("rewrite_columns")
    writing = next(line for line in everything.analyze_plan({"id": [3], "x": [9.0]}).splitlines() if "Writing" in line)
    assert "fragments=1, num_files_written=1" in writing and "rows_read" not in writing
    for mode in ("rewrite_rows", "rewrite_columns"):
        ds = tw.write_dataset({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]}, new_uri())
        before = files(ds)
        merge = upsert(ds, write_mode=mode).when_not_matched_by_source_delete("id = 1")
        result = merge.execute({"id": [2, 4], "x": [5.0, 6.0]})
        new = [path for path in files(ds) - before if path.startswith(("data/", "_deletions/"))]
        assert result["num_files_written"] == len(new) == 3  # updated rows or a column, a new row, a deletion file
        assert result["bytes_written"] == sum(len(ds._world.store.get(path)) for path in new)


def test_settings_are_chained_and_kept() -> None:
    ds = small()
    merge = builder(ds, "id")
    assert merge.conflict_retries(0).retry_timeout(timedelta(seconds=1)).use_index(False).write_mode("auto") is merge
    assert [merge.use_index(given)._clauses["use_index"] for given in (None, np.False_)] == [True, False]
    assert merge.data_storage_version("2.2").when_matched_delete().execute(NEW)["num_deleted_rows"] == 1
    assert merge.when_matched_update_all().execute(NEW)["num_deleted_rows"] == 0  # the last one counts, as in pylance


# ------------------------------------------------------------------------------------------------ large and spilled
def test_many_keys_in_several_turns_and_a_source_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limits = _limits(memory_bytes=100, part_bytes=500, keys_per_pass=37)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(7)
    table = pa.table({"id": rng.permutation(400), "x": np.arange(400.0), "s": [f"s{i}" for i in range(400)]})
    ids = np.concatenate((rng.choice(400, 120, replace=False), np.arange(1000, 1050)))
    new = pa.table({"id": rng.permutation(ids), "x": np.arange(170.0) * 3}).append_column(
        "s", pa.array([f"new {i}" for i in range(170)])
    )
    ds = tw.write_dataset(table, new_uri(), max_rows_per_file=90)
    merge = upsert(ds, limits=limits).when_not_matched_by_source_delete("x < 50")
    assert "strategy: passes" in merge.analyze_plan(new.to_reader(max_chunksize=11))
    result = merge.execute(new.to_reader(max_chunksize=11))
    by_id = {row["id"]: row for row in new.to_pylist()}
    expected = [by_id.get(row["id"], row) for row in table.to_pylist() if row["id"] in by_id or row["x"] >= 50]
    expected += [row for row in new.to_pylist() if row["id"] >= 1000]
    assert sorted(map(repr, ds.to_table().to_pylist())) == sorted(map(repr, expected))
    assert (result["num_updated_rows"], result["num_inserted_rows"]) == (120, 50)
    assert result["num_deleted_rows"] == 400 - (len(expected) - 50)
    assert not list(tmp_path.iterdir())
    again = pa.concat_tables([new, new.slice(3, 5)])
    with pytest.raises(OSError, match="Rows 3 and 170 of the source have this key"):
        upsert(ds, limits=limits).execute(again)
    assert upsert(ds, limits=limits, dedupe="first").execute(again)["num_updated_rows"] == 170
    assert upsert(ds, limits=limits, dedupe="last").execute(again)["num_updated_rows"] == 170


def test_a_failure_while_writing_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ds = tw.write_dataset(pa.table({"id": range(8), "x": range(8)}), tmp_path / "t.lance", max_rows_per_file=2)
    before = files(ds)
    put = type(ds._world.store).put

    def fail_on_deletions(self: Any, path: str, data: bytes) -> None:
        if path.startswith("_deletions"):
            raise tw.errors.StorageError("the disk is full")
        put(self, path, data)

    monkeypatch.setattr(type(ds._world.store), "put", fail_on_deletions)
    with pytest.raises(OSError, match="the disk is full"):
        upsert(ds, write_mode="rewrite_rows").execute(pa.table({"id": [1, 5, 9], "x": [0, 0, 0]}))
    assert files(ds) == before
