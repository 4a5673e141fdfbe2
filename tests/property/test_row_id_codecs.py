"""Row ids, row versions and deletion vectors: any value survives its bytes and behaves like a plain list."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tablewright.errors import CorruptTable
from tablewright.format.deletion_vectors.lance import decode_deletion_vector, encode_deletion_vector
from tablewright.format.deletion_vectors.problems import problems_of_deletions
from tablewright.format.fragment import DeletionFileType
from tablewright.format.proto import rows_pb2
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.format.row_versions import VersionSequence, decode_versions, encode_versions
from tablewright.format.segment_codec import segment_from_proto

TOP = 2**64 - 1
NUMBER = st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(0, TOP), st.integers(TOP - 20, TOP))


@st.composite
def id_lists(draw: st.DrawFn) -> list[int]:
    """Dense, sparse, sorted and shuffled ids: every shape gets its turn."""
    match draw(st.integers(0, 3)):
        case 0:
            start, size = draw(st.integers(0, 2**40)), draw(st.integers(0, 300))
            gone = draw(st.sets(st.integers(start, start + size)))
            ids = [number for number in range(start, start + size) if number not in gone]
        case 1:
            ids = sorted(draw(st.sets(NUMBER, max_size=40)))
        case 2:
            ids = draw(st.lists(NUMBER, max_size=40, unique=True))
        case _:
            step = draw(st.sampled_from([1, 2, 5, 9, 1000]))
            ids = list(range(0, step * draw(st.integers(0, 60)), step))
    return ids


@st.composite
def sequences(draw: st.DrawFn) -> RowIdSequence:
    """Several segments without a common id."""
    sequence, seen = RowIdSequence(), set[int]()
    for ids in draw(st.lists(id_lists(), max_size=12)):
        fresh = [number for number in ids if number not in seen]
        seen.update(fresh)
        sequence = sequence.concat(RowIdSequence.from_values(fresh))
    return sequence


@given(id_lists())
def test_ids_survive_their_bytes(ids: list[int]) -> None:
    sequence = RowIdSequence.from_values(ids)
    assert len(sequence) == len(ids)
    assert sequence.to_numpy().tolist() == ids
    stored = encode_row_ids(sequence)
    decoded = decode_row_ids(stored, "p", len(ids))
    assert decoded == sequence == pickle.loads(pickle.dumps(sequence))
    assert encode_row_ids(decoded) == stored


@given(sequences(), st.data())
def test_sequences_behave_like_lists(sequence: RowIdSequence, data: st.DataObject) -> None:
    ids = sequence.to_numpy().tolist()
    assert decode_row_ids(encode_row_ids(sequence), "p", len(ids)) == sequence
    low, high = data.draw(st.integers(0, len(ids) + 1)), data.draw(st.integers(0, len(ids) + 1))
    assert sequence.slice(low, high).to_numpy().tolist() == ids[low:high]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids))), np.bool_)
    live = [number for number, keep in zip(ids, mask.tolist(), strict=True) if keep]
    assert sequence.select(mask).to_numpy().tolist() == live
    picked = data.draw(st.lists(st.integers(0, len(ids) - 1), unique=True, max_size=20)) if ids else []
    assert sequence.select(np.array(picked, np.int64)).to_numpy().tolist() == [ids[place] for place in picked]
    asked = data.draw(st.lists(NUMBER, max_size=20)) + [ids[place] for place in picked]
    assert sequence.position_of(np.array(asked, np.uint64)).tolist() == [
        ids.index(number) if number in ids else -1 for number in asked
    ]
    assert sequence.bounds == ((min(ids), max(ids)) if ids else None)


@given(sequences(), sequences())
def test_no_id_comes_twice(one: RowIdSequence, other: RowIdSequence) -> None:
    common = set(one.to_numpy().tolist()) & set(other.to_numpy().tolist())
    joined = encode_row_ids(one) + encode_row_ids(other)
    if common:
        with pytest.raises(CorruptTable, match="comes twice"):
            decode_row_ids(joined, "p")
    else:
        assert len(decode_row_ids(joined, "p")) == len(one) + len(other)


VERSIONS = st.lists(st.one_of(st.integers(0, 3), st.integers(0, TOP)), max_size=60)


@given(VERSIONS, VERSIONS, st.data())
def test_versions_behave_like_lists(one: list[int], other: list[int], data: st.DataObject) -> None:
    ours = VersionSequence.from_values(np.array(one, np.uint64))
    theirs = VersionSequence.from_values(np.array(other, np.uint64))
    assert ours.to_numpy().tolist() == one and len(ours) == len(one)
    assert ours.concat(theirs).to_numpy().tolist() == one + other
    offsets = data.draw(st.lists(st.integers(0, len(one) - 1), max_size=20)) if one else []
    assert ours.select(np.array(offsets, np.int64)).to_numpy().tolist() == [one[offset] for offset in offsets]
    patched = [77 if offset in offsets else version for offset, version in enumerate(one)]
    assert ours.patched(np.array(offsets, np.int64), 77).to_numpy().tolist() == patched

    stored = encode_versions(ours)
    assert stored == rows_pb2.VersionSequence.FromString(stored).SerializeToString()
    decoded = decode_versions(stored, "p", len(one))
    assert decoded == ours == pickle.loads(pickle.dumps(decoded))
    assert encode_versions(decoded) == stored


OFFSETS: SearchStrategy[set[int]] = st.one_of(
    st.sets(st.integers(0, 200)),
    st.sets(st.integers(0, 2**32 - 1)),
    st.builds(lambda start, size: set(range(start, start + size)), st.integers(0, 2**17), st.integers(0, 10_000)),
)


@given(OFFSETS, OFFSETS, st.sampled_from(DeletionFileType))
def test_deletion_vectors_behave_like_sets(one: set[int], other: set[int], file_type: DeletionFileType) -> None:
    ours, theirs = RowSet.of(one), RowSet.of(other)
    assert ours.to_numpy().tolist() == sorted(one)
    assert ours | theirs == RowSet.of(one | other)
    assert ours & theirs == RowSet.of(one & other)
    assert ours - theirs == RowSet.of(one - other)
    rows = 300
    assert ours.absent(rows).tolist() == [offset for offset in range(rows) if offset not in one]
    assert ours.rank(100) == sum(offset < 100 for offset in one)
    assert bool(problems_of_deletions(ours, rows)) == any(offset >= rows for offset in one)
    assert decode_deletion_vector(encode_deletion_vector(ours, file_type), file_type, "p") == ours


# ------------------------------------------------------------------------------------------------------- hostile bytes
def damaged(data: st.DataObject, stored: bytes) -> bytes:
    changed = bytearray(stored)
    for _ in range(data.draw(st.integers(1, 5))):
        if changed:
            place = data.draw(st.integers(0, len(changed) - 1))
            changed[place : place + 1] = data.draw(st.binary(max_size=3))
    return bytes(changed)


def try_ids(stored: bytes) -> None:
    try:
        sequence = decode_row_ids(stored, "p")
    except CorruptTable:
        return
    assert decode_row_ids(encode_row_ids(sequence), "p") == sequence
    if len(sequence) < 100_000:
        assert len(np.unique(sequence.to_numpy())) == len(sequence)


def try_versions(stored: bytes) -> None:
    try:
        sequence = decode_versions(stored, "p")
    except CorruptTable:
        return
    message = rows_pb2.VersionSequence.FromString(stored)
    assert sequence.runs == tuple((segment_from_proto(run.span).count, run.version) for run in message.runs)
    assert encode_versions(sequence) == stored


def try_deletions(stored: bytes, file_type: DeletionFileType) -> None:
    try:
        vector = decode_deletion_vector(stored, file_type, "p")
    except CorruptTable:
        return
    assert decode_deletion_vector(encode_deletion_vector(vector, file_type), file_type, "p") == vector


@given(st.binary(max_size=80), st.sampled_from(DeletionFileType))
def test_arbitrary_bytes_raise_only_our_errors(stored: bytes, file_type: DeletionFileType) -> None:
    try_ids(stored)
    try_versions(stored)
    try_deletions(stored, file_type)


@given(sequences(), VERSIONS, OFFSETS, st.sampled_from(DeletionFileType), st.data())
def test_damaged_bytes_raise_only_our_errors(
    ids: RowIdSequence, versions: list[int], offsets: set[int], file_type: DeletionFileType, data: st.DataObject
) -> None:
    try_ids(damaged(data, encode_row_ids(ids)))
    try_versions(damaged(data, encode_versions(VersionSequence.from_values(np.array(versions, np.uint64)))))
    try_deletions(damaged(data, encode_deletion_vector(RowSet.of(offsets), file_type)), file_type)
