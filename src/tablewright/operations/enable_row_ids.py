"""Switching stable row ids on for a live table: the plan of a commit that writes metadata only.

:mod:`tablewright.transaction.row_id_switch` computes the rows' ids and what happens to indices. A table that has stable
row ids already needs no commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.row_id_switch import first_row_id

__all__ = ["EnablePlan", "plan_enable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnablePlan:
    """What switching on means for a version: rows that get ids, and the first id of rows to come."""

    version: int
    fragments: int
    rows: int
    next_row_id: int
    already_on: bool

    def __str__(self) -> str:
        if self.already_on:
            return f"version {self.version} has stable row ids already: nothing to do"
        return (
            f"version {self.version}: {self.rows} rows in {self.fragments} fragments get their addresses as row ids, "
            f"new rows get ids from {self.next_row_id} on; no data is rewritten"
        )


def plan_enable(snapshot: Snapshot) -> EnablePlan:
    """What switching on would do; nothing is changed.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1}, {"id": 2}], "memory://plan-enable")
    >>> print(plan_enable(ds._snapshot))
    version 1: 2 rows in 1 fragments get their addresses as row ids, new rows get ids from 4294967296 on; no data is \
rewritten
    """
    manifest = snapshot.manifest
    return EnablePlan(
        version=manifest.version,
        fragments=len(manifest.fragments),
        rows=int(manifest.fragments.physical_rows.sum()),
        next_row_id=manifest.next_row_id if manifest.stable_row_ids else first_row_id(manifest),
        already_on=manifest.stable_row_ids,
    )
