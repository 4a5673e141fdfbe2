"""The numbers that an Arrow file claims, before Arrow believes them."""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa
import pytest
from tests.depth import deep

from tablewright.errors import CorruptTable
from tablewright.format.arrow_claims import batch_claims
from tablewright.format.deletion_vectors.lance import decode_deletion_vector, encode_deletion_vector
from tablewright.format.fragment import DeletionFileType
from tablewright.format.row_set import RowSet

ARROW = DeletionFileType.ARROW_ARRAY
SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])


def file_of(*arrays: pa.Array, compression: str | None = None, schema: pa.Schema = SCHEMA) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for array in arrays:
            writer.write_batch(pa.record_batch([array], schema=schema))
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("rows", [0, 1, 1000, 100_000])
def test_rows_and_bytes_are_those_of_the_batch(compression: str | None, rows: int) -> None:
    claims = batch_claims(file_of(pa.array(np.arange(rows, dtype=np.uint32)), compression=compression))
    assert claims.num_rows == rows
    assert 4 * rows <= claims.num_bytes < 4 * rows + 64


def test_what_we_write_passes() -> None:
    for count in (0, 1, 4999):
        vector = RowSet.of(np.arange(count) * 3)
        data = encode_deletion_vector(vector, ARROW)
        assert decode_deletion_vector(data, ARROW, "here", rows_max=count) == vector


def test_no_batch_and_two_batches_are_refused() -> None:
    one = pa.array([1], pa.uint32())
    for arrays in ((), (one, one)):
        with pytest.raises(ValueError, match="exactly one batch"):
            batch_claims(file_of(*arrays))
    with pytest.raises(ValueError, match="no Arrow file"):
        batch_claims(b"PAR1 and more")


def test_more_rows_than_the_fragment_has_are_refused() -> None:
    data = file_of(pa.array(np.zeros(1000, np.uint32)), compression="zstd")
    with pytest.raises(CorruptTable, match="claims 1000 offsets in 4000 bytes where there can be at most 999"):
        decode_deletion_vector(data, ARROW, "here", rows_max=999)


@pytest.mark.parametrize("claimed", [2**31, 2**40, 2**63 - 1])
def test_a_buffer_that_claims_to_be_huge_is_not_allocated(claimed: int) -> None:
    data = file_of(pa.array(np.zeros(1000, np.uint32)), compression="zstd")
    at = data.index(struct.pack("<q", 4000))
    damaged = data[:at] + struct.pack("<q", claimed) + data[at + 8 :]
    with pytest.raises(CorruptTable, match=f"in {claimed} bytes"):
        decode_deletion_vector(damaged, ARROW, "here")


def test_dictionaries_are_refused() -> None:
    kind = pa.dictionary(pa.int8(), pa.uint32())
    data = file_of(pa.array([7, 7], pa.uint32()).dictionary_encode().cast(kind), schema=pa.schema({"row_id": kind}))
    with pytest.raises(ValueError, match="dictionaries"):
        batch_claims(data)


def test_changed_bytes_raise_value_errors_only() -> None:
    whole = file_of(pa.array(np.arange(100, dtype=np.uint32)), compression="zstd")
    chance = random.Random(11)
    refused = 0
    for _ in range(deep(2000, 100_000)):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            batch_claims(bytes(data[: chance.choice((len(data), len(data), chance.randrange(len(data))))]))
        except ValueError:
            refused += 1
    assert refused > 300
