from __future__ import annotations

import decimal

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest, SchemaMismatch
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.keys.key_columns import find_key
from tablewright.operations.merge_insert.source.fit import FittedSchema, fit_schema, fitted_batches, new_columns


def _fit(table: pa.Schema, incoming: pa.Schema, on: str = "id", *, inserts: bool = True) -> FittedSchema:
    known = Schema.from_arrow(table)
    return fit_schema(known, incoming, find_key(known, on), inserts=inserts)


def test_the_words_of_pylance() -> None:
    table = pa.schema({"id": pa.int64(), "s": pa.string()})
    with pytest.raises(OSError, match="`id` should have type int64 but type was string"):
        _fit(table, pa.schema({"id": pa.string()}))
    with pytest.raises(OSError, match=r"fields did not match, missing=\[\], unexpected=\[zz\].*schema_evolution=True"):
        _fit(table, pa.schema({"id": pa.int64(), "zz": pa.int8()}))
    with pytest.raises(ValueError, match="No field named id"):
        _fit(table, pa.schema({"s": pa.string()}))
    assert new_columns(Schema.from_arrow(table), pa.schema([pa.field("zz", pa.int8(), nullable=False)])) == pa.schema(
        {"zz": pa.int8()}
    )


def test_columns_without_null_have_to_be_given_for_inserts_only() -> None:
    member = pa.field("must", pa.int8(), nullable=False)
    table = pa.schema([pa.field("id", pa.int64()), pa.field("x", pa.int8(), nullable=False)])
    nested = pa.schema([pa.field("id", pa.int64()), pa.field("t", pa.struct([pa.field("a", pa.int8()), member]))])
    only = pa.schema({"id": pa.int64()})
    assert _fit(table, only, inserts=False).missing == ("x",)
    with pytest.raises(OSError, match=r"Cannot insert rows with a partial-schema source: target column\(s\) \['x'\]"):
        _fit(table, only)
    partly = pa.schema({"id": pa.int64(), "t": pa.struct({"a": pa.int8()})})
    assert _fit(nested, partly, inserts=False).in_part == ("t",)
    with pytest.raises(InvalidMerge, match=r"\['t.must'\]"):
        _fit(nested, partly)


def test_what_can_not_be_left_out() -> None:
    """Members of structs in lists, where rows are updated; all members of a struct."""
    items = pa.struct({"a": pa.int8(), "b": pa.int8()})
    table = pa.schema({"id": pa.int64(), "t": pa.struct({"l": pa.large_list(items), "x": pa.int8()})})
    lacking = pa.schema({"id": pa.int64(), "t": pa.struct({"l": pa.list_(pa.struct({"b": pa.int8()}))})})
    known = Schema.from_arrow(table)
    with pytest.raises(SchemaMismatch, match=r"`t` had mismatched children: .*missing=\[t\.l\.item\.a\]"):
        fit_schema(known, lacking, find_key(known, "id"), inserts=True)
    assert fit_schema(known, lacking, find_key(known, "id"), inserts=True, updates=False).in_part == ("t",)
    with pytest.raises(SchemaMismatch, match=r"missing=\[t\.l, t\.x\]"):
        _fit(table, pa.schema({"id": pa.int64(), "t": pa.struct([])}), inserts=False)


def test_nulls_are_looked_at_early_for_inserts_only() -> None:
    must = pa.struct([pa.field("a", pa.int8(), nullable=False)])
    table = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("t", must, nullable=False)])
    batch = pa.record_batch(
        [pa.array([None, 1]), pa.array([{"a": None}, None], pa.struct({"a": pa.int8()}))], ["id", "t"]
    )
    with pytest.raises(SchemaMismatch, match=r"'id' is declared as non-nullable.*'t' is declared.*'t.a' is declared"):
        list(fitted_batches(_fit(table, batch.schema), [batch]))
    (fitting,) = fitted_batches(_fit(table, batch.schema, inserts=False), [batch])
    assert fitting.to_pylist() == batch.to_pylist()


def test_what_is_kept_and_what_changes() -> None:
    table = pa.schema({"id": pa.int64(), "t": pa.struct({"a": pa.int8(), "b": pa.int8()}), "s": pa.string()})
    fitted = _fit(table, pa.schema({"t": pa.struct({"b": pa.int8()}), "id": pa.int64()}))
    key = find_key(fitted.table, "id")
    assert (fitted.columns, fitted.in_part, fitted.missing) == (("id", "t"), ("t",), ("s",))
    assert fitted.kept == ("t", "s") and fitted.changed(key) == ("t",) and not fitted.is_full
    assert fitted.written().names == ("id", "t")
    whole = _fit(table, table)
    assert whole.is_full and whole.kept == () and whole.changed(find_key(whole.table, "t.a")) == ("id", "t", "s")
    with pytest.raises(InvalidMerge, match=r"No field named t\.a in the source"):
        _fit(table, pa.schema({"t": pa.struct({"b": pa.int8()})}), "t.a")


def test_values_that_do_not_fit_are_refused() -> None:
    fitted = _fit(pa.schema({"id": pa.timestamp("ns")}), pa.schema({"id": pa.timestamp("s")}))
    with pytest.raises(InvalidRequest, match="Cannot cast"):
        list(fitted_batches(fitted, [pa.record_batch([pa.array([2**60], pa.timestamp("s"))], ["id"])]))
    fitted = _fit(
        pa.schema([pa.field("id", pa.decimal128(9, 2), nullable=False)]), pa.schema({"id": pa.decimal128(5, 1)})
    )
    batch = pa.record_batch([pa.array([decimal.Decimal("1.5"), None], pa.decimal128(5, 1))], ["id"])
    with pytest.raises(SchemaMismatch, match="non-nullable"):
        list(fitted_batches(fitted, [batch]))


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.null()], ids=str)
def test_keys_that_can_not_be_compared(kind: pa.DataType) -> None:
    with pytest.raises(InvalidRequest, match="can't be compared"):
        find_key(Schema.from_arrow(pa.schema({"k": kind})), "k")


def test_the_key() -> None:
    table = Schema.from_arrow(pa.schema({"Id": pa.int64(), "t": pa.struct({"a": pa.int8()})}))
    assert find_key(table, ["id", "Id", "t.a"]).names == ("Id", "t.a")
    for nothing in (None, [], ()):
        with pytest.raises(InvalidRequest, match="requires join keys"):
            find_key(table, nothing)
    with pytest.raises(ValueError, match="Merge insert key column 'nope' does not exist in schema"):
        find_key(table, "nope")
    with pytest.raises(TypeError, match="must be a str or iterable of str"):
        find_key(table, 5)
    with pytest.raises(TypeError, match="must be a str or iterable of str"):
        find_key(table, ["id", 5])
    marked = {b"lance-schema:unenforced-primary-key": b"true"}
    second = {**marked, b"lance-schema:unenforced-primary-key:position": b"1"}
    first = {**marked, b"lance-schema:unenforced-primary-key:position": b"2"}
    declared = Schema.from_arrow(
        pa.schema([pa.field("a", pa.int64(), False, first), pa.field("b", pa.string(), False, second)])
    )
    assert find_key(declared, None).names == ("b", "a")
