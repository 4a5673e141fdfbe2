"""From rows to zones: the live rows of a fragment in order, cut every ``rows_per_zone`` rows.

A zone is described by physical offsets: ``zone_start`` is that of its first live row, ``zone_length`` reaches to its
last one, so deleted rows between them count. What a zone says of its values is up to the kind (:class:`ZoneSummary`),
which can also unite neighbours. So no zone has to be in memory at once: a batch of rows is summarised in pieces, and
pieces of one zone are united.

Tests: ``tests/unit/indices/zones/test_zones.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from tablewright.indices.building import Entries

__all__ = ["PLACE_FIELDS", "Bounds", "ZoneCutter", "ZoneSummary", "united", "zone_places"]

Bounds = npt.NDArray[np.int64]
"""Where each group of consecutive rows begins: ascending, the first is 0. The last group ends with the rows."""

PLACE_FIELDS = (
    pa.field("fragment_id", pa.uint64(), nullable=False),
    pa.field("zone_start", pa.uint64(), nullable=False),
    pa.field("zone_length", pa.uint64(), nullable=False),
)


class ZoneSummary(Protocol):
    """What a kind says of the values of a zone. Picklable."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the index file: :data:`PLACE_FIELDS` and the kind's own, in its order."""

    def summarise(self, values: pa.Array, bounds: Bounds) -> Mapping[str, pa.Array]:
        """The kind's own columns, one row for each group of values."""

    def unite(self, zones: pa.RecordBatch, bounds: Bounds) -> Mapping[str, pa.Array]:
        """The kind's own columns, one row for each group of zones."""

    def moved(self, zones: pa.RecordBatch, nulls: npt.NDArray[np.int64] | None) -> pa.RecordBatch:
        """Zones at a new place, which may be parts of what they were, with the number of nulls in each, if known."""


class ZoneCutter:
    """Entries in the order of their addresses into zones, in rows of the index file; and the null rows among them."""

    def __init__(self, summary: ZoneSummary, rows_per_zone: int) -> None:
        self._summary, self._rows_per_zone = summary, rows_per_zone
        self._open: pa.RecordBatch | None = None  # a zone that more rows may belong to
        self._fragment_id, self._rows = -1, 0
        self.nulls: dict[int, BitMap] = {}

    def cut(self, entries: Iterable[Entries]) -> Iterator[pa.RecordBatch]:
        """The zones of all entries."""
        for batch in entries:
            if batch.fragment_id != self._fragment_id:
                yield from self._closed()
                self._fragment_id, self._rows = batch.fragment_id, 0
            self._note_nulls(batch)
            yield from self._added(batch)
        yield from self._closed()

    def _closed(self) -> Iterator[pa.RecordBatch]:
        if self._open is not None:
            yield self._open
        self._open = None

    def _note_nulls(self, batch: Entries) -> None:
        if batch.values.null_count:
            offsets = batch.offsets[batch.values.is_null().to_numpy(zero_copy_only=False)]
            found = BitMap(offsets.astype(np.uint32))
            self.nulls[batch.fragment_id] = self.nulls.get(batch.fragment_id, BitMap()) | found

    def _added(self, batch: Entries) -> Iterator[pa.RecordBatch]:
        """The zones that are complete with these rows."""
        rows = len(batch.values)
        if not rows:
            return
        first = -self._rows % self._rows_per_zone
        bounds = np.unique(np.concatenate([[0], np.arange(first, rows, self._rows_per_zone)])).astype(np.int64)
        pieces = self._pieces(batch, bounds)
        if self._open is not None and first:
            joined = pa.concat_batches([self._open, pieces.slice(0, 1)])
            pieces = pa.concat_batches([united(self._summary, joined, np.zeros(1, np.int64)), pieces.slice(1)])
        elif self._open is not None:
            yield self._open
        self._rows += rows
        yield pieces.slice(0, len(pieces) - 1)
        self._open = pieces.slice(len(pieces) - 1)

    def _pieces(self, batch: Entries, bounds: Bounds) -> pa.RecordBatch:
        starts = batch.offsets[bounds]
        lasts = batch.offsets[np.append(bounds[1:], len(batch.offsets)) - 1]
        places = zone_places(np.full(len(bounds), batch.fragment_id), starts, lasts - starts + 1)
        return _batch(self._summary.schema, {**places, **self._summary.summarise(batch.values, bounds)})


def united(summary: ZoneSummary, zones: pa.RecordBatch, bounds: Bounds) -> pa.RecordBatch:
    """Neighbours of one fragment, in order, as one zone for each group. There is no live row between two of a group."""
    if len(bounds) == len(zones):
        return zones
    fragments, starts, lengths = (zones[field.name].to_numpy().astype(np.int64) for field in PLACE_FIELDS)
    lasts = np.append(bounds[1:], len(zones)) - 1
    places = zone_places(fragments[bounds], starts[bounds], starts[lasts] + lengths[lasts] - starts[bounds])
    return _batch(summary.schema, {**places, **summary.unite(zones, bounds)})


def zone_places(
    fragment_ids: npt.NDArray[np.integer], starts: npt.NDArray[np.integer], lengths: npt.NDArray[np.integer]
) -> dict[str, pa.Array]:
    """The columns that say where zones are."""
    numbers = zip(PLACE_FIELDS, (fragment_ids, starts, lengths), strict=True)
    return {field.name: pa.array(each.astype(np.uint64)) for field, each in numbers}


def _batch(schema: pa.Schema, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)
