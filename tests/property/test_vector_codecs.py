"""Deletion vectors of Paimon, Delta and Iceberg: any set survives every codec, and any bytes give it or our errors."""

from __future__ import annotations

import json
import struct
import zlib
from contextlib import suppress
from uuid import UUID

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.deletion_vectors.bins import Width, decode_bin, encode_bin, encode_payload
from tablewright.format.deletion_vectors.delta import DeltaVector, decode_delta, encode_delta_file, encode_delta_inline
from tablewright.format.deletion_vectors.lance import decode_deletion_vector, encode_deletion_vector
from tablewright.format.deletion_vectors.paimon import (
    VectorRange,
    decode_vectors,
    encode_vector_files,
    walk_vector_file,
)
from tablewright.format.deletion_vectors.puffin import decode_puffin, encode_puffin
from tablewright.format.deletion_vectors.z85 import decode_z85, encode_z85
from tablewright.format.fragment import DeletionFileType
from tablewright.format.row_set import RowSet

KEYS = st.sampled_from([0, 0, 0, 1, 2, 7])
LOW = st.one_of(st.integers(0, 40), st.integers(2**16 - 20, 2**16 + 20), st.integers(0, 2**31 - 2**17))


@st.composite
def positions(draw: st.DrawFn, *, keys: st.SearchStrategy[int] = KEYS) -> frozenset[int]:
    """Single positions, runs, and every n-th of a stretch long enough for containers of bits."""
    found = {(draw(keys) << 32) + low for low in draw(st.sets(LOW, max_size=20))}
    for low, length, step in draw(
        st.lists(st.tuples(LOW, st.integers(0, 6000), st.sampled_from([1, 1, 2, 9])), max_size=3)
    ):
        start = (draw(keys) << 32) + low
        found.update(range(start, start + length * step, step))
    return frozenset(found)


NARROW = positions(keys=st.just(0))
NAMED = st.dictionaries(st.text(max_size=8), positions(), max_size=4)


def canonical(vector: RowSet) -> RowSet:
    """The same set made anew: what was decoded has to equal it, whatever its containers look like."""
    values = vector.to_numpy()
    assert np.all(values[1:] > values[:-1]) and len(values) == len(vector)
    return RowSet.of(values)


@given(positions(), positions(), st.lists(st.one_of(LOW, st.integers(2**32 - 3, 2**34)), max_size=5))
def test_wide_vectors_behave_like_sets(one: frozenset[int], other: frozenset[int], asked: list[int]) -> None:
    a, b = RowSet.of(one), RowSet.of(other)
    for vector, expected in (
        (a, one),
        (a | b, one | other),
        (a & b, one & other),
        (a - b, one - other),
    ):
        assert vector == RowSet.of(expected) and hash(vector) == hash(RowSet.of(expected))
        assert vector.to_numpy().tolist() == sorted(expected)
        assert len(vector) == len(expected) and vector.last == max(expected, default=None)
    assert [a.rank(at) for at in asked] == [sum(position < at for position in one) for at in asked]
    assert [at in a for at in asked] == [at in one for at in asked]


@given(NARROW)
def test_one_set_through_all_formats(given_positions: frozenset[int]) -> None:
    """Lance, Paimon with both widths, Delta in a file and inline, Iceberg, and Lance again."""
    vector = RowSet.of(given_positions)
    lance = encode_deletion_vector(vector, DeletionFileType.BITMAP)
    step = decode_deletion_vector(lance, DeletionFileType.BITMAP, "p")
    step = decode_bin(encode_bin(step, 32), path="p", bin=0, width=32)
    step = decode_bin(encode_bin(step, 64), path="p", bin=0, width=64)
    data, (descriptor,) = encode_delta_file([step], UUID(int=1))
    step = decode_delta(descriptor, data, "p")
    step = decode_delta(encode_delta_inline(step), b"", "p")
    step = decode_puffin(encode_puffin({"d": step})[0], "p")["d"]
    assert step == vector
    assert encode_deletion_vector(step, DeletionFileType.BITMAP) == lance


@given(NAMED, st.sampled_from([0, 50, 4000, 2**21]))
def test_files_of_many_vectors(named: dict[str, frozenset[int]], target: int) -> None:
    vectors = {name: RowSet.of(found) for name, found in named.items()}
    read, files = {}, encode_vector_files(vectors, target_size=target, width=64)
    for data, ranges in files:
        read |= decode_vectors(data, ranges, "p")
        walked = [place for place, _ in walk_vector_file(data, "p")]
        assert [place.of(named.data_file) for place, named in zip(walked, ranges, strict=True)] == list(ranges)
        assert len(ranges) == 1 or ranges[-1].offset <= target
    assert all(len(data) > target for data, _ in files[:-1])
    assert read == vectors
    data, descriptors = encode_delta_file(vectors.values(), "file:///v.bin")
    assert [decode_delta(descriptor, data, "p") for descriptor in descriptors] == list(vectors.values())
    for descriptor in descriptors:
        assert DeltaVector.from_json(json.loads(json.dumps(descriptor.to_json())), "p") == descriptor
    assert decode_puffin(encode_puffin(vectors)[0], "p") == vectors


@given(st.binary(max_size=60))
def test_z85(data: bytes) -> None:
    padded = data + bytes(-len(data) % 4)
    assert decode_z85(encode_z85(data)) == padded
    number = int.from_bytes(padded, "big")
    if len(padded) == 4:  # one group is one number to the base of 85
        alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
        assert sum(alphabet.index(c) * 85 ** (4 - at) for at, c in enumerate(encode_z85(data))) == number


# --------------------------------------------------------------------------------------------------------------- damage
@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes changed, cut out or put in."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(changed)))
        match draw(st.integers(0, 3)):
            case 0:
                changed[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case 1:
                changed[at : at + 2] = struct.pack("<H", draw(st.integers(0, 2**16 - 1)))
            case 2:
                del changed[at : at + draw(st.integers(1, 8))]
            case _:
                changed[at:at] = draw(st.binary(min_size=1, max_size=8))
    return bytes(changed)


def framed(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Damage that the checksum does not tell, so that the bitmap itself is all that is left to look at."""
    width: Width = draw(st.sampled_from([32, 64]))
    found = draw(NARROW if width == 32 else positions())
    return draw(damaged(encode_payload(RowSet.of(found), width)))


@settings(max_examples=200)
@given(st.one_of(payloads(), st.binary(max_size=60).map(lambda tail: bytes.fromhex("d1d33964") + tail)))
def test_damaged_bitmaps_are_a_value_or_corrupt(payload: bytes) -> None:
    try:
        vector = decode_bin(framed(payload), path="p", bin=0)
    except CorruptTable:
        return
    assert vector == canonical(vector)
    if vector.last is None or vector.last < 2**40:
        width: Width = 32 if payload[0] == 0x5E else 64
        assert decode_bin(encode_bin(vector, width), path="p", bin=0) == vector


@st.composite
def files(draw: st.DrawFn) -> bytes:
    vectors = {name: RowSet.of(found) for name, found in draw(NAMED).items()}
    match draw(st.integers(0, 3)):
        case 0:
            return draw(st.binary(max_size=80))
        case 1:
            return draw(damaged(encode_delta_file(vectors.values(), UUID(int=0))[0]))
        case 2:
            return draw(damaged(encode_puffin(vectors)[0]))
        case _:  # the footer alone, whose numbers are what is believed first
            data, footer = encode_puffin(vectors)
            end = sum(blob.length for blob in footer.blobs) + 8
            text = draw(damaged(data[end:-12]))
            return data[:end] + text + struct.pack("<iI", len(text), draw(st.sampled_from([0, 0, 1]))) + b"PFA1"


@settings(max_examples=150)
@given(files(), st.integers(-2, 200), st.integers(-2, 200))
def test_damaged_files_are_values_or_our_errors(data: bytes, offset: int, length: int) -> None:
    place, descriptor = VectorRange("d", offset, length), DeltaVector("u", "0" * 20, offset, length, 1)
    for read in (
        lambda: [vector for _, vector in walk_vector_file(data, "p")],
        lambda: decode_vectors(data, [place], "p").values(),
        lambda: [decode_delta(descriptor, data, "p")],
        lambda: decode_puffin(data, "p").values(),
    ):
        try:
            assert all(vector == canonical(vector) for vector in read())
        except (CorruptTable, UnsupportedFeature):
            continue


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"]


@given(st.fixed_dictionaries({}, optional={name: JUNK | st.sampled_from(["u", "i", 1, 40]) for name in NAMES}) | JUNK)
def test_any_descriptor(stored: object) -> None:
    with suppress(CorruptTable):
        descriptor = DeltaVector.from_json(stored, "log")
        assert DeltaVector.from_json(descriptor.to_json(), "log") == descriptor
        descriptor.file("log")
        decode_delta(descriptor, b"", "log")
