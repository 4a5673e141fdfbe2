"""Protobuf at the level of its bytes, to build tables from the future: fields that nobody knows yet, unknown flags.

Written for the tests alone and from the wire format alone, so that no code under test helps to judge itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ManifestBytes", "find", "future", "latest_manifest", "patch", "put", "varint"]

Fields = list[tuple[int, int, bytes]]
"""Number, wire type, payload: the varint's bytes, the fixed bytes, or the content without its length."""


def varint(value: int) -> bytes:
    """Seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def parse(data: bytes) -> Fields:
    """The fields of a message, in order."""
    fields, at = [], 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, kind, start = key >> 3, key & 7, at
        if kind == 0:
            _, at = _read_varint(data, at)
        elif kind == 2:
            length, start = _read_varint(data, at)
            at = start + length
        else:
            at = start + {1: 8, 5: 4}[kind]
        fields.append((number, kind, data[start:at]))
    return fields


def build(fields: Fields) -> bytes:
    """The bytes of a message."""
    return b"".join(
        varint(number << 3 | kind) + (varint(len(payload)) if kind == 2 else b"") + payload
        for number, kind, payload in fields
    )


def find(data: bytes, *path: int) -> list[bytes]:
    """The payloads at a path of field numbers, through every repeated message on the way."""
    payloads = [data]
    for number in path:
        payloads = [payload for message in payloads for found, _, payload in parse(message) if found == number]
    return payloads


def patch(data: bytes, path: tuple[int, ...], change: Callable[[bytes], bytes]) -> bytes:
    """`change` every message at a path of field numbers."""
    if not path:
        return change(data)
    return build(
        [(n, kind, patch(payload, path[1:], change) if n == path[0] else payload) for n, kind, payload in parse(data)]
    )


def put(data: bytes, number: int, value: int) -> bytes:
    """Set a varint field; 0 removes it."""
    kept = [field for field in parse(data) if field[0] != number]
    return build([*kept, (number, 0, varint(value))] if value else kept)


def future(mark: str) -> bytes:
    """Fields that no release knows, of three wire types; `mark` says which message they were put in."""
    return build([(1997, 0, varint(77)), (1998, 2, mark.encode()), (1999, 5, b"abcd"), (2000, 1, b"12345678")])


@dataclass
class ManifestBytes:
    """A manifest file taken apart: index section (if any), inline transaction, manifest message, footer's version."""

    index: bytes | None
    transaction: bytes
    manifest: bytes
    footer: bytes

    @classmethod
    def read(cls, path: Path) -> ManifestBytes:
        data = path.read_bytes()
        (position,) = struct.unpack("<q", data[-16:-8])

        def section(at: int) -> bytes:
            (length,) = struct.unpack("<I", data[at : at + 4])
            return data[at + 4 : at + 4 + length]

        def position_of(number: int) -> int | None:
            found = find(manifest, number)
            return _read_varint(found[-1], 0)[0] if found else None

        manifest = section(position)
        index, transaction = position_of(6), position_of(23)
        assert transaction is not None
        return cls(None if index is None else section(index), section(transaction), manifest, data[-8:])

    def write(self, path: Path) -> None:
        out = b""
        manifest = self.manifest
        if self.index is not None:
            manifest = build([field for field in parse(manifest) if field[0] != 6])
            manifest += build([(6, 0, varint(len(out)))])
            out += struct.pack("<I", len(self.index)) + self.index
        manifest = build([field for field in parse(manifest) if field[0] != 23]) + build([(23, 0, varint(len(out)))])
        out += struct.pack("<I", len(self.transaction)) + self.transaction
        position = len(out)
        out += struct.pack("<I", len(manifest)) + manifest
        path.write_bytes(out + struct.pack("<q", position) + self.footer)


def latest_manifest(uri: str | Path) -> Path:
    """The newest manifest of a table with V2 names: the first by name."""
    return min((Path(uri) / "_versions").glob("*.manifest"))
