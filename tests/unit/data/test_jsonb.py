"""JSON columns: values come back, junk is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.data.jsonb import decode_json_array, decode_jsonb
from tablewright.errors import CorruptTable
from tablewright.testing.worlds import memory_world

_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(st.lists(_JSON, min_size=1, max_size=8))
def test_any_value_comes_back(values: list[Any]) -> None:
    column = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array([json.dumps(value) for value in values]))
    batch = pa.record_batch({"j": column})
    world = memory_world()
    writer = DataFileWriter(world.store, "x", batch.schema, "2.2")
    writer.write(batch)
    writer.close()
    (read,) = DataFileReader(world.store, "x").read(0, len(values), 100)
    assert [json.loads(decode_jsonb(value)) for value in read.column(0).to_pylist()] == values


@given(st.binary(max_size=40))
def test_junk_is_a_corrupt_table(data: bytes) -> None:
    with contextlib.suppress(CorruptTable):
        decode_json_array(pa.array([data]), pa.json_(pa.string()), "here")


def test_unknown_kinds() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        decode_jsonb(bytes(4))


@pytest.mark.parametrize(
    "stored",
    [
        "9fffffff",  # an array of 2**29 - 1 entries, none of them there
        "5fffffff" + "00" * 40,
        "80000001" + "10000005" + "6162",  # a text of five bytes, two of them there
        "20000000" + "20001388" + "50" + "ff" * 100,
    ],
)
def test_claims_beyond_the_bytes_are_refused(stored: str) -> None:
    with pytest.raises(CorruptTable, match="claims"):
        decode_json_array(pa.array([bytes.fromhex(stored)], pa.large_binary()), pa.json_(), "here")
