"""How the rows of a change are found: by a lookup where one index knows them all, else by a scan.

A lookup (:mod:`.lookup`) is planned in a fraction of the time of a scan (:mod:`.match`). So the scan is planned at once
where it is needed, and otherwise when it is asked for: to explain the change, or after the lookup found too many rows.

Tests: ``tests/differential/test_known_rows.py``, ``tests/unit/operations/test_delete.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablewright.expressions.filters import Filter
from tablewright.indices.rows import RowsByFragment
from tablewright.lazy import cached_property
from tablewright.reading.lookup import Lookup, plan_lookup, recognised
from tablewright.reading.match import plan_match
from tablewright.reading.scan_task import ScanTask
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["RowSearch", "plan_search"]

Path = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RowSearch:
    """The rows of a version that a predicate is true for. ``now()`` in it is ``now_ns``."""

    snapshot: Snapshot
    predicate: Filter | None
    now_ns: int | None
    use_scalar_index: bool | None
    lookup: Lookup | None

    @cached_property
    def scan(self) -> ScanTask:
        """The scan that finds them; it has no filter if all live rows match."""
        return plan_match(self.snapshot, self.predicate, self.now_ns, self.use_scalar_index)

    @property
    def finds_all(self) -> bool:
        """Whether every live row matches, so that no fragment has to be read."""
        return self.lookup is None and self.scan.reads.predicate is None

    @property
    def paths(self) -> Sequence[Path]:
        """What the predicate reads."""
        if self.lookup is not None:
            return (self.lookup.path,)
        condition = self.scan.reads.predicate
        return () if condition is None else condition.paths

    def known_rows(self) -> RowsByFragment | None:
        """The rows, where an index knows them all and they are few; ``None``: the scan has to find them."""
        return None if self.lookup is None else self.lookup.rows()


def plan_search(
    snapshot: Snapshot,
    predicate: Filter | None,
    now_ns: int | None = None,
    use_scalar_index: bool | None = None,
) -> RowSearch:
    """Decide how to find the rows. A bad predicate fails here."""
    filter = recognised(snapshot, predicate, use_scalar_index)
    lookup = None if filter is None else plan_lookup(snapshot, filter, now_ns)
    search = RowSearch(
        snapshot=snapshot, predicate=predicate, now_ns=now_ns, use_scalar_index=use_scalar_index, lookup=lookup
    )
    if lookup is None:
        search.scan  # noqa: B018 an invalid predicate raises
    return search
