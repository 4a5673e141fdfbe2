"""The rooms of column evolution one by one: schemas, fillers, windows, casts, joins, streams, what is kept."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.expressions.casts import castable, lance_name
from tablewright.format.fragment import DataFile
from tablewright.format.schema import Schema
from tablewright.operations.columns.add import ByFunction, BySql, Nulls, sample_schema
from tablewright.operations.columns.alter import Alter, Alteration, alter_schema
from tablewright.operations.columns.cast import recast
from tablewright.operations.columns.checkpoint import Checkpoint
from tablewright.operations.columns.compute import result_batch
from tablewright.operations.columns.fill import Filler, placeholder
from tablewright.operations.columns.join import Join, Lookup
from tablewright.operations.columns.keep import Kept
from tablewright.operations.columns.plan import ColumnsPlan, finish_columns
from tablewright.operations.columns.project import plan_drop
from tablewright.operations.columns.read import live_windows
from tablewright.operations.columns.schema import InvalidColumns, add_to_schema
from tablewright.operations.columns.stream import RowStream
from tablewright.reading.context import TaskContext
from tablewright.reading.projection import RowLayout
from tablewright.snapshot.snapshot import Snapshot


def _table(tmp_path: Path, rows: Any = None, **options: Any) -> Snapshot:
    rows = {"id": pa.array(range(10)), "s": [{"p": i, "q": str(i)} for i in range(10)]} if rows is None else rows
    return tw.write_dataset(rows, str(tmp_path / "t"), **{"max_rows_per_file": 4, **options})._snapshot


def _ids(schema: Schema) -> list[tuple[int, int, str, str]]:
    return [(field.id, field.parent_id, field.name, field.logical_type) for field in schema.fields]


# ------------------------------------------------------------------------------------------------------- schemas
def test_new_columns_are_numbered_behind_all_that_files_hold(tmp_path: Path) -> None:
    snapshot = _table(tmp_path)
    incoming = pa.schema({"n": pa.list_(pa.int8()), "m": pa.struct({"x": pa.int8()})})
    added = add_to_schema(snapshot.manifest, incoming)
    assert _ids(added.new) == [
        (4, -1, "n", "list"),
        (5, 4, "item", "int8"),
        (6, -1, "m", "struct"),
        (7, 6, "x", "int8"),
    ]
    assert added.after.fields == (*snapshot.schema.fields, *added.new.fields)
    dropped = replace(snapshot.manifest, schema=snapshot.schema.project_ids([0]))
    assert add_to_schema(dropped, pa.schema({"n": pa.int8()})).new.fields[0].id == 4


def test_members_join_their_struct(tmp_path: Path) -> None:
    snapshot = _table(tmp_path)
    added = add_to_schema(snapshot.manifest, pa.schema({"s": pa.struct({"w": pa.int8()}), "z": pa.int8()}))
    assert _ids(added.after)[1:] == [
        (1, -1, "s", "struct"),
        (2, 1, "p", "int64"),
        (3, 1, "q", "string"),
        (4, 1, "w", "int8"),
        (5, -1, "z", "int8"),
    ]
    assert added.grown == (1,)


@pytest.mark.parametrize(
    ("incoming", "message"),
    [
        (pa.schema([]), "no columns"),
        (pa.schema({"id": pa.int64()}), "already exists"),
        (pa.schema({"id": pa.int8()}), "Type conflicts"),
        (pa.schema({"s": pa.struct({"p": pa.int64()})}), "already exists"),
        (pa.schema({"s": pa.int64()}), "already exists"),
        (pa.schema({"_rowid": pa.int64()}), "reserved"),
        (pa.schema({"": pa.int64()}), "read back"),
        (pa.schema({"a`b": pa.int64()}), "read back"),
        (pa.schema({"a.b": pa.int64()}), "cannot contain"),
        (pa.schema([pa.field("x", pa.int8()), pa.field("x", pa.int8())]), "Duplicate"),
        (pa.schema({"x": pa.list_(pa.string(), 2)}), "fixed-size list"),
        (pa.schema({"x": pa.month_day_nano_interval()}), "x"),
    ],
    ids=range(12),
)
def test_refused_columns(tmp_path: Path, incoming: pa.Schema, message: str) -> None:
    with pytest.raises(InvalidColumns, match=message) as raised:
        Nulls(incoming).plan(_table(tmp_path))
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, OSError)


def test_members_need_files_of_2_2(tmp_path: Path) -> None:
    with pytest.raises(InvalidColumns, match="sub column is not supported"):
        Nulls(pa.schema({"s": pa.struct({"w": pa.int8()})})).plan(_table(tmp_path, data_storage_version="2.1"))


# -------------------------------------------------------------------------------------------------- plan and finish
def test_a_plan_prints_itself_and_its_tasks_travel(tmp_path: Path) -> None:
    snapshot = _table(tmp_path)
    plan = BySql({"double": "id * 2"}, now_ns=0).plan(snapshot)
    text = str(plan)
    assert "AddColumns: columns=[double]" in text and "reads=[id]" in text and "num_fragments=3" in text
    work, tasks = pickle.loads(pickle.dumps((plan.work, plan.tasks())))
    files = {task.fragment.id: work(task, snapshot.world).file for task in tasks}
    merge = finish_columns(plan, files, snapshot.world.ids.uuid()).operation
    assert [f.physical_rows for f in merge.fragments] == [4, 4, 2]
    assert all(fragment.files[-1].fields == (4,) for fragment in merge.fragments)
    assert merge.preserves_nullability


def test_nothing_is_read_for_nulls(tmp_path: Path) -> None:
    snapshot = _table(tmp_path)
    for plan in (
        Nulls(pa.schema({"n": pa.int8()})).plan(snapshot),
        BySql({"n": "cast(null as int)"}, 0).plan(snapshot),
    ):
        assert plan.work is None and plan.tasks() == [] and plan.estimated_bytes == 0
        assert "no data is read or written" in str(plan)


def test_strict_columns_do_not_preserve_nullability(tmp_path: Path) -> None:
    snapshot = _table(tmp_path)
    assert not BySql({"one": "1"}, now_ns=0).plan(snapshot).preserves_nullability
    with pytest.raises(InvalidColumns, match="must be nullable"):
        Nulls(pa.schema([pa.field("n", pa.int8(), nullable=False)])).plan(snapshot)
    member = pa.field("s", pa.struct([pa.field("w", pa.int8(), nullable=False)]))
    with pytest.raises(InvalidColumns, match="must be nullable"):
        Nulls(pa.schema([member])).plan(snapshot)


# ------------------------------------------------------------------------------------------------- windows, fillers
@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_windows_begin_at_multiples_of_their_size(tmp_path: Path, size: int) -> None:
    ds = tw.write_dataset({"id": range(10)}, str(tmp_path / "t"))
    ds.delete("id in (0, 4, 5, 9)")
    snapshot = ds._snapshot
    plan = BySql({"double": "id * 2"}, now_ns=0, batch_size=size).plan(snapshot)
    assert plan.work is not None
    fragment = snapshot.fragments[0]
    windows = list(live_windows(TaskContext(snapshot.world), plan.work, fragment))
    assert [(w.start, w.stop) for w in windows] == [(at, min(10, at + size)) for at in range(0, 10, size)]
    offsets = np.concatenate([window.rows.offsets for window in windows])
    assert offsets.tolist() == [1, 2, 3, 6, 7, 8]
    assert [v for w in windows if len(w.rows) for v in w.rows.batch["id"].to_pylist()] == offsets.tolist()


KINDS = [
    pa.bool_(),
    pa.uint64(),
    pa.float16(),
    pa.string(),
    pa.large_binary(),
    pa.binary(4),
    pa.date64(),
    pa.timestamp("us", "UTC"),
    pa.time64("ns"),
    pa.duration("s"),
    pa.decimal128(3, 2),
    pa.decimal256(40, 3),
    pa.dictionary(pa.int8(), pa.string()),
    pa.large_list(pa.string()),
    pa.list_(pa.float32(), 3),
    pa.struct([pa.field("a", pa.int8(), nullable=False), pa.field("l", pa.list_(pa.int8()))]),
    pa.map_(pa.string(), pa.int8()),
    pa.uuid(),
]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_fillers(kind: pa.DataType, nullable: bool) -> None:
    schema = pa.schema([pa.field("x", kind, nullable)])
    filler = Filler(schema, "2.2")
    values = pa.RecordBatch.from_arrays([pa.concat_arrays([placeholder(kind)] * 2)], schema=schema)
    wide = filler.widen(values, np.array([11, 13]), 10, 15)
    wide.validate(full=True)
    assert wide.column(0).is_valid().to_pylist() == [not nullable, True, not nullable, True, not nullable]
    assert filler.widen(values, np.array([10, 11]), 10, 12) is values
    assert filler.rows(3).num_rows == 3


def test_files_of_2_0_have_no_null_structs() -> None:
    schema = pa.schema({"s": pa.struct({"a": pa.int8()})})
    assert Filler(schema, "2.0").rows(1).column(0).null_count == 0
    assert Filler(schema, "2.1").rows(1).column(0).null_count == 1


# --------------------------------------------------------------------------------------------------------- kept
def _kept(plan: ColumnsPlan, fragment_id: int) -> Kept:
    fragment = plan.fragments.by_id(fragment_id)
    ids = tuple(field.id for field in plan.written.fields)
    file = DataFile(path="x.lance", fields=ids, column_indices=(0,), file_major_version=2, file_minor_version=2)
    return Kept(file, plan.inputs[fragment_id], fragment.deleted_rows, plan.written)


def test_results_outlive_what_does_not_concern_them(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(8), "x": range(8), "y": range(8)}, str(tmp_path / "t"), max_rows_per_file=4)
    request = BySql({"c": "x + 1"}, now_ns=0)
    kept = {id: _kept(request.plan(ds._snapshot), id) for id in (0, 1)}

    def fitting() -> list[int]:
        plan = request.plan(ds._snapshot)
        inputs = plan.inputs
        return [f.id for f in plan.fragments if f.id in kept and kept[f.id].fits(f, inputs[f.id], plan.written)]

    assert fitting() == [0, 1]
    ds.delete("id = 1")
    ds.update({"y": "0"}, where="id < 4", write_mode="rewrite_columns")
    ds.update({"x": "0"}, where="id = 2", write_mode="rewrite_rows")
    ds.add_columns({"other": "id"})
    ds.insert({"id": [9], "x": [9], "y": [9], "other": [9]})
    assert fitting() == [0, 1]
    assert kept[0].numbered(request.plan(ds._snapshot).written).fields == (4,)
    ds.update({"x": "-1"}, where="id < 4", write_mode="rewrite_columns")
    assert fitting() == [1]


def test_rows_that_come_back_were_not_computed(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(4)}, str(tmp_path / "t"))
    ds.delete("id = 0")
    request = BySql({"c": "id + 1"}, now_ns=0)
    kept = _kept(request.plan(ds._snapshot), 0)
    before = request.plan(ds.checkout_version(1)._snapshot)
    assert not kept.fits(before.fragments[0], before.inputs[0], before.written)


def test_system_columns_are_inputs_where_they_are_read(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(4), "x": range(4)}, str(tmp_path / "t"), max_rows_per_file=2)
    requests = {"_rowoffset": BySql({"c": "_rowoffset"}, now_ns=0), "_rowaddr": BySql({"c": "_rowaddr"}, now_ns=0)}
    kept = {name: _kept(request.plan(ds._snapshot), 1) for name, request in requests.items()}
    ds.delete("id = 0")
    for name, result in kept.items():
        plan = requests[name].plan(ds._snapshot)
        fits = result.fits(plan.fragments[1], plan.inputs[1], plan.written)
        assert fits == (name == "_rowaddr")


# ------------------------------------------------------------------------------------------------------------ alter
def test_casts_get_new_ids_in_the_old_place(tmp_path: Path) -> None:
    snapshot = _table(tmp_path)
    alterations = (Alteration(path="s.p", data_type=pa.int8()), Alteration(path="id", name="key", data_type=pa.int32()))
    altered = alter_schema(snapshot.manifest, alterations)
    assert _ids(altered.after) == [
        (5, -1, "key", "int32"),
        (1, -1, "s", "struct"),
        (4, 1, "p", "int8"),
        (3, 1, "q", "string"),
    ]
    assert set(altered.casts) == {(1, 1), (0, 5)}
    plan = Alter(alterations).plan(snapshot)
    assert [field.id for field in plan.written.fields] == [5, 1, 4, 3]
    assert plan.reads.names == ("id", "s")


def test_one_name_and_one_nullability_may_come_apart(tmp_path: Path) -> None:
    manifest = _table(tmp_path).manifest
    both = [Alteration(path="id", name="key"), Alteration(path="id", nullable=False)]
    altered = alter_schema(manifest, both)
    assert altered.after.names == ("key", "s") and altered.made_strict == (0,)
    with pytest.raises(InvalidColumns, match="twice"):
        alter_schema(manifest, [*both, Alteration(path="id", name="again")])
    lists = tw.write_dataset({"l": [[1]]}, "memory://altered-twice")._snapshot.manifest
    below = [Alteration(path="l", data_type=pa.large_list(pa.int64())), Alteration(path="l.item", name="x")]
    with pytest.raises(InvalidColumns, match="twice"):
        alter_schema(lists, below)


def test_a_cast_keeps_metadata(tmp_path: Path) -> None:
    key = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False, metadata=key)])
    snapshot = _table(tmp_path, pa.table({"id": pa.array([1], pa.int32())}, schema=schema))
    after = alter_schema(snapshot.manifest, [Alteration(path="id", data_type=pa.int64())]).after
    assert after.fields[0].unenforced_primary_key and after.fields[0].metadata == {
        k: v.encode() for k, v in key.items()
    }
    with pytest.raises(InvalidColumns, match="Primary key"):
        alter_schema(snapshot.manifest, [Alteration(path="id", nullable=True)])


def test_castable_is_lances_table() -> None:
    assert castable(pa.int64(), pa.uint8()) and castable(pa.timestamp("us"), pa.time32("s"))
    assert castable(pa.dictionary(pa.int8(), pa.string()), pa.large_string())
    assert castable(pa.list_(pa.float32()), pa.list_(pa.float64(), 3))
    assert not castable(pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 3))
    assert not castable(pa.time32("s"), pa.timestamp("us")) and not castable(pa.bool_(), pa.int8())
    assert not castable(pa.binary(4), pa.binary()) and not castable(
        pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int16()})
    )
    assert [lance_name(kind) for kind in (pa.date32(), pa.large_string(), pa.bool_())] == [
        "Date32",
        "LargeUtf8",
        "Boolean",
    ]


def test_recast_walks_nested_values() -> None:
    kind = pa.list_(pa.struct({"x": pa.int64(), "l": pa.list_(pa.int64())}))
    array = pa.array([[{"x": 1, "l": [1]}], None, [], [{"x": None, "l": None}, None], [{"x": 300, "l": []}]], kind)
    wanted = pa.list_(pa.struct({"y": pa.int8(), "l": pa.list_(pa.int32())}))
    made = recast(array.slice(1, 3), wanted, "c")
    assert made.type == wanted
    assert made.to_pylist() == [None, [], [{"y": None, "l": None}, None]]
    with pytest.raises(InvalidColumns, match="Can't cast value 300 to type Int8"):
        recast(array, wanted, "c")


# ------------------------------------------------------------------------------------------------------------- drop
def test_a_parent_goes_with_its_last_member() -> None:
    rows = {
        "id": [1],
        "s": [{"p": 1, "q": {"z": 1}}],
        "l": [[1]],
        "m": pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())),
    }
    snapshot = tw.write_dataset(rows, "memory://drop-parents")._snapshot
    assert _ids(plan_drop(snapshot, ["s.q.z"]).after)[1:3] == [(1, -1, "s", "struct"), (2, 1, "p", "int64")]
    assert plan_drop(snapshot, ["s.q.z", "s.p", "l.item"]).after.names == ("id", "m")
    for paths in (["id", "s", "l", "m"], ["nope"], ["ID"], ["m.entries.key"]):
        with pytest.raises(InvalidRequest):
            plan_drop(snapshot, paths)


# ------------------------------------------------------------------------------------------------- functions, streams
def test_what_a_function_may_return() -> None:
    pandas = pytest.importorskip("pandas")
    schema = pa.schema({"x": pa.int32()})
    assert result_batch(pandas.DataFrame({"x": [1]}, index=[7]), schema).to_pydict() == {"x": [1]}
    assert result_batch(pandas.DataFrame({"x": [1]})).schema.types == [pa.int64()]
    strict = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    assert result_batch(pa.record_batch({"x": [1]}), strict).num_rows == 1
    for wrong in (pa.record_batch({"y": [1]}), pandas.DataFrame({"x": ["a"]}), pandas.DataFrame({"x": [1], "y": [1]})):
        with pytest.raises(InvalidColumns):
            result_batch(wrong, schema)
    with pytest.raises(TypeError):
        result_batch(pa.table({"x": [1]}), schema)


def test_a_sample_of_an_empty_table_has_no_rows() -> None:
    snapshot = tw.write_dataset(pa.table({"x": pa.array([], pa.int64())}), "memory://sample-empty")._snapshot
    seen: list[int] = []

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.num_rows)
        return pa.record_batch({"y": batch["x"]})

    assert sample_schema(snapshot, function, ("x",)).names == ["y"]
    assert seen == [0]


def test_rows_of_a_stream() -> None:
    batches = [pa.record_batch({"x": list(range(start, stop))}) for start, stop in ((0, 3), (3, 3), (3, 4), (4, 9))]
    stream = RowStream(batches)
    assert [stream.take(n)["x"].to_pylist() for n in (2, 4, 1)] == [[0, 1], [2, 3, 4, 5], [6]]
    with pytest.raises(InvalidColumns, match="Stream produced more values than expected for dataset"):
        stream.end()
    with pytest.raises(InvalidColumns, match="Stream ended before producing values for all rows in dataset"):
        RowStream(batches).take(10)


# ------------------------------------------------------------------------------------------------------------- join
@pytest.mark.parametrize(
    "keys",
    [
        pa.array([3, 1, None, 3], pa.int64()),
        pa.array([3, 1, None, 3], pa.uint8()),
        pa.array([3.5, -0.5, None, 3.5], pa.float32()),
        pa.array([3.5, float("nan"), None, 3.5], pa.float16()),
        pa.array(["c", "a", None, "c"]),
        pa.array([b"c", b"a", None, b"c"], pa.binary(1)),
        pa.array(["c", "a", None, "c"]).dictionary_encode(),
        pa.array([3, 1, None, 3], pa.timestamp("us", "UTC")),
        pa.array([3, 1, None, 3], pa.date32()),
        pa.array([True, False, None, True]),
        pa.array([3, 1, None, 3], pa.decimal128(20, 2)),
    ],
    ids=lambda array: str(array.type),
)
def test_lookup_by_any_key(keys: pa.Array) -> None:
    lookup = Lookup(pa.table({"k": keys, "v": ["first", "one", "null", "last"]}), "k")
    probe = pa.concat_arrays([keys, keys.slice(2, 1)])
    assert lookup.take(lookup.find(probe))["v"].to_pylist() == ["last", "one", "null", "last", "null"]
    without = Lookup(pa.table({"k": keys.slice(0, 1), "v": ["x"]}), "k")
    assert without.find(keys).tolist() == [0, -1, -1, 0]
    empty = Lookup(pa.table({"k": keys.slice(0, 0), "v": pa.array([], pa.string())}), "k")
    assert empty.take(empty.find(keys))["v"].to_pylist() == [None] * 4


def test_joined_columns_are_planned(tmp_path: Path) -> None:
    snapshot = _table(tmp_path)
    lookup = Lookup(pa.table({"k": [1], "v": ["x"]}), "k")
    plan = Join(lookup, "id").plan(snapshot)
    assert plan.reads == RowLayout.of(snapshot.schema, [("id",)]) and plan.written.names == ("v",)
    for wrong, message in (
        (Join(lookup, "nope"), "left side"),
        (Join(lookup, "s"), "type mismatch"),
        (Join(Lookup(pa.table({"k": [1], "s": ["x"]}), "k"), "id"), "both sides"),
        (Join(Lookup(pa.table({"k": [1]}), "k"), "id"), "besides the key"),
    ):
        with pytest.raises(InvalidColumns, match=message):
            wrong.plan(snapshot)


# ------------------------------------------------------------------------------------------------------- checkpoint
def test_a_checkpoint_belongs_to_one_table_and_one_result(tmp_path: Path) -> None:
    snapshot, path = _table(tmp_path), tmp_path / "checkpoint"

    def plan(name: str, columns: tuple[str, ...] = ("id",)) -> ColumnsPlan:
        return ByFunction(lambda batch: batch, pa.schema({name: pa.int64()}), columns).plan(snapshot)

    Checkpoint(path, plan("a")).close()
    Checkpoint(path, plan("a")).close()
    for other in (plan("b"), plan("a", ("id", "s"))):
        with pytest.raises(InvalidRequest, match="another table or other columns"):
            Checkpoint(path, other)
    (tmp_path / "text").write_text("no database at all, just text that is long enough to be looked at" * 20)
    for unusable in (tmp_path / "text", tmp_path / "no" / "directory"):
        with pytest.raises(InvalidRequest, match="can't be used"):
            Checkpoint(unusable, plan("a"))


def test_known_windows_lose_deleted_rows(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(6)}, str(tmp_path / "t"))
    request = ByFunction(lambda batch: batch, pa.schema({"c": pa.int64()}), ("id",), 4)

    def windows() -> tuple[ColumnsPlan, list[Any]]:
        plan = request.plan(ds._snapshot)
        assert plan.work is not None
        return plan, list(live_windows(TaskContext(ds._world), plan.work, ds._snapshot.fragments[0]))

    plan, (first, second) = windows()
    checkpoint = Checkpoint(tmp_path / "checkpoint", plan)
    checkpoint.add_window(first, plan.inputs[0], pa.record_batch({"c": [10, 11, 12, 13]}))
    assert checkpoint.window(second, plan.inputs[0]) is None
    ds.delete("id in (0, 2)")
    plan, (first, _) = windows()
    assert checkpoint.window(first, plan.inputs[0])["c"].to_pylist() == [11, 13]
    ds.update({"id": "id + 1"}, write_mode="rewrite_columns")
    plan, (first, _) = windows()
    assert checkpoint.window(first, plan.inputs[0]) is None
    checkpoint.remove()
    assert not (tmp_path / "checkpoint").exists()
