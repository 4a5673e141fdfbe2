"""Narrow dictionaries: joined where they can be, and counted per file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.data.dictionaries import FileDictionaries, has_narrow_dictionaries, joined, unified

NARROW = pa.dictionary(pa.int8(), pa.string())


def batch(first: int, count: int, kind: pa.DataType = NARROW) -> pa.RecordBatch:
    values = pa.array([f"v{number}" for number in range(first, first + count)])
    return pa.record_batch({"kind": values.dictionary_encode().cast(kind)})


def texts(batches: list[pa.RecordBatch]) -> list[str]:
    return [text for each in batches for text in each["kind"].cast(pa.string()).to_pylist()]


@pytest.mark.parametrize(
    ("kind", "narrow"),
    [
        (NARROW, True),
        (pa.dictionary(pa.uint16(), pa.binary()), True),
        (pa.dictionary(pa.int32(), pa.string()), False),
        (pa.struct({"a": pa.int8(), "b": pa.list_(NARROW)}), True),
        (pa.list_(pa.string()), False),
    ],
    ids=str,
)
def test_which_are_narrow(kind: pa.DataType, narrow: bool) -> None:
    assert has_narrow_dictionaries(pa.schema({"x": pa.int8(), "kind": kind})) == narrow


def test_batches_are_joined_as_far_as_their_values_allow() -> None:
    equal = [batch(0, 100) for _ in range(5)]
    assert [each.num_rows for each in joined(equal)] == [500]
    others = [batch(100 * number, 100) for number in range(4)]
    assert [each.num_rows for each in joined(others)] == [100] * 4
    halves = [batch(50 * number, 50) for number in range(4)]
    assert [each.num_rows for each in joined(halves)] == [100, 100]
    for given in (equal, others, halves):
        assert texts(list(unified(iter(given)))) == texts(given)


def test_values_of_a_file_are_counted_together() -> None:
    file = FileDictionaries(batch(0, 1).schema)
    for first in (0, 64):
        assert file.overfull(batch(first, 64)) is None
        file.add(batch(first, 64))
    assert file.overfull(batch(0, 1)) == NARROW
    unsigned = FileDictionaries(pa.schema({"kind": pa.dictionary(pa.uint8(), pa.string())}))
    unsigned.add(batch(0, 128, pa.dictionary(pa.uint8(), pa.string())))
    assert unsigned.overfull(batch(0, 128, pa.dictionary(pa.uint8(), pa.string()))) is None


def test_dictionaries_in_structs_and_lists_count() -> None:
    inner = batch(0, 100)["kind"]
    nested = pa.record_batch({"s": pa.StructArray.from_arrays([inner], ["d"]), "l": pa.array([None] * 100)})
    file = FileDictionaries(nested.schema)
    file.add(nested)
    assert file.overfull(nested) == NARROW


def test_other_errors_of_arrow_are_not_hidden() -> None:
    with pytest.raises(pa.ArrowInvalid):
        joined([pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})])
