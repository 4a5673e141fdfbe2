"""The versions of a table that pylance wrote, under either naming scheme."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tablewright.format.naming import HINT_PATH, decode_hint
from tablewright.snapshot import list_versions, probe_latest
from tablewright.storage import Store, open_store
from tablewright.testing import FaultyStore, memory_world


@pytest.fixture(params=["memory", "local", "faulty"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(tmp_path / "table")
    store = memory_world().store
    return FaultyStore(store) if request.param == "faulty" else store


@pytest.mark.parametrize("v2", [True, False])
def test_pylance_tables(tmp_path: Path, v2: bool) -> None:
    uri = str(tmp_path / "t")
    for mode in ("create", "append", "append"):
        ds = lance.write_dataset(pa.table({"a": [1]}), uri, mode=mode, enable_v2_manifest_paths=v2)
    store = open_store(uri)
    assert [(entry.version, entry.v2) for entry in list_versions(store)] == [(1, v2), (2, v2), (3, v2)]
    assert decode_hint(store.get(HINT_PATH)) == 3
    assert probe_latest(store, 1).version == ds.latest_version == 3
    if not v2:
        ds.migrate_manifest_paths_v2()
        assert [(entry.version, entry.v2) for entry in list_versions(store)] == [(1, True), (2, True), (3, True)]
