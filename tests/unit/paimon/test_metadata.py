"""Snapshots, schemas and manifests: which snapshot is read, and what is called corrupt."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.unit.paimon.tables import made, table_of

import tablewright.paimon as paimon
from tablewright.errors import CorruptTable, InvalidRequest, TableNotFound, VersionNotFound
from tablewright.paimon.metadata import earliest_snapshot_id, latest_snapshot_id, read_state


def test_which_snapshot() -> None:
    """Hints are advice: stale, absent or nonsense, the newest snapshot is found."""
    store = made()
    for hint in (b"1", b"3", b"7", b"x", b"-1", b"3\n", b"9" * 4300, b"", b"\xff", None):
        if hint is None:
            store.delete("snapshot/LATEST")
        else:
            store.put("snapshot/LATEST", hint)
        assert latest_snapshot_id(store) == 3 and earliest_snapshot_id(store) == 1
        assert table_of(store).count_rows() == 19
    assert [table_of(store, id).count_rows() for id in (1, 2, 3)] == [10, 20, 19]
    store.delete("snapshot/snapshot-1")
    store.put("snapshot/EARLIEST", b"2")
    assert earliest_snapshot_id(store) == 2
    with pytest.raises(VersionNotFound, match="There are snapshots 2 to 3"):
        table_of(store, 1)
    for wrong in (0, -1, "2", 1.5):
        with pytest.raises(InvalidRequest):
            table_of(store, wrong)  # type: ignore[arg-type]
    with pytest.raises(TableNotFound, match=r"no schema/schema-<n> lies there"):
        paimon.open("memory://nothing/at/all")


def test_one_file_of_the_metadata_is_damaged() -> None:
    """Truncated, torn, or gone: every document says CorruptTable and its own name, and nothing else is raised."""
    start = made()
    table = table_of(start)
    paths = [info.path for info in start.list("") if info.path != "snapshot/LATEST"]
    old = {"snapshot/snapshot-1", "snapshot/snapshot-2"}
    state = read_state(start)
    assert state.snapshot is not None
    needed = {
        "schema/schema-0",
        "snapshot/snapshot-3",
        f"manifest/{state.snapshot.base.name}",
        f"manifest/{state.snapshot.delta.name}",
        f"manifest/{state.snapshot.index_manifest}",
        *(f"manifest/{record['_FILE_NAME']}" for records in state.manifest_lists for record in records.values),
        *(file.path for file in table.files()),
        *(vector.path for vector in table.deletion_vectors().values()),
    }
    assert len(needed) == 10 and needed <= {*paths} - old
    damages: list[Callable[[bytes], bytes | None]] = [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: bytes(len(data)),
        lambda data: data[:6] + bytes(byte ^ 0x55 for byte in data[6:]),
        lambda data: None,
    ]
    for path in sorted(needed):
        for number, damage in enumerate(damages):
            whole = start.get(path)
            damaged = damage(whole)
            if damaged is None:
                start.delete(path)
            else:
                start.put(path, damaged)
            try:
                if (path, number) in (("schema/schema-0", 5), ("snapshot/snapshot-3", 5)):
                    continue  # without them it is another table, and a younger one
                with pytest.raises(CorruptTable) as caught:
                    table_of(start).to_table()
                assert caught.value.path.endswith(path.rpartition("/")[2]), (path, number)
            finally:
                start.put(path, whole)
    assert table_of(start).count_rows() == 19


def test_documents_that_contradict() -> None:
    for path, change, words in [
        ("snapshot/snapshot-3", {"id": 4}, "says that it is snapshot 4"),
        ("snapshot/snapshot-3", {"commitKind": "X", "timeMillis": "now"}, "timeMillis is 'now'.*commitKind is 'X'"),
        ("snapshot/snapshot-3", {"baseManifestList": None}, "baseManifestList is missing"),
        ("schema/schema-0", {"partitionKeys": ["nope"]}, "partition key nope is not a field"),
        (
            "schema/schema-0",
            {"fields": [{"id": 0, "name": "id", "type": "INTERVAL"}]},
            "'INTERVAL', which is not known",
        ),
        ("schema/schema-0", {"fields": [{"name": "id"}]}, "field 0 has no id or no name"),
        ("schema/schema-0", {"id": 5}, "says that it is schema 5"),
        ("schema/schema-0", {"options": {"a": 1}}, "options holds something that is not text"),
    ]:
        store = made()
        store.put(path, json.dumps({**json.loads(store.get(path)), **change}).encode())
        with pytest.raises(CorruptTable, match=words):
            table_of(store)
