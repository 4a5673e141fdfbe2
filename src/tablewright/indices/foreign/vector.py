"""Rewriting the rows of an inverted-file vector index: IVF_FLAT, IVF_PQ and IVF_SQ.

``auxiliary.idx`` holds the rows of all partitions one after the other, and in a buffer where each begins and how long
it is. Partition by partition:

1. its row addresses are read and translated;
2. if all are kept, only they change; else rows that are gone leave, and the partition gets shorter;
3. codes of a product quantizer may be *transposed*: the bytes of a partition are all first codes of its rows, then all
   second codes, and so on. Then the whole partition's codes are put in order, filtered and transposed again.

``index.idx`` holds the centroids and stays as it is.

Tests: ``tests/unit/indices/foreign/test_remap.py``, ``tests/differential/indices/test_foreign.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.encoder import DataFileReader
from tablewright.errors import CorruptTable
from tablewright.format.index import IndexFile
from tablewright.format.proto import index_details_pb2 as pb
from tablewright.format.wire import decode_message
from tablewright.indices.building import Translate
from tablewright.indices.foreign.files import batches_of, copy_file, json_text, rewrite_file
from tablewright.storage.base import Store

__all__ = ["REMAPPABLE_TYPES", "index_type", "remap_vector"]

REMAPPABLE_TYPES = ("IVF_FLAT", "IVF_PQ", "IVF_SQ")
_INDEX, _ROWS = "index.idx", "auxiliary.idx"
_ROW_ID, _CODES = "_rowid", "__pq_code"
_DIGITS_MAX = 9


def index_type(store: Store, directory: str) -> str:
    """What an index says it is, like ``IVF_PQ``."""
    reader = DataFileReader(store, f"{directory}/{_INDEX}")
    try:
        return str(json.loads(json_text(reader, "lance:index"))["type"])
    except (ValueError, KeyError, TypeError):
        raise CorruptTable(reader.where, ("its metadata does not say its type",)) from None


def remap_vector(source: tuple[Store, str], translate: Translate, target: tuple[Store, str]) -> tuple[IndexFile, ...]:
    """Write the files of an index with the rows that ``translate`` keeps, under their new addresses."""
    store, directory = source
    reader = DataFileReader(store, f"{directory}/{_ROWS}")
    rows = _Rows.of(reader, DataFileReader(store, f"{directory}/{_ROWS}", [_ROW_ID]))
    written = rewrite_file(reader, *target, _ROWS, rows.translated(translate), rows.changed_buffers)
    return written, copy_file(store, f"{directory}/{_INDEX}", *target)


@dataclass
class _Rows:
    """The partitions of ``auxiliary.idx``. ``lengths`` are those of the partitions written so far."""

    reader: DataFileReader
    ids: DataFileReader
    buffer: int
    partitions: pb.Partitions
    transposed: bool
    lengths: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, reader: DataFileReader, ids: DataFileReader) -> _Rows:
        number = json_text(reader, "lance:ivf")
        if not number.isdecimal() or len(number) > _DIGITS_MAX:
            raise CorruptTable(reader.where, (f"its partitions are in buffer {number!r}, which is no number",))
        partitions = decode_message(pb.Partitions, reader.buffer(int(number)), reader.where, "the partitions")
        offsets, lengths = list(partitions.offsets), list(partitions.lengths)
        ends = np.cumsum([0, *lengths]).tolist()
        moved = any(length and offset != end for offset, length, end in zip(offsets, lengths, ends, strict=False))
        if len(offsets) != len(lengths) or moved or ends[-1] != reader.num_rows:
            raise CorruptTable(reader.where, ("its partitions are not its rows, one after the other",))
        return cls(reader, ids, int(number), partitions, _is_transposed(reader))

    def translated(self, translate: Translate) -> Iterator[pa.RecordBatch]:
        """The rows of all partitions under their new addresses."""
        for start, count in zip(self.partitions.offsets, self.partitions.lengths, strict=True):
            found = [batch.column(0).to_numpy(zero_copy_only=False) for batch in batches_of(self.ids, start, count)]
            new, kept = translate(np.concatenate([np.zeros(0, np.uint64), *found]).astype(np.uint64))
            self.lengths.append(int(kept.sum()))
            if kept.all() or not self.transposed:
                yield from self._by_row(start, new, kept)
            else:
                yield self._by_column(start, new, kept)

    def changed_buffers(self) -> dict[int, bytes]:
        """The partitions as they are after all rows were written."""
        self.partitions.ClearField("offsets")
        self.partitions.ClearField("lengths")
        self.partitions.offsets.extend(np.cumsum([0, *self.lengths])[:-1].tolist())
        self.partitions.lengths.extend(self.lengths)
        return {self.buffer: self.partitions.SerializeToString()}

    def _by_row(self, start: int, new: npt.NDArray[np.uint64], kept: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in batches_of(self.reader, start, len(new)):
            here = slice(done, done + len(batch))
            done += len(batch)
            yield _with_ids(batch, new[here]).filter(pa.array(kept[here]))

    def _by_column(self, start: int, new: npt.NDArray[np.uint64], kept: npt.NDArray[np.bool_]) -> pa.RecordBatch:
        """A partition without the rows that are gone, where codes are stored by sub-vector."""
        whole = pa.concat_batches(list(batches_of(self.reader, start, len(new))))
        codes = whole[_CODES]
        if not isinstance(codes, pa.FixedSizeListArray) or codes.null_count:
            raise CorruptTable(self.reader.where, (f"its codes are {codes.type}, with {codes.null_count} nulls",))
        matrix = codes.flatten().to_numpy().reshape(-1, len(new))[:, kept]
        chosen = _with_ids(whole, new).filter(pa.array(kept))
        turned = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), type=codes.type)
        arrays = [turned if name == _CODES else chosen[name] for name in chosen.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=chosen.schema)


def _is_transposed(reader: DataFileReader) -> bool:
    """Whether codes are stored by sub-vector. Only product quantizers do that; they say so."""
    if _CODES not in reader.schema.names:
        return False
    try:
        (text,) = json.loads(json_text(reader, "storage_metadata"))
        return bool(json.loads(text).get("transposed", False))
    except (ValueError, TypeError, AttributeError):
        raise CorruptTable(reader.where, ("its metadata does not describe its codes",)) from None


def _with_ids(batch: pa.RecordBatch, ids: npt.NDArray[np.uint64]) -> pa.RecordBatch:
    arrays = [pa.array(ids, pa.uint64()) if name == _ROW_ID else batch[name] for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
