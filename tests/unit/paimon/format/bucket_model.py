"""Keys and buckets in plain Python, one by one (``docs/format/paimon.md``): what the fast code is compared with."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import mmh3
import pyarrow as pa
import pyarrow.types as at
from hypothesis import strategies as st

EPOCH = dt.datetime(1970, 1, 1)

# Everything that a key column can be, by the name of Paimon's type.
KINDS: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "DECIMAL(1, 0)": pa.decimal128(1, 0),
    "DECIMAL(18, 4)": pa.decimal128(18, 4),
    "DECIMAL(19, 2)": pa.decimal128(19, 2),
    "DECIMAL(38, 10)": pa.decimal128(38, 10),
    "TIMESTAMP(0)": pa.timestamp("s"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": pa.timestamp("ms", "UTC"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": pa.timestamp("us", "UTC"),
}


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, those at the edges included."""
    if at.is_boolean(kind):
        return st.booleans()
    if at.is_integer(kind):
        top = 2 ** (kind.bit_width - 1)
        return st.sampled_from([-top, -1, 0, 1, top - 1]) | st.integers(-top, top - 1)
    if at.is_floating(kind):
        return st.floats(allow_nan=False, width=kind.bit_width)
    if at.is_date(kind):
        return st.dates()
    if at.is_time(kind):
        return st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000))
    if at.is_timestamp(kind):
        step = {"s": 1_000_000, "ms": 1_000, "us": 1}[kind.unit]
        moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
        zone = dt.UTC if kind.tz else None
        return moments.map(lambda t: t.replace(microsecond=t.microsecond // step * step, tzinfo=zone))
    if at.is_decimal(kind):
        top = 10**kind.precision - 1
        edges = [0] + [edge for size in range(1, 17) for edge in _around(1 << (8 * size - 1)) if abs(edge) <= top]
        return (st.sampled_from(edges) | st.integers(-top, top)).map(lambda number: _decimal(number, kind.scale))
    sizes = st.sampled_from([0, 1, 6, 7, 8, 9, 15, 16, 17, 24, 40])
    return sizes.flatmap(lambda size: st.text(max_size=size) if at.is_string(kind) else st.binary(max_size=size))


def _around(number: int) -> tuple[int, ...]:
    return number - 1, number, -number, -number - 1, number + 1


def _decimal(unscaled: int, scale: int) -> Decimal:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, rest = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return Decimal(f"{'-' if unscaled < 0 else ''}{whole}.{rest}" if scale else f"{'-' if unscaled < 0 else ''}{whole}")


# ----------------------------------------------------------------------------------------------------------------- rows
def slow_row(values: Sequence[Any], kinds: Sequence[pa.DataType]) -> bytes:
    """The BinaryRow of some values."""
    count = len(kinds)
    head = bytearray(((count + 63 + 8) // 64) * 8)
    slots, tail = bytearray(8 * count), bytearray()
    for index, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        if value is None:
            head[(index + 8) // 8] |= 1 << (index + 8) % 8
        slots[8 * index : 8 * index + 8] = _slot(value, kind, len(head) + len(slots), tail)
    return bytes(head + slots + tail)


def _slot(value: Any, kind: pa.DataType, fixed: int, tail: bytearray) -> bytes:
    at_tail = fixed + len(tail)
    if at.is_decimal(kind) and kind.precision > 18:
        number = 0 if value is None else unscaled(value, kind.scale)
        data = number.to_bytes(((number if number >= 0 else ~number).bit_length()) // 8 + 1, "big", signed=True)
        tail += data.ljust(16, b"\0")
        return struct.pack("<II", 0 if value is None else len(data), at_tail)
    if at.is_timestamp(kind) and kind.unit in ("us", "ns"):
        millis, micros = (0, 0) if value is None else divmod(_micros(value), 1000)
        tail += struct.pack("<q", millis)
        return struct.pack("<II", micros * 1000, at_tail)
    if value is None:
        return bytes(8)
    if at.is_string(kind) or at.is_binary(kind):
        data = value.encode() if isinstance(value, str) else value
        if len(data) <= 7:
            return bytes(data.ljust(7, b"\0") + bytes([0x80 + len(data)]))
        tail += data.ljust(-(-len(data) // 8) * 8, b"\0")
        return struct.pack("<II", len(data), at_tail)
    return _small(value, kind).ljust(8, b"\0")


def _small(value: Any, kind: pa.DataType) -> bytes:
    if at.is_decimal(kind):
        return struct.pack("<q", unscaled(value, kind.scale))
    if at.is_timestamp(kind):
        return struct.pack("<q", _micros(value) // 1000)
    if at.is_date(kind):
        return struct.pack("<i", (value - EPOCH.date()).days)
    if at.is_time(kind):
        return struct.pack(
            "<i", ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
        )
    if at.is_floating(kind):
        return struct.pack("<f" if at.is_float32(kind) else "<d", value)
    return struct.pack({1: "<b", 8: "<b", 16: "<h", 32: "<i", 64: "<q"}[kind.bit_width], value)


def unscaled(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, Context(prec=60)))


def _micros(moment: dt.datetime) -> int:
    return (moment.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)


def slow_hash(row: bytes) -> int:
    return int(mmh3.hash(row, 42))


# -------------------------------------------------------------------------------------------------------------- buckets
def java_rest(value: int, divisor: int) -> int:
    return abs(value) % divisor


def slow_owner(partition_hash: int, key_hash: int, channels: int, assigners: int) -> int:
    return (java_rest(partition_hash, channels) + java_rest(key_hash, assigners)) % channels


class SlowAssigner:
    """Java's rule for one partition and one channel, hash by hash. ``pick(hash, own)`` is what Java does at random."""

    def __init__(
        self, existing: dict[int, list[int]], channel: int, channels: int, assigners: int, target: int, most: int,
        partition_hash: int, pick: Callable[[int, list[int]], int],
    ) -> None:  # fmt: skip
        self.channel, self.assigners, self.target, self.most, self.pick = channel, assigners, target, most, pick
        self.places: dict[int, int] = {}
        self.open: dict[int, int] = {}
        for bucket in existing:
            for hash in existing[bucket]:
                if slow_owner(partition_hash, hash, channels, assigners) == channel:
                    self.places[hash] = bucket
        for bucket in sorted(existing):
            if self.mine(bucket) and existing[bucket]:
                self.open[bucket] = len(existing[bucket])
        self.own = list(self.open)

    def mine(self, bucket: int) -> bool:
        return bucket % self.assigners == self.channel % self.assigners

    def assign(self, hash: int) -> int:
        if hash not in self.places:
            self.places[hash] = self.place(hash)
        return self.places[hash]

    def place(self, hash: int) -> int:
        for bucket in list(self.open):
            if self.open[bucket] < self.target:
                self.open[bucket] += 1
                return bucket
            del self.open[bucket]
        for bucket in range(32767 if self.most == -1 else self.most):
            if self.mine(bucket) and bucket not in self.own:
                self.open[bucket] = 1
                self.own.append(bucket)
                return bucket
        if self.most == -1 or not self.own:
            raise LookupError
        return self.pick(hash, self.own)
