"""What fills a manifest file: bytes by part, of which every later commit writes most again.

Parts are counted by their serialised length; tags, length prefixes and the footer are in ``other``, so that the sum is
the size of the file. Fragments are scanned, not decoded.

Format: ``docs/format/table.md#manifest-fields``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from tablewright.format.envelope import ManifestFile
from tablewright.format.index import encode_index_section
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.schema import schema_to_proto
from tablewright.format.wire import as_buffer, encode_message, scan

__all__ = ["ManifestSizes", "sizes_of_manifest"]

_FILES, _DELETION, _ROW_IDS, _UPDATED, _CREATED = 2, 3, 5, 7, 9
_SPANS = (_FILES, _DELETION, _ROW_IDS, _UPDATED, _CREATED)
_BLOCK = 1 << 13


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSizes:
    """Bytes of a manifest file by part; their sum is its size."""

    data_files: int
    deletion_files: int
    row_ids: int
    version_sequences: int
    schema: int
    indices: int
    transaction: int
    other: int

    @property
    def total(self) -> int:
        """The size of the file."""
        return sum(self.to_dict().values())

    @property
    def fragments(self) -> int:
        """Bytes of the parts that grow with the number of fragments and with changes of their rows."""
        return self.data_files + self.deletion_files + self.row_ids + self.version_sequences

    def to_dict(self) -> dict[str, int]:
        """By name of the part."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def sizes_of_manifest(file: ManifestFile, size: int) -> ManifestSizes:
    """The parts of a manifest whose file has ``size`` bytes."""
    manifest = file.manifest
    spans = dict.fromkeys(_SPANS, 0)
    for start in range(0, len(manifest.fragments), _BLOCK):
        _add_spans(spans, manifest.fragments.raw[start : start + _BLOCK])
    schema = encode_message("The schema", lambda: pb.ManifestShell(fields=schema_to_proto(manifest.schema)))
    metadata = sum(len(key.encode()) + len(value) for key, value in manifest.schema.metadata.items())
    indices = len(encode_index_section(manifest.indices, manifest.index_unknown)) if manifest.indices else 0
    known = {
        "data_files": spans[_FILES],
        "deletion_files": spans[_DELETION],
        "row_ids": spans[_ROW_IDS],
        "version_sequences": spans[_UPDATED] + spans[_CREATED],
        "schema": len(schema) + metadata,
        "indices": indices,
        "transaction": len(file.transaction_bytes or b""),
    }
    return ManifestSizes(**known, other=max(0, size - sum(known.values())))


def _add_spans(total: dict[int, int], raw: Sequence[bytes]) -> None:
    buffer, starts, ends = as_buffer(raw)
    found = scan(buffer, starts, ends, spans=_SPANS).spans
    for number in _SPANS:
        total[number] += int(np.sum(found[number].ends - found[number].starts))
