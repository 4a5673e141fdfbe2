"""Columns added, altered, dropped and merged through the public face: plans, refusals, interrupts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.errors import CommitConflict, InvalidRequest, TablewrightError
from tablewright.operations.columns.schema import InvalidColumns

ROWS = 10


def _rows(start: int = 0, stop: int = ROWS) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([i * 10 for i in ids], pa.int32()),
            "s": [None if i % 4 == 3 else f"r{i}" for i in ids],
        }
    )


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def stable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def ds(tmp_path: Path, version: str, stable: bool) -> tw.LanceDataset:
    """Three fragments of four, four and two rows; rows 1, 4, 5 and 9 are deleted."""
    ds = _written(tmp_path, data_storage_version=version, enable_stable_row_ids=stable)
    ds.delete("id in (1, 4, 5, 9)")
    return ds


@pytest.fixture
def plain(tmp_path: Path) -> tw.LanceDataset:
    """Three fragments, nothing deleted."""
    return _written(tmp_path)


def _written(tmp_path: Path, rows: Any = None, **options: Any) -> tw.LanceDataset:
    return tw.write_dataset(
        _rows() if rows is None else rows, str(tmp_path / "t.lance"), **{"max_rows_per_file": 4, **options}
    )


def _tree(ds: tw.LanceDataset) -> set[str]:
    return {str(path) for path in Path(ds.uri).rglob("*") if path.is_file()}


def _fragments_of(batch: pa.RecordBatch) -> set[int]:
    return {address >> 32 for address in batch["_rowaddr"].to_pylist()}


def test_prepared(plain: tw.LanceDataset) -> None:
    prepared = plain.prepare_add_columns({"c": "id + 1"})
    text = prepared.explain_plan()
    assert (
        "AddColumns: columns=[c]" in text
        and "reads=[id]" in text
        and "engine=local" in text
        and "estimated_bytes" in text
    )
    transaction, stats = prepared.execute_uncommitted()
    assert plain.version == 1 and stats["num_fragments"] == 3 and stats["bytes_written"] > 0
    made = tw.CommitBuilder(plain).execute(transaction)
    assert made.to_table()["c"].to_pylist() == list(range(1, 11))
    analyzed = made.prepare_add_columns(lambda batch: pa.record_batch({"d": batch["id"]})).analyze_plan()
    assert "num_files_written=3" in analyzed and "engine=local" in analyzed and made.version == 3
    assert (
        "a stream in this process"
        in made.prepare_add_columns(_rows().select(["n"]).rename_columns(["m"])).explain_plan()
    )


# -------------------------------------------------------------------------------------------- what is refused
def _fails(batch: pa.RecordBatch) -> pa.RecordBatch:
    if 5 in batch["id"].to_pylist():
        raise ValueError("five is right out")
    return pa.record_batch({"c": batch["id"]})


def _short(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"c": batch["id"].slice(0, 1)})


def _fickle(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({f"c{batch['id'][0]}": batch["id"]})


def _late_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"c": pa.array([None if i == 9 else i for i in batch["id"].to_pylist()], pa.int64())})


STRICT = pa.schema([pa.field("c", pa.int64(), nullable=False)])
BAD: list[tuple[Any, dict[str, Any], type, str]] = [
    ({"id": "id"}, {}, OSError, "already exists"),
    ({"c": "nope + 1"}, {}, OSError, "No field named nope"),
    ({"c": "id + "}, {}, ValueError, "id +"),
    ({"c": "1 / (id - 5)"}, {}, OSError, "[Dd]ivide by zero"),
    ({"c": "cast(s as int)"}, {}, OSError, "Cannot cast string"),
    ({"c": "sum(id)"}, {}, ValueError, "sum"),
    ({}, {}, ValueError, "no columns"),
    ({"_rowid": "id"}, {}, ValueError, "reserved"),
    ({"a.b": "id"}, {}, ValueError, "cannot contain"),
    ({1: "id"}, {}, TypeError, "Column names must be a string"),
    ({"c": 1}, {}, TypeError, "Column expressions must be a string"),
    ([], {}, ValueError, "no columns"),
    (pa.schema([]), {}, ValueError, "no columns"),
    (pa.field("c", pa.int8(), nullable=False), {}, OSError, "must be nullable"),
    ([pa.field("c", pa.int8()), "c"], {}, TypeError, "fields only"),
    (5, {}, TypeError, "transforms must be a BatchUDF"),
    (None, {}, TypeError, "transforms must be a BatchUDF"),
    ("id + 1", {}, TypeError, "transforms must be a BatchUDF"),
    ({"c": "id"}, {"batch_size": 0}, ValueError, "batch_size"),
    (lambda batch: 1 / 0, {}, TypeError, "callable, but gave an error"),
    (lambda batch: [1], {}, TypeError, "must return"),
    (lambda batch: pa.record_batch({"id": batch["id"]}), {}, OSError, "already exists"),
    (_short, {}, OSError, "different size"),
    (_fickle, {}, OSError, "Output schema of function does not match the expected schema"),
    (_fails, {"batch_size": 1}, OSError, "ValueError: five is right out"),
    (tw.batch_udf(STRICT)(_late_nulls), {}, OSError, "non-nullable"),
    (lambda batch: batch, {"read_columns": ["nope"]}, ValueError, "No field named nope"),
    (lambda batch: batch, {"read_columns": "id"}, TypeError, "read_columns"),
    (lambda batch: batch, {"read_columns": [1]}, TypeError, "read_columns"),
    (pa.table({"c": range(9)}), {}, OSError, "Stream ended before producing values for all rows in dataset"),
    (pa.table({"c": range(11)}), {}, OSError, "Stream produced more values than expected for dataset"),
    (pa.table({"c": range(5)}).to_reader(), {}, OSError, "Stream ended"),
    (pa.table({"n": range(10)}), {}, OSError, "already exists"),
    (
        pa.table({"c": [None] * 10}, schema=pa.schema([pa.field("c", pa.int8(), nullable=False)])),
        {},
        OSError,
        "non-null",
    ),
    (pa.table({"c": ["x"] * 10}), {"reader_schema": pa.schema({"c": pa.int8()})}, ValueError, "cast"),
]


@pytest.mark.parametrize("case", BAD, ids=range(len(BAD)))
def test_bad_input_writes_nothing(plain: tw.LanceDataset, case: tuple[Any, dict[str, Any], type, str]) -> None:
    transforms, options, kind, message = case
    before = _tree(plain)
    with pytest.raises(kind, match=message) as raised:
        plain.add_columns(transforms, **options)
    assert isinstance(raised.value, InvalidRequest)
    assert _tree(plain) == before and plain.version == 1


def test_bad_alterations_write_nothing(plain: tw.LanceDataset) -> None:
    cases: list[tuple[tuple[Any, ...], type, str]] = [
        (({"path": "id"},), ValueError, "At least one of name, nullable, or data_type must be specified"),
        (({"name": "x"},), ValueError, "path is required"),
        (({"path": "id", "type": "string"},), ValueError, "Unknown key: type"),
        (("id",), TypeError, "dict"),
        (({"path": "id", "name": 1},), TypeError, "name must be"),
        (({"path": "id", "nullable": "yes"},), TypeError, "nullable must be"),
        (({"path": "id", "data_type": "int32"},), TypeError, "data_type must be"),
        (({"path": "q", "name": "z"},), OSError, 'Column "q" does not exist'),
        (({"path": "id", "name": "n"},), OSError, "Duplicate field name"),
        (({"path": "id", "name": "_rowid"},), OSError, "reserved"),
        (({"path": "id", "name": "a.b"},), OSError, "cannot contain"),
        (({"path": "id", "name": ""},), OSError, "read back"),
        (({"path": "s", "nullable": False},), OSError, 'Column "s" contains NULL values'),
        (({"path": "n", "data_type": pa.string()},), OSError, 'Cannot cast column "n" from Int32 to Utf8'),
        (({"path": "n", "data_type": pa.float64()},), OSError, 'Cannot cast column "n" from Int32 to Float64'),
        (({"path": "id", "data_type": pa.int32()}, {"path": "n", "nullable": False}), OSError, "same call"),
        (({"path": "n", "data_type": pa.month_day_nano_interval()},), ValueError, "interval"),
    ]
    before = _tree(plain)
    for alterations, kind, message in cases:
        with pytest.raises(kind, match=message) as raised:
            plain.alter_columns(*alterations)
        assert isinstance(raised.value, InvalidRequest)
    plain.update({"n": "1000"}, where="id = 9", write_mode="rewrite_columns")
    after = _tree(plain)
    with pytest.raises(OSError, match="Can't cast value 1000 to type Int8"):
        plain.alter_columns({"path": "n", "data_type": pa.int8()})
    assert _tree(plain) == after and before < after
    for columns, kind in ((["nope"], ValueError), (["id", "n", "s"], ValueError), ("id", TypeError), ([1], TypeError)):
        with pytest.raises(kind):
            plain.drop_columns(columns)
    assert _tree(plain) == after


def test_a_cast_to_the_same_type_writes_nothing(plain: tw.LanceDataset) -> None:
    files = [fragment.data_files() for fragment in plain.get_fragments()]
    plain.alter_columns({"path": "id", "data_type": pa.int64()}, {"path": "s", "data_type": pa.string_view()})
    assert [fragment.data_files() for fragment in plain.get_fragments()] == files and plain.version == 2


def test_bad_merges_write_nothing(plain: tw.LanceDataset) -> None:
    strict = pa.schema([pa.field("id", pa.int64()), pa.field("y", pa.int64(), nullable=False)])
    before = _tree(plain)
    for data, keys, message in (
        ({"id": [1], "y": [1]}, ("nope", "id"), "left side"),
        ({"id": [1], "y": [1]}, ("id", "nope"), "right side"),
        ({"id": [1], "n": [1]}, ("id",), "both sides"),
        ({"id": ["1"], "y": [1]}, ("id",), "expected Utf8, got Int64"),
        ({"id": [0.5], "y": [1]}, ("id",), "the value 0.5 does not fit"),
        ({"id": [1]}, ("id",), "besides the key"),
        (pa.table({"id": [1], "y": [1]}, schema=strict), ("id",), "non-nullable"),
        (5, ("id",), "Unknown data type"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            plain.merge(data, *keys)
    assert _tree(plain) == before


def test_fragment_columns_refused(plain: tw.LanceDataset, tmp_path: Path) -> None:
    fragment = plain.get_fragment(0)
    assert fragment is not None
    before = _tree(plain)
    function = tw.batch_udf(checkpoint_file=tmp_path / "c")(_fails)
    for bad, message in (
        (lambda: fragment.merge_columns(function), "A checkpoint file cannot be used"),
        (lambda: fragment.merge_columns(pa.table({"c": range(5)})), "Stream produced more"),
        (lambda: fragment.merge_columns(pa.table({"c": range(3)})), "Stream ended"),
        (lambda: fragment.merge({"id": [1], "n": [1]}, "id"), "left side fragment"),
        (lambda: fragment.update_columns({"id": [1], "zz": [1]}, "id"), "does not exist in left side fragment"),
        (lambda: fragment.update_columns({"id": [1], "s": [1]}, "id"), "should have type string"),
        (lambda: fragment.update_columns({"id": [1], "s": ["x"]}), "right side fragment"),
        (lambda: fragment.update_columns({"id": [1]}, "id"), "besides the key"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            bad()
    assert _tree(plain) == before


# ------------------------------------------------------------------------------------------------------ other writers
Meanwhile = Callable[[tw.LanceDataset], Any]


def _while_computing(ds: tw.LanceDataset, meanwhile: Meanwhile, *, at: int = 2) -> tuple[Counter[int], Any]:
    """Add a column by a function during whose call for one fragment another writer does something."""
    calls: Counter[int] = Counter()
    done: list[int] = []

    @tw.batch_udf(output_schema=pa.schema({"c": pa.int64()}))
    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.update(_fragments_of(batch))
        if not done and _fragments_of(batch) == {at}:
            done.append(1)
            meanwhile(tw.dataset(ds.uri))
        return pa.record_batch({"c": pc.add(batch["id"], 100)})

    prepared = ds.prepare_add_columns(function, read_columns=["id", "_rowaddr"])
    return calls, prepared


@pytest.mark.parametrize(
    ("meanwhile", "message"),
    [
        (lambda other: other.add_columns({"c": "n"}), "Column c already exists"),
        (lambda other: other.drop_columns(["id"]), "No field named id"),
        (lambda other: tw.write_dataset(_rows(), other, mode="overwrite"), "Overwrite"),
        (lambda other: other.restore(), "Restore"),
    ],
    ids=["same name", "dropped", "overwrite", "restore"],
)
def test_what_nobody_can_go_on_from(plain: tw.LanceDataset, meanwhile: Meanwhile, message: str) -> None:
    _, prepared = _while_computing(plain, meanwhile)
    with pytest.raises(CommitConflict, match=message) as raised:
        prepared.execute()
    assert not raised.value.retryable
    used = {
        f.path
        for number in (1, 2)
        for each in plain.checkout_version(number).get_fragments()
        for f in each.data_files()
    }
    assert {Path(path).name for path in _tree(plain) if "/data/" in path} == used


def test_a_stream_is_read_once(plain: tw.LanceDataset) -> None:
    prepared = plain.prepare_add_columns(pa.table({"c": range(10)}).to_reader())
    prepared.execute_uncommitted()
    with pytest.raises(InvalidRequest, match="has been read"):
        prepared.execute()


def test_functions_are_called_in_turn(plain: tw.LanceDataset) -> None:
    order: list[int] = []

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        order.extend(batch["id"].to_pylist())
        return pa.record_batch({"c": batch["id"]})

    plain.add_columns(function)
    assert order[1:] == list(range(10))


def test_an_interrupt_leaves_nothing_behind(plain: tw.LanceDataset) -> None:
    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        if 5 in batch["id"].to_pylist():
            raise KeyboardInterrupt
        return pa.record_batch({"c": batch["id"]})

    before = _tree(plain)
    with pytest.raises(KeyboardInterrupt):
        plain.add_columns(tw.batch_udf(pa.schema({"c": pa.int64()}))(function))
    assert _tree(plain) == before


def test_wrong_udfs() -> None:
    with pytest.raises(TypeError):
        tw.batch_udf()(5)  # type: ignore[arg-type]
    for options in ({"output_schema": {"c": "int"}}, {"checkpoint_file": 5}):
        with pytest.raises(TypeError):
            tw.batch_udf(**options)(_fails)  # type: ignore[arg-type]
    assert issubclass(InvalidColumns, TablewrightError) and repr(tw.batch_udf()(_fails)) == "BatchUDF(_fails)"
