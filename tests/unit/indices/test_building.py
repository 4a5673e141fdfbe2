"""What all kinds share when they are built: the rows, and the ids that the index stores for them."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CorruptTable
from tablewright.format.index_kinds import BTREE, ZONEMAP, IndexKind
from tablewright.indices.building import BuildPlan
from tablewright.indices.entries import read_entries
from tablewright.indices.files import open_index_file, read_index_file, write_index_file
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.storage.base import exists
from tablewright.world import World


def snapshot_of(uri: str, **options: bool) -> Snapshot:
    structs = pa.array([{"a": 1}, None, {"a": 3}, {"a": 4}], pa.struct([("a", pa.int32())]))
    words = pa.array(["x", None, "y", "x"]).dictionary_encode()
    rows = pa.table({"s": structs, "w": words})
    ds = tw.write_dataset(rows, uri, max_rows_per_file=3, **options)
    ds.delete("s.a = 3")
    return open_snapshot(World(open_store(uri)))


def plan_of(snapshot: Snapshot, path: tuple[str, ...], kind: IndexKind = BTREE) -> BuildPlan:
    column = snapshot.schema.resolve(".".join(path))
    return BuildPlan(
        kind=kind,
        uuid=UUID(int=1),
        uri=snapshot.location.uri,
        version=snapshot.version,
        schema=snapshot.schema,
        path=path,
        field_id=column.id,
        type=pa.int32(),
        fragments=snapshot.fragments,
        stable=snapshot.manifest.stable_row_ids,
    )


@pytest.mark.parametrize("stable", [False, True])
def test_entries_are_live_rows_with_the_ids_that_an_index_stores(stable: bool) -> None:
    snapshot = snapshot_of(f"memory://entries-{stable}", enable_stable_row_ids=stable)
    found = list(read_entries(snapshot, plan_of(snapshot, ("s", "a")), snapshot.fragments))
    assert [each.values.to_pylist() for each in found] == [[1, None], [4]]
    assert [each.ids.tolist() for each in found] == ([[0, 1], [3]] if stable else [[0, 1], [1 << 32]])
    assert [each.fragment_id for each in found] == [0, 1]
    assert [each.offsets.tolist() for each in found] == [[0, 1], [0]]


def test_zones_store_addresses_also_with_stable_row_ids() -> None:
    snapshot = snapshot_of("memory://entries-zones", enable_stable_row_ids=True)
    found = list(read_entries(snapshot, plan_of(snapshot, ("s", "a"), ZONEMAP), snapshot.fragments))
    assert [each.ids.tolist() for each in found] == [[0, 1], [1 << 32]]


def test_dictionaries_are_read_as_their_values() -> None:
    snapshot = snapshot_of("memory://entries-words")
    found = list(read_entries(snapshot, plan_of(snapshot, ("w",)), snapshot.fragments))
    assert pa.chunked_array([each.values for each in found]).to_pylist() == ["x", None, "x"]


def test_a_file_of_an_index_has_metadata_and_buffers_and_none_is_left_after_a_failure() -> None:
    store = open_store("memory://index-files-test")
    rows = pa.record_batch({"keys": [1, 2]})

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        write_index_file(store, "_indices/a", "x.lance", rows.schema, failing())
    assert not exists(store, "_indices/a/x.lance")
    file = write_index_file(
        store, "_indices/a", "x.lance", rows.schema, [rows], metadata={"m": "7"}, buffers={"b": b"1"}
    )
    found = read_index_file(store, "_indices/a", "x.lance", buffers=["b", "absent"])
    assert (found.rows.to_pydict(), found.metadata, found.buffers) == (
        {"keys": [1, 2]},
        {"m": "7", "b": "1"},
        {1: b"1"},
    )
    assert file.size_bytes > 0
    with pytest.raises(CorruptTable, match="no column"):
        open_index_file(store, "_indices/a", "x.lance", ["other"])
