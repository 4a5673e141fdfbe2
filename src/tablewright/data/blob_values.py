"""The values of a blob column: from the form that a data file gives to the form that is wanted.

A file gives bytes (v1), or descriptions: ``struct<position, size>`` (v1) or ``struct<kind, position, size, blob_id,
blob_uri>`` (v2). Wanted are descriptions, bytes, or rows to be written again (``format/blobs.py``).

Bytes of v2 are fetched per batch, by ranges:

1. The rows are grouped by the object that holds their bytes: the data file itself, an object beside it, an object of
   the table, or one elsewhere.
2. The ranges of an object are put in order, and those that are close to each other become one request.
3. Each row takes its part.

Files of version 2.0 describe a null as position 1, size 0, which no value has (an empty one is at 0).

Format: ``docs/format/blobs.md#blob-v2``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.data.context import ReadContext
from tablewright.errors import CorruptTable, InvalidRequest, StorageError, UnsupportedFeature
from tablewright.format.blobs import (
    DEDICATED,
    DESCRIPTION,
    EXTERNAL,
    INLINE,
    MANAGED,
    MANAGED_IN_BASE,
    PACKED_BLOB,
    PREPARED,
    sidecar_path,
)
from tablewright.format.logical_types import arrow_type_of
from tablewright.format.naming import DATA_DIR
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.subtree import related_store

__all__ = ["BlobValues"]

Bytes = bytes | memoryview
Numbers = npt.NDArray[np.int64]

_GAP_BYTES_MAX = 64 * 1024
_REQUEST_BYTES = 16 * 1024 * 1024
_OFFSET_MAX = 1 << 62
_NULL_POSITION = 1

_PREPARED_TYPE = pa.struct([pa.field(name, arrow_type_of(kind, name)) for name, kind in PREPARED])
_DESCRIPTION_NAMES = [name for name, _ in DESCRIPTION]


class BlobValues:
    """The blobs of one data file: ``path`` of ``store``, which messages call ``where``."""

    def __init__(self, context: ReadContext, store: Store, path: str, where: str) -> None:
        self._context, self._store, self._path, self._where = context, store, path, where

    def values(self, array: pa.Array, kind: pa.DataType) -> pa.Array:
        """The values as an array of the type ``kind``."""
        if not at.is_struct(array.type):
            return array if array.type == kind else _prepared_of_bytes(array)
        if not at.is_struct(kind):
            return _large_binary(self._bytes(array))
        if kind.num_fields == len(PREPARED):
            return self._prepared(array)
        return _described(array, kind)

    # ---------------------------------------------------------------------------------------------------- rows
    def _prepared(self, array: pa.Array) -> pa.Array:
        """Rows to be written again: external ones stay what they are, of all others the bytes are taken along."""
        external = pc.fill_null(pc.equal(pc.struct_field(array, "kind"), EXTERNAL), False)
        data = self._bytes(array, skip=external.to_numpy(zero_copy_only=False))
        inline = pa.array([value is not None for value in data])
        kinds = pc.if_else(inline, pa.scalar(INLINE, pa.uint8()), pc.struct_field(array, "kind"))

        def of_external(name: str) -> pa.Array:
            member = pc.struct_field(array, name)
            return pc.if_else(external, member, pa.scalar(None, member.type))

        members = {
            "kind": kinds,
            "data": _large_binary(data),
            "uri": of_external("blob_uri"),
            "blob_id": of_external("blob_id"),
            "blob_size": of_external("size"),
            "position": of_external("position"),
        }
        return _prepared_array(members, array.is_null())

    # --------------------------------------------------------------------------------------------------- bytes
    def _bytes(self, array: pa.Array, skip: npt.NDArray[np.bool_] | None = None) -> list[Bytes | None]:
        """The bytes of each row; ``None`` for null, and for rows to ``skip``."""
        found: list[Bytes | None] = [None] * len(array)
        wanted = array.is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(wanted if skip is None else wanted & ~skip)
        if not len(rows):
            return found
        for place in self._places(array.take(pa.array(rows)), rows):
            for row, data in self._fetched(place):
                found[row] = data
        return found

    def _places(self, array: pa.Array, rows: Numbers) -> Iterator[_Place]:
        """The objects that hold the bytes of some rows (``array`` has these only), each with its rows and ranges."""
        columns = {name: pc.struct_field(array, name) for name in _DESCRIPTION_NAMES}
        kinds = columns["kind"].to_numpy()
        starts, sizes = _whole(columns["position"], self._where), _whole(columns["size"], self._where)
        ids = columns["blob_id"].to_numpy()
        unknown = np.setdiff1d(kinds, np.arange(MANAGED_IN_BASE + 1))
        if len(unknown):
            raise UnsupportedFeature(
                f"Unknown blob kind {int(unknown[0])} in {self._where}. Upgrade Tablewright to read it."
            )
        uris = columns["blob_uri"].dictionary_encode()
        texts, codes = uris.dictionary.to_pylist(), uris.indices.to_numpy()
        whole_files = (kinds == EXTERNAL) & (sizes == 0)
        groups = np.stack([kinds.astype(np.int64), ids.astype(np.int64), codes.astype(np.int64)])
        keys, members = np.unique(groups, axis=1, return_inverse=True)
        members = members.reshape(-1)
        order = np.argsort(members, kind="stable")
        edges = np.searchsorted(members[order], np.arange(keys.shape[1] + 1))
        for group in range(keys.shape[1]):
            kind, blob_id, code = (int(number) for number in keys[:, group])
            here = order[edges[group] : edges[group + 1]]
            store, path = self._object(kind, blob_id, texts[code])
            for whole in (False, True):
                chosen = here[whole_files[here] == whole]
                if len(chosen):
                    yield _Place(store, path, kind, rows[chosen], starts[chosen], sizes[chosen], whole)

    def _object(self, kind: int, blob_id: int, uri: str) -> tuple[Store, str]:
        if kind == INLINE:
            return self._store, self._path
        if kind in (PACKED_BLOB, DEDICATED):
            return self._store, sidecar_path(self._path, blob_id)
        if kind == EXTERNAL and not blob_id:
            parent, _, name = uri.rpartition("/")
            try:
                return related_store(self._store, parent or "/"), name
            except InvalidRequest as error:
                raise UnsupportedFeature(f"The bytes of a blob in {self._where} are at {uri}: {error}") from error
        if any(part in ("", ".", "..") for part in uri.split("/")):
            raise CorruptTable(self._where, (f"the path of a blob leads elsewhere: {uri!r}",))
        if kind == MANAGED and self._path.startswith(f"{DATA_DIR}/"):
            return self._store, uri  # of a branch or clone the root is that of the table that the file belongs to
        return self._context.store_of(None if kind == MANAGED else blob_id), uri

    def _fetched(self, place: _Place) -> Iterator[tuple[int, Bytes]]:
        """The bytes of each row whose object this is."""
        try:
            if place.whole:
                data = place.store.get(place.path)
                yield from ((row, data) for row in place.rows.tolist())
                return
            for begin, end, rows, starts, ends in place.requests():
                data = place.store.get_range(place.path, begin, end) if end > begin else b""
                if len(data) != end - begin:
                    raise CorruptTable(place.where, (f"it ends before byte {end}, where a blob ends",))
                view = memoryview(data)
                yield from (
                    (row, view[start - begin : stop - begin])
                    for row, start, stop in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
                )
        except ObjectNotFound:
            if place.kind == EXTERNAL:
                raise StorageError(
                    f"Not found: {place.where}, which holds the bytes of a blob in {self._where}. It belongs to "
                    "another program: put it back, or leave the column out."
                ) from None
            raise CorruptTable(place.where, ("the object with the bytes of blobs is missing",)) from None


@dataclass(frozen=True, slots=True)
class _Place:
    """An object, and the ranges of it that some rows are. ``whole``: they are all of it."""

    store: Store
    path: str
    kind: int
    rows: Numbers
    starts: Numbers
    sizes: Numbers
    whole: bool

    @property
    def where(self) -> str:
        return f"{self.store.location.uri.rstrip('/')}/{self.path}"

    def requests(self) -> Iterator[tuple[int, int, Numbers, Numbers, Numbers]]:
        """Ranges to ask for: begin, end, and the rows in it with the begin and end of each. Empty rows ask nothing."""
        empty = self.sizes == 0
        if empty.any():
            none = np.zeros(int(empty.sum()), np.int64)
            yield 0, 0, self.rows[empty], none, none
        order = np.flatnonzero(~empty)
        order = order[np.argsort(self.starts[order], kind="stable")]
        starts, rows = self.starts[order], self.rows[order]
        ends = starts + self.sizes[order]
        begin = 0
        while begin < len(order):
            stop, reach = begin + 1, int(ends[begin])
            while (
                stop < len(order)
                and int(starts[stop]) <= reach + _GAP_BYTES_MAX
                and int(ends[stop]) - int(starts[begin]) <= _REQUEST_BYTES
            ):
                reach = max(reach, int(ends[stop]))
                stop += 1
            chosen = slice(begin, stop)
            yield int(starts[begin]), reach, rows[chosen], starts[chosen], ends[chosen]
            begin = stop


def _large_binary(values: list[Bytes | None]) -> pa.Array:
    """The values as an array, by one copy."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([0 if value is None else len(value) for value in values], out=offsets[1:])
    data = pa.py_buffer(b"".join([value for value in values if value is not None]))
    valid = pa.array([value is not None for value in values], pa.bool_())
    return pa.Array.from_buffers(pa.large_binary(), len(values), [valid.buffers()[1], pa.py_buffer(offsets), data])


def _whole(numbers: pa.Array, where: str) -> Numbers:
    values: npt.NDArray[np.uint64] = numbers.to_numpy()
    if len(values) and int(values.max()) > _OFFSET_MAX:
        raise CorruptTable(where, (f"a blob lies at byte {int(values.max())}",))
    return values.astype(np.int64)


# ----------------------------------------------------------------------------------------------------------- forms
def _described(array: pa.Array, kind: pa.StructType) -> pa.Array:
    """Descriptions in the wanted type: those of v1 become those of v2 where the table's column is one."""
    if array.type.num_fields == len(DESCRIPTION):
        return array if array.type == kind else _rebuilt(array, kind)
    position, size = pc.struct_field(array, "position"), pc.struct_field(array, "size")
    null = pc.and_(pc.equal(position, _NULL_POSITION), pc.equal(size, 0))
    mask = pc.or_(array.is_null(), pc.fill_null(null, True))
    members = {
        "kind": pa.repeat(pa.scalar(INLINE, pa.uint8()), len(array)),
        "position": pc.fill_null(position, 0),
        "size": pc.fill_null(size, 0),
        "blob_id": pa.repeat(pa.scalar(0, pa.uint32()), len(array)),
        "blob_uri": pa.repeat(pa.scalar(""), len(array)),
    }
    return pa.StructArray.from_arrays([members[field.name] for field in kind], fields=list(kind), mask=mask)


def _rebuilt(array: pa.Array, kind: pa.StructType) -> pa.Array:
    """A part of the members, or members that may be null: then a null kind is a null blob."""
    mask = pc.or_(array.is_null(), pc.struct_field(array, "kind").is_null())
    members = [
        pc.fill_null(pc.struct_field(array, field.name), "" if at.is_string(field.type) else 0) for field in kind
    ]
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)


def _prepared_of_bytes(array: pa.Array) -> pa.Array:
    members = {"kind": pa.repeat(pa.scalar(INLINE, pa.uint8()), len(array)), "data": array}
    return _prepared_array(members, array.is_null())


def _prepared_array(members: dict[str, pa.Array], mask: pa.Array) -> pa.Array:
    rows = len(mask)
    arrays = [
        members[field.name].cast(field.type) if field.name in members else pa.nulls(rows, field.type)
        for field in _PREPARED_TYPE
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(_PREPARED_TYPE), mask=mask)
