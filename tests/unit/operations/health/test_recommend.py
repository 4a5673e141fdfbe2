"""Figures against limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablewright.operations.health.options import HealthOptions
from tablewright.operations.health.recommend import recommend
from tablewright.operations.health.values import (
    BytesHealth,
    CompactionOutlook,
    FragmentsHealth,
    IndexHealth,
    ReclaimableFiles,
    Recommendation,
    RowsHealth,
    VersionsHealth,
)


def _index(unindexed: int, columns: tuple[str, ...] = ("id",)) -> IndexHealth:
    return IndexHealth(
        name="id_idx",
        kind="BTree",
        columns=columns,
        segments=1,
        bytes=1,
        indexed_rows=1000 - unindexed,
        unindexed_rows=unindexed,
        unindexed_fragments=1,
        stale_fragments=0,
    )


def _actions(workload: str = "mixed", **given: Any) -> list[str]:
    return [each.action for each in _recommended(workload, **given)]


def _recommended(workload: str = "mixed", **given: Any) -> tuple[Recommendation, ...]:
    shape = {"count": 100, "data_files": 100, "small": 0, "target_rows": 10, "with_deletions": 0, "over_limit": 0}
    versions = {
        "count": 5,
        "oldest": 1,
        "latest": 5,
        "oldest_ns": 1,
        "tagged": 0,
        "kept": 1,
        "manifest_bytes": 1,
        "bytes_on_disk": 1000,
        "unverified_bytes": 0,
        "is_verified": True,
    }
    versions |= {key: given[key] for key in versions if key in given}
    reclaimable = (ReclaimableFiles(kind="data files", files=1, bytes=given.get("reclaimable", 0)),)
    found = recommend(
        limits=HealthOptions(workload=workload).limits,
        rows=RowsHealth(live=90, deleted=10),
        bytes=BytesHealth(data=100, deletion_files=1, dead_rows=10, dead_columns=0),
        shape=FragmentsHealth(**(shape | {key: given[key] for key in shape if key in given})),
        versions=VersionsHealth(reclaimable=reclaimable, **versions),  # type: ignore[arg-type]
        indices=given.get("indices", ()),
        compaction=given.get("compaction"),
    )
    assert all(each.reason.endswith(".") for each in found)
    return tuple(found)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["none"]),
        ({"over_limit": 1}, ["compact"]),
        ({"small": 9}, ["none"]),
        ({"small": 10}, ["compact"]),
        ({"workload": "read", "small": 4}, ["compact"]),
        ({"workload": "write", "small": 49}, ["none"]),
        ({"indices": (_index(100),)}, ["none"]),
        ({"indices": (_index(101),)}, ["optimize_indices"]),
        ({"indices": (_index(500, ()),)}, ["none"]),
        ({"workload": "read", "indices": (_index(51),)}, ["optimize_indices"]),
        ({"reclaimable": 200}, ["none"]),
        ({"reclaimable": 201}, ["cleanup"]),
        ({"count": 1001}, ["cleanup"]),
        ({"over_limit": 1, "indices": (_index(900),), "reclaimable": 900}, ["compact", "optimize_indices", "cleanup"]),
    ],
    ids=str,
)
def test_limits(given: dict[str, Any], expected: list[str]) -> None:
    assert _actions(**given) == expected


def test_a_plan_without_tasks_overrules() -> None:
    nothing = CompactionOutlook(
        tasks=0, fragments_before=0, fragments_after=0, rows_written=0, bytes_read=0, bytes_freed=0
    )
    assert _actions(over_limit=3, small=50, compaction=nothing) == ["none"]


def test_indices_that_want_to_catch_up_and_why() -> None:
    def reasons(**given: Any) -> str:
        found = _recommended(indices=(replace(_index(0), **given),))
        return next((each.reason for each in found if each.action == "optimize_indices"), "")

    assert reasons() == ""
    assert reasons(deferred_segments=2).startswith("id_idx has 2 segments with addresses from before a compaction")
    assert "lost 3 fragments that were rewritten, and leaves 10 rows" in reasons(stale_fragments=3, unindexed_rows=10)
    assert reasons(stale_fragments=3) == ""  # dead fragments alone cost nothing
    assert reasons(unindexed_rows=900).startswith("id_idx leaves 900 rows")
