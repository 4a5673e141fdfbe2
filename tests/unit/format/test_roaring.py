from __future__ import annotations

import random

import pytest
from pyroaring import BitMap

from tablewright.format.roaring import decode_bitmap, encode_bitmap

SETS = {
    "empty": BitMap(),
    "array": BitMap([1, 2, 70_000]),
    "bits": BitMap(range(0, 200_000, 3)),
    "runs": BitMap(range(100, 300_000)),
    "mixed": BitMap(range(100_000)) | BitMap(range(200_000, 900_000, 7)) | BitMap([(1 << 32) - 1]),
    "full container": BitMap(range(1 << 16)),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("optimized", [False, True])
def test_every_kind_of_container(name: str, optimized: bool) -> None:
    bitmap = SETS[name].copy()
    if optimized:
        bitmap.run_optimize()
    data = encode_bitmap(bitmap)
    assert decode_bitmap(data) == bitmap
    assert encode_bitmap(decode_bitmap(data)) == data


@pytest.mark.parametrize("name", SETS)
def test_truncated_or_longer_bytes_are_refused(name: str) -> None:
    bitmap = SETS[name].copy()
    bitmap.run_optimize()
    for data in (encode_bitmap(SETS[name]), encode_bitmap(bitmap)):
        for length in {0, 1, 3, 5, 7, len(data) // 2, len(data) - 1}:
            if length < len(data):
                with pytest.raises(ValueError, match="roaring"):
                    decode_bitmap(data[:length])
        with pytest.raises(ValueError, match="expected"):
            decode_bitmap(data + b"x")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("00000000", "no roaring bitmap begins with"),
        ("3a300000ffffffff", "claims"),
        ("3a30000001000000000001001000000002000100", "not in order"),  # values
        ("3a3000000200000001000000000000001800000019000000" + "0000" + "0000", "containers"),  # keys
        ("3a30000001000000000001001100000001000200", "offsets"),
        ("3b3000000100000500010000000400", "cardinality"),
        ("3b3000000100000400020000000100010002", "too early"),
        ("3b3000000100000400020000000100010002" + "00", "overlap"),
    ],
)
def test_what_would_break_the_library_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_bitmap(bytes.fromhex(text))


def test_bits_must_add_up() -> None:
    data = bytearray(encode_bitmap(BitMap(range(0, 1 << 16, 3))))
    data[-1] ^= 0xFF
    with pytest.raises(ValueError, match="cardinality"):
        decode_bitmap(bytes(data))


def test_random_damage_never_gets_through_as_nonsense() -> None:
    rng = random.Random(7)
    sound = [encode_bitmap(bitmap) for bitmap in SETS.values()]
    for _ in range(2_000):
        data = bytearray(rng.choice(sound)[: rng.choice([40, 10_000, 1 << 30])])
        for _ in range(rng.randrange(3)):
            if data:
                data[rng.randrange(min(len(data), 64))] = rng.randrange(256)
        try:
            bitmap = decode_bitmap(bytes(data))
        except ValueError:
            continue
        assert len(bitmap.to_array()) == len(bitmap)
