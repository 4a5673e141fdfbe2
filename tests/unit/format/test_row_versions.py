"""Row versions: golden bytes, arithmetic against plain arrays, hostile bytes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.proto import rows_pb2
from tablewright.format.row_set import RowSet
from tablewright.format.row_versions import VersionSequence, decode_versions, encode_versions

TOP = 2**64 - 1


def array_of(width: int, values: list[int], base: int = 0) -> rows_pb2.NumberArray:
    data = np.array(values, f"<u{width // 8}").tobytes()
    if width == 64:
        return rows_pb2.NumberArray(u64=rows_pb2.NumberArray.Wide64(values=data))
    if width == 32:
        return rows_pb2.NumberArray(u32=rows_pb2.NumberArray.Narrow32(base=base, offsets=data))
    return rows_pb2.NumberArray(u16=rows_pb2.NumberArray.Narrow16(base=base, offsets=data))


ranges = rows_pb2.Segment


# ------------------------------------------------------------------------------------------------------------- versions
GOLDEN_VERSIONS = {  # bytes of pylance 14.0.2
    ((10, 1),): "0a080a040a02100a1001",
    ((2, 1), (1, 2)): "0a080a040a02100210010a0a0a060a04080210031002",
    ((6, 1), (2, 8), (2, 1)): "0a080a040a02100610010a0a0a060a040806100810080a0a0a060a040808100a1001",
}


@pytest.mark.parametrize(("runs", "stored"), GOLDEN_VERSIONS.items(), ids=str)
def test_golden_versions_both_ways(runs: tuple[tuple[int, int], ...], stored: str) -> None:
    made = VersionSequence.from_runs(runs)
    assert encode_versions(made).hex() == stored
    decoded = decode_versions(bytes.fromhex(stored), "p")
    assert decoded == made
    assert decoded.runs == runs
    assert encode_versions(pickle.loads(pickle.dumps(decoded))).hex() == stored


def test_version_arithmetic() -> None:
    six = VersionSequence.constant(10, 1).patched(np.array([6, 7]), 8)
    assert six.runs == ((6, 1), (2, 8), (2, 1))
    assert len(six) == 10
    assert VersionSequence.constant(10, 1).patched(RowSet.of([6, 7]), 8) == six
    assert six.patched(RowSet(), 9) == six
    assert six.concat(VersionSequence.constant(3, 1)).runs == ((6, 1), (2, 8), (5, 1))
    assert six.select(np.array([7, 0, 1])).runs == ((1, 8), (2, 1))
    mask = np.ones(10, np.bool_)
    mask[:6] = False
    assert six.select(mask).runs == ((2, 8), (2, 1))
    assert VersionSequence.constant(0, 5) == VersionSequence() == six.select(np.array([], np.int64))
    assert encode_versions(VersionSequence()) == b"" and len(decode_versions(b"", "p")) == 0
    assert VersionSequence.from_runs([(1, 3), (0, 9), (2, 3)]).runs == ((3, 3),)
    for bad in (np.array([10]), np.array([-1]), RowSet.of([10])):
        with pytest.raises(InvalidRequest):
            six.patched(bad, 3)
        with pytest.raises(InvalidRequest):
            six.without(bad)


def test_runs_fold_where_rows_between_them_are_gone() -> None:
    six = VersionSequence.from_runs([(6, 1), (2, 8), (2, 1)])
    assert six.without(RowSet.of([6, 7])).runs == ((8, 1),)
    assert six.without(np.array([7, 0, 7])).runs == ((5, 1), (1, 8), (2, 1))
    assert six.without(RowSet()) is six and six.without(RowSet.full(10)) == VersionSequence()
    assert six.slice(5, 7).runs == ((1, 1), (1, 8))
    assert six.slice(3, 3) == six.slice(8, 2) == VersionSequence() and six.slice(-3, 99) == six
    assert VersionSequence.join([six.slice(8, 10), six.slice(0, 6)]).runs == ((8, 1),)
    assert VersionSequence.join([]) == VersionSequence()


@pytest.mark.parametrize("version", [0, 1, 127, 128, 2**14 - 1, 2**14, 2**35, 2**63, TOP])
@pytest.mark.parametrize("count", [1, 127, 128, 300, 2**21, 2**31])
def test_our_encoder_and_protobuf_agree(count: int, version: int) -> None:
    made = VersionSequence.from_runs([(count, version), (1, 77)])
    message = rows_pb2.VersionSequence.FromString(encode_versions(made))
    assert [(run.span.range.start, run.span.range.end, run.version) for run in message.runs] == [
        (0, count, version),
        (count, count + 1, 77),
    ]
    assert message.SerializeToString() == encode_versions(made)
    assert decode_versions(encode_versions(made), "p", count + 1) == made


def test_only_the_count_of_a_span_matters_and_spans_come_back() -> None:
    spans = [
        rows_pb2.Segment(range=ranges.Range(start=5, end=8)),
        rows_pb2.Segment(range_with_bitmap=ranges.RangeWithBitmap(start=0, end=9, bitmap=b"\x0f\x01")),
        rows_pb2.Segment(range=ranges.Range(start=0, end=2)),
        rows_pb2.Segment(range=ranges.Range()),
        rows_pb2.Segment(sorted_array=array_of(16, [1, 3])),
    ]
    message = rows_pb2.VersionSequence(
        runs=[rows_pb2.VersionRun(span=span, version=at + 1) for at, span in enumerate(spans)]
    )
    stored = message.SerializeToString()
    decoded = decode_versions(stored, "p", 12)
    assert decoded.runs == ((3, 1), (5, 2), (2, 3), (0, 4), (2, 5))
    assert decoded.to_numpy().tolist() == [1] * 3 + [2] * 5 + [3] * 2 + [5] * 2
    assert encode_versions(decoded) == stored
    assert encode_versions(decoded.patched(np.array([0]), 1)) != stored


@pytest.mark.parametrize(
    "stored",
    [
        b"\xff",
        bytes.fromhex("0a00"),  # a run without a span
        bytes.fromhex("0a0210"),
        bytes.fromhex("0a021001"),
        bytes.fromhex("0a060a040a020805"),  # a range that ends before it starts
        bytes.fromhex("0a0d0a0b0a0910ffffffffffffffff7f"),
        bytes.fromhex("0a0e0a0c0a0a10ffffffffffffffffff01"),
        bytes.fromhex("0a040a020aff"),
    ],
)
def test_hostile_versions_are_corrupt(stored: bytes) -> None:
    with pytest.raises(CorruptTable, match="manifest"):
        decode_versions(stored, "manifest")
    with pytest.raises(CorruptTable, match="manifest"):
        decode_versions(stored, "manifest", 3)
