"""Blobs of rows that are written again: which bytes stay in the data file, and which go to objects beside it.

Rows come in the form for rows (``format/blobs.py``). By the thresholds of their column, values that are larger than
``dedicated`` get an object of their own, values up to ``inline`` stay in the data file, where the codec puts them, and
the others are packed into objects. External blobs stay what they are. Objects are numbered from 1 on, over all blob
columns of a file. An open pack is written when the next value does not fit, and before the data file is closed.

Format: ``docs/format/blobs.md#thresholds``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.format.blobs import DEDICATED, PACKED_BLOB, Thresholds, prepared_blobs, sidecar_path, thresholds_of
from tablewright.format.field import BLOB_V2, EXTENSION_NAME
from tablewright.format.schema import Schema
from tablewright.storage.base import Store
from tablewright.storage.uncommitted import discard_files

__all__ = ["BlobWriter"]

_PACK_BYTES_MAX = 64 * 1024 * 1024  # what is kept in memory of a pack, whatever its threshold


class BlobWriter:
    """The blobs of one data file at ``path`` that holds ``schema``, of the form for rows."""

    def __init__(self, store: Store, path: str, schema: Schema) -> None:
        self._store, self._path, self._schema = store, path, schema
        self._blobs = {blob.id: thresholds_of(blob) for blob in prepared_blobs(schema)}
        self._above = {above for blob in self._blobs for above in schema.ancestors(blob)}
        self._pack: list[bytes] = []
        self._pack_bytes = self._pack_number = self._number = 0
        self.paths: list[str] = []

    def codec_schema(self, arrow: pa.Schema) -> pa.Schema:
        """The Arrow schema of the file as the codec wants it."""
        nodes = zip(self._schema.top_level, arrow, strict=True)
        return pa.schema([self._codec_field(node.id, field) for node, field in nodes])

    def placed(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """The rows with large values replaced by where they are now; ``schema`` is that for the codec."""
        nodes = zip(self._schema.top_level, batch.columns, strict=True)
        arrays = [self._rebuilt(node.id, array) for node, array in nodes]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def close(self) -> None:
        """Write what is left."""
        if self._pack:
            self._put(self._pack_number, b"".join(self._pack))
            self._pack, self._pack_bytes = [], 0

    def abort(self) -> None:
        """Remove all objects. What can't be removed is left to cleanup."""
        discard_files(self._store, self.paths)

    # --------------------------------------------------------------------------------------------------- schema
    def _codec_field(self, node: int, field: pa.Field) -> pa.Field:
        if node in self._blobs:
            return field.with_metadata({EXTENSION_NAME: BLOB_V2})
        if node not in self._above:
            return field
        below = [child.id for child in self._schema.children(node)]
        kind = field.type
        if at.is_struct(kind):
            return field.with_type(
                pa.struct([self._codec_field(id, each) for id, each in zip(below, kind, strict=True)])
            )
        assert at.is_list(kind) or at.is_large_list(kind), "blobs lie in structs and lists"
        item = self._codec_field(below[0], kind.value_field)
        return field.with_type(pa.large_list(item) if at.is_large_list(kind) else pa.list_(item))

    # --------------------------------------------------------------------------------------------------- values
    def _rebuilt(self, node: int, array: pa.Array) -> pa.Array:
        if node in self._blobs:
            return self._stored(array, self._blobs[node])
        if node not in self._above:
            return array
        below = [child.id for child in self._schema.children(node)]
        mask = array.is_null() if array.null_count else None
        if isinstance(array, pa.StructArray):
            members = [self._rebuilt(id, array.field(index)) for index, id in enumerate(below)]
            return pa.StructArray.from_arrays(members, fields=list(array.type), mask=mask)
        assert isinstance(array, pa.ListArray | pa.LargeListArray), "blobs lie in structs and lists"
        offsets = array.offsets
        values = array.values.slice(offsets[0].as_py(), offsets[-1].as_py() - offsets[0].as_py())
        build = pa.LargeListArray if at.is_large_list(array.type) else pa.ListArray
        items = self._rebuilt(below[0], values)
        return build.from_arrays(pc.subtract(offsets, offsets[0]), items, type=array.type, mask=mask)

    def _stored(self, array: pa.Array, thresholds: Thresholds) -> pa.Array:
        """Blobs of one column, in the form that the codec takes."""
        assert isinstance(array, pa.StructArray), "a blob is a struct of its bytes or of where they lie"
        columns = {field.name: pc.struct_field(array, field.name) for field in array.type}
        sizes = pc.fill_null(pc.binary_length(columns["data"]), 0).to_numpy().astype(np.int64)
        alone = sizes > thresholds.dedicated
        outside = np.flatnonzero(alone | (sizes > thresholds.inline))
        if not len(outside):
            return array
        numbers, positions = np.zeros(len(outside), np.int64), np.zeros(len(outside), np.int64)
        values = columns["data"].take(pa.array(outside))
        for index, (row, value) in enumerate(zip(outside.tolist(), values, strict=True)):
            assert isinstance(value, pa.BinaryScalar), "blobs are binary values"
            data = value.as_buffer()
            assert data is not None, "a null is not longer than a threshold"
            if alone[row]:
                numbers[index] = self._next()
                self._put(int(numbers[index]), data.to_pybytes())
            else:
                numbers[index], positions[index] = self._packed(data.to_pybytes(), thresholds.pack)
        kinds = np.where(alone[outside], DEDICATED, PACKED_BLOB)
        moved = np.zeros(len(array), np.bool_)
        moved[outside] = True
        put = _putter(moved)
        columns["kind"] = put(columns["kind"], kinds)
        columns["data"] = pc.if_else(pa.array(~moved), columns["data"], pa.scalar(None, columns["data"].type))
        columns["blob_id"] = put(columns["blob_id"], numbers)
        columns["blob_size"] = put(columns["blob_size"], sizes[outside])
        columns["position"] = put(columns["position"], positions)
        return pa.StructArray.from_arrays(
            [columns[field.name] for field in array.type], fields=list(array.type), mask=array.is_null()
        )

    def _packed(self, data: bytes, threshold: int) -> tuple[int, int]:
        if self._pack and self._pack_bytes + len(data) > min(threshold, _PACK_BYTES_MAX):
            self.close()
        if not self._pack:
            self._pack_number = self._next()
        position = self._pack_bytes
        self._pack.append(data)
        self._pack_bytes += len(data)
        return self._pack_number, position

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _put(self, number: int, data: bytes) -> None:
        path = sidecar_path(self._path, number)
        self.paths.append(path)
        self._store.put(path, data)


def _putter(rows: np.ndarray) -> Callable[[pa.Array, np.ndarray], pa.Array]:
    """Puts numbers into some rows of an array."""
    mask = pa.array(rows)
    return lambda array, values: pc.replace_with_mask(array, mask, pa.array(values, array.type))
