"""Delta Lake's deletion vectors: files of 64-bit bins, vectors inline in the log, and what points at them.

=============  ==========================================  ===================================================
storage type   ``pathOrInlineDv``                          where the vector is
=============  ==========================================  ===================================================
``u``          optional directory, z85 text of a uuid      ``[directory/]deletion_vector_<uuid>.bin`` in the table
``p``          an absolute path                            that file
``i``          z85 text of the payload, zeros at its end   in the log itself, without size and checksum
=============  ==========================================  ===================================================

The file is laid out like Paimon's: a version byte, then bins; ``offset`` is that of a size field (1 where it is left
out), and ``sizeInBytes`` is the payload alone, where Paimon and Iceberg count the whole bin. Only 64-bit bitmaps exist.

Format: ``docs/format/deletion-vectors.md#the-wrappings``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn
from uuid import UUID

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.deletion_vectors.bins import (
    FRAME_BYTES,
    decode_bin_at,
    decode_payload,
    encode_bin,
    encode_payload,
)
from tablewright.format.deletion_vectors.z85 import decode_z85, encode_z85
from tablewright.format.row_set import RowSet

__all__ = ["DeltaVector", "decode_delta", "encode_delta_file", "encode_delta_inline"]

_VERSION = b"\x01"
_UUID_CHARACTERS = 20
_INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeltaVector:
    """The descriptor of a vector, ``deletionVector`` of an ``add`` or ``remove`` action."""

    storage_type: Literal["u", "p", "i"]
    path_or_inline_dv: str
    offset: int | None
    size_in_bytes: int
    cardinality: int

    @classmethod
    def from_json(cls, stored: Any, path: str) -> DeltaVector:
        """The descriptor as the log at ``path`` holds it; :class:`CorruptTable` with every problem for anything else.

        >>> stored = {"storageType": "p", "pathOrInlineDv": "s3://b/t/v.bin", "sizeInBytes": 40, "cardinality": 4}
        >>> DeltaVector.from_json(stored, "_delta_log/1.json").offset is None
        True
        """
        if not isinstance(stored, Mapping):
            _corrupt(path, f"a descriptor was expected, not {stored!r}")
        kind, text, offset = stored.get("storageType"), stored.get("pathOrInlineDv"), stored.get("offset")
        problems = []
        if kind not in ("u", "p", "i"):
            problems.append(f"storageType is {kind!r}, not one of 'u', 'p' and 'i'")
        if not isinstance(text, str):
            problems.append(f"pathOrInlineDv is no text but {text!r}")
        if offset is not None and (kind == "i" or not _is_count(offset) or offset < len(_VERSION)):
            problems.append(f"offset is {offset!r}: a position after the first byte of a file, and absent for 'i'")
        problems += [
            f"{name} is {stored.get(name)!r}, not a count"
            for name in ("sizeInBytes", "cardinality")
            if not _is_count(stored.get(name))
        ]
        if problems:
            raise CorruptTable(path, tuple(f"deletionVector: {problem}" for problem in problems))
        return cls(
            stored["storageType"], stored["pathOrInlineDv"], offset, stored["sizeInBytes"], stored["cardinality"]
        )

    def to_json(self) -> dict[str, str | int]:
        """The descriptor as the log holds it.

        >>> DeltaVector("p", "s3://b/t/v.bin", 1, 40, 4).to_json()["sizeInBytes"]
        40
        """
        offset = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline_dv,
            **offset,
            "sizeInBytes": self.size_in_bytes,
            "cardinality": self.cardinality,
        }

    def file(self, path: str) -> str | None:
        """The file of the vector: relative to the table for ``u``, absolute for ``p``, ``None`` for ``i``.

        ``path`` is the log that an error names.

        >>> DeltaVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6).file("_delta_log/1.json")
        'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
        """
        if self.storage_type != "u":
            return self.path_or_inline_dv if self.storage_type == "p" else None
        directory, text = self.path_or_inline_dv[:-_UUID_CHARACTERS], self.path_or_inline_dv[-_UUID_CHARACTERS:]
        try:
            name = f"deletion_vector_{UUID(bytes=decode_z85(text))}.bin"
        except ValueError as error:
            _corrupt(path, f"{text!r} is not the z85 text of a uuid: {error}")
        return f"{directory}/{name}" if directory else name


# ------------------------------------------------------------------------------------------------------------- encoding
def encode_delta_file(
    vectors: Iterable[RowSet], place: UUID | str, directory: str = ""
) -> tuple[bytes, tuple[DeltaVector, ...]]:
    """A file of vectors and a descriptor for each, in their order.

    ``place`` is a uuid, for a file that lies in the table (in ``directory``, if given), or else its absolute path.

    >>> data, (vector,) = encode_delta_file([RowSet.of([0, 2, 5, 9])], UUID(int=0))
    >>> len(data), vector.path_or_inline_dv, vector.offset, vector.size_in_bytes
    (49, '00000000000000000000', 1, 40)
    """
    if directory and not isinstance(place, UUID):
        raise InvalidRequest("A directory goes with a uuid; an absolute path has its own.")
    text = directory + encode_z85(place.bytes) if isinstance(place, UUID) else place
    parts, descriptors, size = [_VERSION], [], len(_VERSION)
    for vector in vectors:
        stored = encode_bin(vector, 64)
        if size + len(stored) > _INT_MAX:
            raise InvalidRequest("A file of deletion vectors takes at most 2 GiB.")
        kind: Literal["u", "p"] = "u" if isinstance(place, UUID) else "p"
        descriptors.append(DeltaVector(kind, text, size, len(stored) - FRAME_BYTES, len(vector)))
        parts.append(stored)
        size += len(stored)
    return b"".join(parts), tuple(descriptors)


def encode_delta_inline(vector: RowSet) -> DeltaVector:
    """A descriptor that holds the vector itself: for small ones, since every reader of the log reads it.

    >>> encode_delta_inline(RowSet.of(range(1, 9))).path_or_inline_dv
    '^Bg9^0rr910000000000j1{Tm0rr980096200-G7'
    """
    payload = encode_payload(vector, 64)
    return DeltaVector("i", encode_z85(payload), None, len(payload), len(vector))


# ------------------------------------------------------------------------------------------------------------- decoding
def decode_delta(descriptor: DeltaVector, data: bytes, path: str) -> RowSet:
    """The vector of a descriptor. ``data`` is its whole file, and nothing for an inline one; ``path`` is for errors.

    >>> decode_delta(encode_delta_inline(RowSet.of([4])), b"", "_delta_log/1.json").to_numpy().tolist()
    [4]
    """
    if descriptor.storage_type == "i":
        vector = _decode_inline(descriptor, path)
    else:
        if data[:1] != _VERSION:
            _corrupt(path, f"the file begins with {data[:1].hex() or 'nothing'}; version 01 is the one that is known")
        offset = len(_VERSION) if descriptor.offset is None else descriptor.offset
        found = decode_bin_at(data, offset, path=path, bin=f"at byte {offset}", width=64)
        if found.payload_size != descriptor.size_in_bytes:
            _corrupt(path, f"the log gives {descriptor.size_in_bytes} bytes, the file {found.payload_size}")
        vector = found.vector
    if len(vector) != descriptor.cardinality:
        _corrupt(path, f"the log counts {descriptor.cardinality} positions, the vector holds {len(vector)}")
    return vector


def _decode_inline(descriptor: DeltaVector, path: str) -> RowSet:
    try:
        padded = decode_z85(descriptor.path_or_inline_dv)
    except ValueError as error:
        _corrupt(path, f"the inline vector can't be decoded: {error}")
    size = descriptor.size_in_bytes
    if size + -size % 4 != len(padded) or any(padded[size:]):
        _corrupt(path, f"{size} bytes were promised inline; there are {len(padded)}, zeros at the end included")
    return decode_payload(padded[:size], path=path, bin="inline", width=64)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _corrupt(path: str, problem: str) -> NoReturn:
    raise CorruptTable(path, (f"deletionVector: {problem}",))
