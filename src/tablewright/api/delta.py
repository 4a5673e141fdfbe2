"""``DatasetDelta``: pylance's view of what two versions do not share.

As in pylance, inserted and updated rows are read from the version that the dataset is at, by the versions that each row
carries; only the ids of deleted rows are those of the two versions exactly. :meth:`LanceDataset.changes` shows rows as
they were in every version.

Where pylance answers with nothing, because the table has no stable row ids, this raises; so it does where the version
to compare with was cleaned up.

Tests: ``tests/unit/api/test_changes_feed.py``, ``tests/differential/test_delta.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tablewright.api.operation import Transaction
from tablewright.api.translate import from_transaction
from tablewright.checks import whole_number
from tablewright.errors import InvalidRequest
from tablewright.operations.change_feed.pairs import deleted_row_ids
from tablewright.operations.change_feed.span import check_span, open_at, require_ids, require_versions
from tablewright.operations.change_feed.touched import different
from tablewright.operations.scan import ScanOptions, plan_scan, scan_batches
from tablewright.snapshot.files import read_manifest, read_transaction
from tablewright.snapshot.locate import list_versions
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["DatasetDelta", "delta_of"]

_CREATED, _UPDATED = "_row_created_at_version", "_row_last_updated_at_version"
_IDS_PER_BATCH = 1 << 16


class DatasetDelta:
    """The difference between two versions, the first exclusive, the second inclusive."""

    def __init__(self, snapshot: Snapshot, begin_version: int, end_version: int) -> None:
        self._snapshot, self._begin, self._end = snapshot, begin_version, end_version

    def list_transactions(self) -> list[Transaction | None]:
        """The transactions of the versions after the first, up to the second; ``None`` for one that left none."""
        require_versions(self._snapshot, self._begin + 1, self._end)
        store = self._snapshot.world.store
        entries = [entry for entry in list_versions(store) if self._begin < entry.version <= self._end]
        found = (read_transaction(store, read_manifest(store, entry)) for entry in entries)
        return [None if each is None else from_transaction(each) for each in found]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Rows that were created in the span and are still there, with their id and versions."""
        return self._rows(f"{_CREATED} > {self._begin} AND {_CREATED} <= {self._end}")

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Rows that are older than the span and were last updated in it, with their id and versions."""
        return self._rows(f"{_CREATED} <= {self._begin} AND {_UPDATED} > {self._begin} AND {_UPDATED} <= {self._end}")

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """The ids of rows that are in the first version and not in the second, as the column ``_rowid``."""
        after = open_at(self._snapshot, self._end)
        ids = np.zeros(0, np.uint64)
        if after is not None:
            ids = deleted_row_ids(open_at(self._snapshot, self._begin), after)
        schema = pa.schema({"_rowid": pa.uint64()})
        return pa.RecordBatchReader.from_batches(schema, _id_batches(ids, schema))

    def _rows(self, filter: str) -> pa.RecordBatchReader:
        snapshot = require_ids(self._snapshot)
        begin = open_at(snapshot, self._begin)
        open_at(snapshot, self._end)
        columns = [*snapshot.schema.names, "_rowid", _CREATED, _UPDATED]
        # What was there before, byte for byte, can't hold rows of later versions.
        fragments = None
        if begin is not None:
            fragments = snapshot.fragments.ids[different(begin.fragments, snapshot.fragments)[1]].tolist()
        plan = plan_scan(snapshot, ScanOptions(columns=columns, filter=filter, fragments=fragments))
        return pa.RecordBatchReader.from_batches(plan.schema, scan_batches(plan, snapshot))


def delta_of(
    snapshot: Snapshot, compared_against: int | None, begin_version: int | None, end_version: int | None
) -> DatasetDelta:
    """The delta that pylance's arguments mean: ``compared_against`` wins over the two others, which need each other."""
    if compared_against is not None:
        begin, end = whole_number(compared_against, "compared_against"), snapshot.version
    elif begin_version is not None and end_version is not None:
        begin, end = whole_number(begin_version, "begin_version"), whole_number(end_version, "end_version")
    elif begin_version is None and end_version is None:
        raise InvalidRequest(
            "Invalid user input: Must specify either compared_against or both begin_version and end_version."
        )
    else:
        raise InvalidRequest("Invalid user input: Must specify both begin_version and end_version.")
    return DatasetDelta(snapshot, *check_span(begin, end))


def _id_batches(ids: np.ndarray[tuple[int], np.dtype[np.uint64]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for begin in range(0, len(ids), _IDS_PER_BATCH):
        yield pa.record_batch([pa.array(ids[begin : begin + _IDS_PER_BATCH])], schema=schema)
