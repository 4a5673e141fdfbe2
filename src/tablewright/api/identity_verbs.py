"""Rows that are followed through time, as ``LanceDataset`` offers it: stable row ids switched on, and what changed.

Tests: ``tests/unit/api/test_changes_feed.py``, ``tests/differential/test_enable_row_ids.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from tablewright.api.auto_cleanup import commits
from tablewright.api.changes_feed import Changes, changes_of
from tablewright.api.delta import DatasetDelta, delta_of
from tablewright.api.pinned import Pinned, run_on
from tablewright.jobs.row_ids import RowIdsJob

__all__ = ["IdentityVerbs"]


class IdentityVerbs(Pinned):
    """The part of a dataset that knows rows by their ids."""

    @commits
    def enable_stable_row_ids(self, *, skip_auto_cleanup: bool = False) -> None:
        """Give this table row ids that survive updates and compaction, from the next version on.

        Only metadata is written: existing rows keep their present row ids, so indices stay valid, and count as created
        by the version that switches it on. Nothing happens if it is on already.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://enable-row-ids-example")
        >>> ds.enable_stable_row_ids()
        >>> ds.update({"id": "id * 10"}, where="id = 1")
        {'num_rows_updated': 1}
        >>> ds.take_rows([0]).to_pydict(), ds.has_stable_row_ids
        ({'id': [10]}, True)
        """
        run_on(self, RowIdsJob())

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """What was inserted, updated and deleted since a version, or after one and up to another.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://delta-example", enable_stable_row_ids=True)
        >>> _ = ds.delete("id = 1")
        >>> ds.delta(compared_against=1).get_deleted_row_ids().read_all().to_pydict()
        {'_rowid': [0]}
        """
        return delta_of(self._table.snapshot, compared_against, begin_version, end_version)

    def changes(
        self,
        from_version: int,
        to_version: int | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | pc.Expression | None = None,
        *,
        net: bool = False,
        batch_size: int | None = None,
        use_scalar_index: bool | None = None,
    ) -> Changes:
        """The rows that changed after a version, up to another (by default this one), before and after each change.

        With ``net`` the two versions are compared as a whole, else each commit between them is shown.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://changes-example", enable_stable_row_ids=True)
        >>> ds.insert({"id": [3]})
        >>> _ = ds.delete("id = 1")
        >>> ds.changes(1).to_table().select(["id", "_change_type", "_commit_version", "_rowid"]).to_pylist()[1]
        {'id': 1, '_change_type': 'delete', '_commit_version': 3, '_rowid': 0}
        """
        table = self._table
        return changes_of(
            table.snapshot,
            from_version,
            to_version,
            columns,
            filter,
            net=net,
            batch_size=batch_size,
            use_scalar_index=use_scalar_index,
            engine=table.engine,
            spark=table.spark,
        )
