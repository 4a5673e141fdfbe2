"""Rewriting the documents of a full-text index, format 1 and 2.

Each partition has a file of documents (``part_N_docs.lance``): row k is document k, with the address of its row.
Postings name documents by these numbers, so no document can leave without rewriting every posting list. A document
whose row is gone gets an address in :data:`NO_FRAGMENT` instead, which no table has, and ``metadata.lance`` lists that
one among the fragments that searches leave out. (Dropping such rows after the search is not enough: they would take
places among the best k.) Scores stay what they were before the rewrite, when the row was deleted already and still
counted.

All other files stay as they are.

Tests: ``tests/unit/indices/foreign/test_remap.py``, ``tests/differential/indices/test_foreign.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tablewright.data.encoder import DataFileReader
from tablewright.errors import CorruptTable
from tablewright.format.index import IndexFile
from tablewright.format.roaring import decode_bitmap, encode_bitmap
from tablewright.indices.building import Translate
from tablewright.indices.foreign.files import batches_of, copy_file, json_text, rewrite_file
from tablewright.storage.base import Store

__all__ = ["NO_FRAGMENT", "remap_inverted"]

NO_FRAGMENT = 0xFFFF_FFFF
_METADATA, _ROW_ID, _LEFT_OUT = "metadata.lance", "_rowid", "deleted_fragments"


def remap_inverted(source: tuple[Store, str], translate: Translate, target: tuple[Store, str]) -> tuple[IndexFile, ...]:
    """Write the files of an index with the addresses that rows have now."""
    store, directory = source
    documents = _Documents(translate)
    written = []
    for number in _partitions(store, directory):
        path = f"{directory}/part_{number}_"
        written.append(documents.write(store, f"{path}docs.lance", target))
        written += [copy_file(store, f"{path}{kind}.lance", *target) for kind in ("tokens", "invert")]
    if documents.gone:
        return _without_fragment(store, f"{directory}/{_METADATA}", target), *written
    return copy_file(store, f"{directory}/{_METADATA}", *target), *written


def _partitions(store: Store, directory: str) -> list[int]:
    reader = DataFileReader(store, f"{directory}/{_METADATA}")
    try:
        found = json.loads(json_text(reader, "partitions"))
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(number, int) for number in found):
        raise CorruptTable(reader.where, ("its metadata does not list its partitions",))
    return found


@dataclass
class _Documents:
    """Rewrites the addresses of documents. ``gone`` counts those without a row, over all partitions."""

    translate: Translate
    gone: int = 0

    def write(self, store: Store, path: str, target: tuple[Store, str]) -> IndexFile:
        """Write the documents of a partition."""
        reader = DataFileReader(store, path)
        if _ROW_ID not in reader.schema.names or reader.schema.field(_ROW_ID).type != pa.uint64():
            raise CorruptTable(reader.where, (f"it has no column {_ROW_ID} of row addresses",))
        return rewrite_file(reader, *target, path.rsplit("/", 1)[-1], self._translated(reader))

    def _translated(self, reader: DataFileReader) -> Iterator[pa.RecordBatch]:
        for batch in batches_of(reader, 0, reader.num_rows):
            old = batch[_ROW_ID].to_numpy(zero_copy_only=False)
            new, kept = self.translate(old)
            kept = kept & (old >> np.uint64(32) != NO_FRAGMENT)  # those of an earlier rewrite are numbered again
            nowhere = np.uint64(NO_FRAGMENT << 32) | (self.gone + np.cumsum(~kept)).astype(np.uint64)
            ids = pa.array(np.where(kept, new, nowhere), pa.uint64())
            self.gone += int((~kept).sum())
            arrays = [ids if name == _ROW_ID else batch[name] for name in batch.schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _without_fragment(store: Store, path: str, target: tuple[Store, str]) -> IndexFile:
    """The metadata of an index whose searches leave :data:`NO_FRAGMENT` out."""
    reader = DataFileReader(store, path)
    if _LEFT_OUT not in reader.schema.names or reader.num_rows != 1:
        raise CorruptTable(reader.where, (f"it has no row with {_LEFT_OUT}",))
    (row,) = reader.read(0, 1, 1)
    try:
        fragments = BitMap(decode_bitmap(row[_LEFT_OUT][0].as_py() or b""))
    except ValueError as error:
        raise CorruptTable(reader.where, (str(error),)) from None
    fragments.add(NO_FRAGMENT)
    data = pa.array([encode_bitmap(fragments)], row[_LEFT_OUT].type)
    arrays = [data if name == _LEFT_OUT else row[name] for name in row.schema.names]
    changed = pa.RecordBatch.from_arrays(arrays, schema=row.schema)
    return rewrite_file(reader, *target, _METADATA, [changed])
