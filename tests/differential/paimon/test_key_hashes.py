"""Binary rows and key hashes of every type equal pypaimon's, alone and together; where they differ, as documented."""

from __future__ import annotations

import datetime as dt
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at
from tests.differential.paimon.keys import ask_pypaimon
from tests.unit.paimon.format.bucket_model import KINDS

from tablewright.paimon.format.binary_row import encode_rows
from tablewright.paimon.format.key_hash import fixed_buckets, hash_keys

COUNT = 400
# What Java writes for a null of these types, and we: pypaimon leaves the tail out. Such a null is in no primary key.
WITH_TAIL = ("DECIMAL(19, 2)", "DECIMAL(38, 10)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE")


def sample(kind: pa.DataType, chance: random.Random) -> Any:
    if at.is_boolean(kind):
        return chance.random() < 0.5
    if at.is_integer(kind):
        top = 2 ** (kind.bit_width - 1)
        return chance.choice([-top, -1, 0, 1, top - 1, chance.randrange(-top, top)])
    if at.is_floating(kind):
        number = chance.choice([0.0, -0.0, 1.5, float("inf"), chance.uniform(-1e30, 1e30)])
        return struct.unpack("<f", struct.pack("<f", number))[0] if at.is_float32(kind) else number
    if at.is_date(kind):
        return dt.date.fromordinal(chance.randrange(1, dt.date.max.toordinal()))
    if at.is_time(kind):
        return (dt.datetime.min + dt.timedelta(milliseconds=chance.randrange(86_400_000))).time()
    if at.is_timestamp(kind):
        step = {"s": 10**6, "ms": 10**3, "us": 1}[kind.unit]
        micros = chance.choice([0, -1, 1, chance.randrange(-6 * 10**16, 2 * 10**17)]) // step * step
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
        return moment.replace(tzinfo=dt.UTC) if kind.tz else moment
    if at.is_decimal(kind):
        bits = chance.randrange(0, 127)
        number = chance.choice([1 << bits, (1 << bits) - 1, chance.getrandbits(bits + 1)]) % 10**kind.precision
        sign = "+" if number.bit_count() == 1 and number.bit_length() % 8 == 0 else chance.choice("+-")
        return Decimal(f"{sign}{number}E-{kind.scale}")
    size = chance.choice([0, 1, 6, 7, 8, 9, 15, 16, 17, 30])
    return "".join(chance.choices("abcé€😀", k=size)) if at.is_string(kind) else chance.randbytes(size)


def tables() -> dict[tuple[str, ...], pa.Table]:
    """By the types of their columns: each type alone, without nulls and with, and ten rows of types."""
    chance = random.Random(6)
    names = list(KINDS)
    keys: list[tuple[str, ...]] = [(name,) for name in names]
    nullable = [name for name in names if name not in WITH_TAIL]
    keys += [tuple(chance.choices(nullable, k=chance.randrange(2, 5))) for _ in range(5)]
    keys += [tuple(chance.choices(names, k=chance.randrange(2, 6))) for _ in range(5)] + [tuple(names * 3)]
    found = {}
    for types in keys:
        nulls = 0.0 if set(types) & set(WITH_TAIL) else 0.2
        columns = []
        for name in types:
            kind = KINDS[name]
            values = [None if chance.random() < nulls else sample(kind, chance) for _ in range(COUNT // len(types))]
            columns.append(pa.array(values, kind))
        found[types] = pa.Table.from_arrays(columns, [f"f{number}" for number in range(len(types))])
    return found


def posted(table: pa.Table, path: Path) -> str:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return str(path)


def test_rows_hashes_and_fixed_buckets(tmp_path: Path) -> None:
    all_tables = tables()
    nulls = pa.Table.from_arrays([pa.nulls(1, KINDS[name]) for name in WITH_TAIL], list(WITH_TAIL))
    power = pa.table({"d": pa.array([Decimal(-(2**39)).scaleb(-2)], pa.decimal128(19, 2))})
    differing = [(WITH_TAIL, nulls), (("DECIMAL(19, 2)",), power)]
    requests = [
        {"data": posted(table, tmp_path / f"{number}.arrow"), "types": list(types)}
        for number, (types, table) in enumerate([*all_tables.items(), *differing])
    ]
    *answers, theirs_of_nulls, theirs_of_power = ask_pypaimon("many", requests=requests)
    for (types, table), theirs in zip(all_tables.items(), answers, strict=True):
        assert [row.hex() for row in encoded(table)] == [row for row, _, _ in theirs], types
        hashes = hash_keys(table)
        assert hashes.view(np.uint32).tolist() == [hash for _, hash, _ in theirs], types
        assert fixed_buckets(hashes, 7).tolist() == [bucket for _, _, bucket in theirs], types
    check_nulls_with_a_tail(nulls, bytes.fromhex(theirs_of_nulls[0][0]))
    check_negative_powers(power, bytes.fromhex(theirs_of_power[0][0]))


def encoded(table: pa.Table) -> list[bytes]:
    [batch] = table.combine_chunks().to_batches()
    return encode_rows(batch).to_arrow().to_pylist()


def check_nulls_with_a_tail(table: pa.Table, theirs: bytes) -> None:
    """They differ as documented: pypaimon's slots are zero, and nothing follows them."""
    fixed = 8 * (1 + len(WITH_TAIL))
    assert theirs == bytes([0, 15]) + bytes(fixed - 2)
    offsets = [struct.pack("<II", 0, fixed + before) for before in (0, 16, 32, 40)]
    assert encoded(table) == [bytes([0, 15, *[0] * 6]) + b"".join(offsets) + bytes(48)]


def check_negative_powers(table: pa.Table, theirs: bytes) -> None:
    """They differ as documented: where the sign fits into the first byte, pypaimon takes one more; Java does not."""
    assert encoded(table) == [bytes(8) + struct.pack("<II", 5, 16) + b"\x80".ljust(16, b"\0")]
    assert theirs == bytes(8) + struct.pack("<II", 6, 16) + b"\xff\x80".ljust(16, b"\0")
