"""Zone indices of pylance on golden tables: ours have the same content, and its own are searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from tests.index_plans import here, plan_of

from tablewright.format.index_kinds import BLOOMFILTER, ZONEMAP
from tablewright.indices import bloomfilter, zonemap
from tablewright.indices.files import read_index_file
from tablewright.indices.query import Between, IsIn, IsNull
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

GOLDEN = Path(__file__).parents[3] / "golden" / "lance"


def opened(name: str) -> Snapshot:
    return open_snapshot(World(open_store(str(GOLDEN / name / "table"))))


def found(hits: Any) -> list[tuple[int, int, int]]:
    return list(zip(*(part.tolist() for part in hits.ranges), strict=True))


@pytest.mark.parametrize(
    ("name", "module", "kind", "column", "settings"),
    [
        ("zonemap", zonemap, ZONEMAP, "f", {"rows_per_zone": 16}),
        ("zonemap_stable", zonemap, ZONEMAP, "f", {"rows_per_zone": 16}),
        ("bloomfilter", bloomfilter, BLOOMFILTER, "k", {"number_of_items": 16, "probability": 0.01}),
        ("bloomfilter_stable", bloomfilter, BLOOMFILTER, "k", {"number_of_items": 16, "probability": 0.01}),
    ],
)
def test_ours_has_the_same_content(name: str, module: Any, kind: Any, column: str, settings: Any) -> None:
    snapshot = opened(name)
    (index,) = snapshot.manifest.indices
    plan = plan_of(snapshot, column, kind, UUID(int=1), settings=settings)
    written_to = World(open_store(f"memory://golden-{name}"))
    source = World(open_store(str(GOLDEN / name / "table")))
    written = module.build(plan, written_to, here(source))
    assert written.details_value == index.details_value
    mine = read_index_file(written_to.store, plan.directory, kind.files[0], buffers=["null_bitmap"])
    theirs = read_index_file(source.store, f"_indices/{index.uuid}", kind.files[0], buffers=["null_bitmap"])
    assert repr(mine.rows.to_pylist()) == repr(theirs.rows.to_pylist())
    assert (mine.metadata, mine.buffers) == (theirs.metadata, theirs.buffers)
    assert mine.rows.schema == theirs.rows.schema


@pytest.mark.parametrize("name", ["zonemap", "zonemap_stable"])
def test_a_golden_zone_map_is_searched(name: str) -> None:
    snapshot = opened(name)
    (index,) = snapshot.manifest.indices
    assert found(zonemap.search(snapshot, index, Between(low=pa.scalar(45.0)))) == [(0, 0, 18), (1, 0, 20)]
    assert found(zonemap.search(snapshot, index, IsIn(pa.array([20.0])))) == [(0, 0, 30)]
    assert zonemap.search(snapshot, index, IsNull()).ids.tolist()[:5] == [0, 7, 14, 21, 28]


@pytest.mark.parametrize("name", ["bloomfilter", "bloomfilter_stable"])
def test_golden_filters_are_searched(name: str) -> None:
    snapshot = opened(name)
    (index,) = snapshot.manifest.indices
    column = snapshot.schema.to_arrow().field("k").type
    assert (0, 18, 30) in found(bloomfilter.search(snapshot, index, IsIn(pa.array([20], column))))
    assert found(bloomfilter.search(snapshot, index, IsIn(pa.array([1 << 20], column)))) == []
    assert bloomfilter.search(snapshot, index, IsNull()).ids.tolist() == []
