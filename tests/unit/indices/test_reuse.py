"""The record of deferred compactions as readers use it, on a table that pylance compacted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from pyroaring import FrozenBitMap

from tablewright.errors import CorruptTable
from tablewright.format.fragment_reuse import ReuseHistory, decode_reuse, encode_reuse_file, encode_reuse_history
from tablewright.format.index import IndexMetadata
from tablewright.format.row_address import RowAddress
from tablewright.indices.reuse import (
    reuse_entry,
    reuse_history,
    reuse_translation,
    reused_coverage,
    translate_addresses,
)
from tablewright.snapshot import open_snapshot
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage import open_store
from tablewright.world import World

GOLDEN = Path(__file__).parents[2] / "golden" / "lance" / "frag_reuse" / "table"


@pytest.fixture
def snapshot() -> Snapshot:
    return open_snapshot(World(open_store(str(GOLDEN))))


def changed(snapshot: Snapshot, **values: object) -> Snapshot:
    manifest = replace(snapshot.manifest, **values)  # type: ignore[arg-type]
    return Snapshot(world=snapshot.world, entry=snapshot.entry, file=replace(snapshot.file, manifest=manifest))


def with_entry(snapshot: Snapshot, entry: IndexMetadata) -> Snapshot:
    return changed(snapshot, indices=(snapshot.manifest.indices[0], entry))


def ids(*places: tuple[int, int]) -> np.ndarray:
    return np.array([RowAddress.of(*place) for place in places], np.uint64)


def test_addresses_of_an_index_go_through_the_record(snapshot: Snapshot) -> None:
    found, kept = translate_addresses(snapshot, ids((0, 0), (0, 2), (0, 3), (1, 0), (2, 19), (3, 5), (9, 9)))
    assert kept.tolist() == [True, True, False, True, True, True, True]
    places = [(RowAddress(id).fragment_id, RowAddress(id).offset) for id in found[kept].tolist()]
    assert places == [(3, 0), (3, 2), (3, 18), (3, 56), (3, 5), (9, 9)]


def test_T13_a_group_that_is_covered_in_part_is_not_claimed(snapshot: Snapshot) -> None:
    index = snapshot.manifest.indices[0]
    assert sorted(index.coverage or ()) == [0, 1, 2]
    assert sorted(reused_coverage(snapshot, index)) == [3]
    assert sorted(reused_coverage(snapshot, index.with_coverage([0, 1]))) == []
    assert sorted(reused_coverage(snapshot, index.with_coverage([3]))) == [3]
    assert sorted(reused_coverage(snapshot, replace(index, fragment_bitmap=None))) == []


def test_T8_a_record_on_a_table_with_stable_row_ids_is_ignored(snapshot: Snapshot) -> None:
    stable = changed(snapshot, stable_row_ids=True)
    assert reuse_entry(stable.manifest) is None and reuse_history(stable) == ReuseHistory()
    assert translate_addresses(stable, ids((0, 3)))[1].tolist() == [True]
    assert reused_coverage(stable, stable.manifest.indices[0]) == FrozenBitMap()


def test_a_table_without_a_record(snapshot: Snapshot) -> None:
    plain = changed(snapshot, indices=snapshot.manifest.indices[:1])
    assert reuse_translation(plain).steps == ()
    assert reused_coverage(plain, plain.manifest.indices[0]) == FrozenBitMap()


def test_a_record_in_a_file(snapshot: Snapshot, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "table")
    here = open_snapshot(World(open_store(str(tmp_path / "table"))))
    entry = here.manifest.indices[1]
    history = decode_reuse(entry.details_value, "manifest")
    assert isinstance(history, ReuseHistory)
    record = encode_reuse_history(history)
    entry = replace(entry, uuid=UUID(int=5), details_value=encode_reuse_file(len(record)))
    file = tmp_path / "table" / "_indices" / str(entry.uuid) / "details.binpb"
    with pytest.raises(CorruptTable, match="missing"):
        reuse_history(with_entry(here, entry))
    file.parent.mkdir()
    file.write_bytes(record[:-1])
    with pytest.raises(CorruptTable, match="bytes from 0 on"):
        reuse_history(with_entry(here, entry))
    file.write_bytes(record)
    assert reuse_history(with_entry(here, entry)) == reuse_history(snapshot) == history


def test_an_index_that_names_rows_beyond_a_fragment(snapshot: Snapshot) -> None:
    with pytest.raises(CorruptTable, match="has 20 rows, and none at 20"):
        translate_addresses(snapshot, ids((0, 20)), snapshot.manifest.indices[0])
