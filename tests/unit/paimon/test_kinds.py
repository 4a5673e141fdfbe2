"""Kinds of tables: those that are read file by file, and those that are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.paimon.tables import (
    append,
    create,
    ids_of,
    made,
    new_store,
    numbers,
    overwrite_option,
    rewritten,
    sized,
    table_of,
)

from tablewright.errors import UnsupportedFeature
from tablewright.paimon.metadata import read_state
from tablewright.storage import Store, open_store


def test_newer_versions_and_other_kinds_are_refused_by_name() -> None:
    def options(name: str, value: str) -> Callable[[Store], None]:
        return lambda store: overwrite_option(store, name, value)

    def document(path: str, **change: Any) -> Callable[[Store], None]:
        return lambda store: store.put(path, json.dumps({**json.loads(store.get(path)), **change}).encode())

    def record(place: str, **change: Any) -> Callable[[Store], None]:
        def act(store: Store) -> None:
            snapshot = read_state(store).snapshot
            assert snapshot is not None
            name = snapshot.index_manifest if place == "index" else snapshot.base.name
            rewritten(store, f"manifest/{name}", lambda each: each.update(change))
            sized(store)

        return act

    cases: list[tuple[Callable[[Store], None], str]] = [
        (document("snapshot/snapshot-3", version=4), "snapshot of version 4"),
        (document("schema/schema-0", version=4), "schema of version 4"),
        (options("type", "object-table"), "object-table"),
        (options("type", "format-table"), "format-table"),
        (options("type", "materialized-table"), "materialized-table"),
        (options("branch", "dev"), "branch 'dev'"),
        (options("bucket", "-2"), "postpone"),
        (record("base", _VERSION=3), "manifest list of version 3"),
        (record("index", _VERSION=2), "index manifest of version 2"),
    ]
    for change, words in cases:
        store = made()
        change(store)
        with pytest.raises(UnsupportedFeature, match=words):
            table_of(store)
    branch = open_store("memory://branches/db.db/t/branch/branch-dev")
    create(branch, numbers(0, 1).schema)
    with pytest.raises(UnsupportedFeature, match="branch 'dev'"):
        table_of(branch)


def test_data_files_that_are_not_read() -> None:
    store = made()
    state = read_state(store)
    name = state.files[1].name
    path = f"manifest/{state.manifest_lists[0].values[1]['_FILE_NAME']}"

    def renamed(record: dict[str, Any]) -> None:
        record["_FILE"]["_FILE_NAME"] = name.replace("parquet", "orc")

    rewritten(store, path, renamed)
    lists = f"manifest/{state.snapshot.base.name}" if state.snapshot else ""
    rewritten(
        store, lists, lambda record: record.update(_FILE_SIZE=store.head(f"manifest/{record['_FILE_NAME']}").size)
    )
    sized(store)
    with pytest.raises(UnsupportedFeature, match=r"\.orc of format 'orc'"):
        table_of(store).to_table()

    outside = made()
    append(outside, numbers(20, 25), external="memory://elsewhere/data")
    assert ids_of(outside) == [i for i in range(25) if i != 3]
    assert table_of(outside).files()[2].path.startswith("memory://elsewhere/data/data-")
    append(outside, numbers(25, 26), external="memory://elsewhere/data")
    assert table_of(outside, seed=9).delete("id in (21, 25)").num_deleted_rows == 2
    assert ids_of(outside) == [i for i in range(25) if i not in (3, 21)]


def test_rows_that_have_to_be_merged() -> None:
    """Which primary-key tables are read file by file, and why the others are not."""
    vectors = {"deletion-vectors.enabled": "true"}
    plain = {"deletion-vectors.enabled": "false"}
    cases: list[tuple[dict[str, str], list[tuple[int, int]], int | str]] = [
        (vectors, [(5, 0), (4, 0), (0, 0)], 20),
        (vectors, [(5, 0), (4, 1)], "holds delete rows"),
        (vectors, [(0, 1), (4, 0)], 10),
        ({**vectors, "deletion-vectors.merge-on-read": "true"}, [(5, 0)], 10),
        ({**vectors, "deletion-vectors.merge-on-read": "true"}, [(5, 0), (0, 0)], "merge-on-read=true.*level 0"),
        (plain, [(5, 0), (5, 0)], 20),
        (plain, [(5, 0), (4, 0)], "several levels"),
        (plain, [(5, 2)], "delete rows"),
        (plain, [(0, 0)], "merge-engine=deduplicate and no deletion vectors.*level 0"),
        ({**plain, "merge-engine": "first-row"}, [(5, 0), (4, 0), (0, 0)], 20),
        ({**plain, "merge-engine": "aggregation"}, [(0, 0)], "merge-engine=aggregation"),
    ]
    for options, files, expected in cases:
        store = new_store()
        create(store, numbers(0, 1).schema, primary_keys=["id"], options={"bucket": "1", **options})
        for number, (level, deletes) in enumerate(files):
            append(store, numbers(number * 10, number * 10 + 10), level=level, delete_rows=deletes)
        table = table_of(store)
        if isinstance(expected, int):
            assert table.count_rows() == table.to_table().num_rows == expected, (options, files)
        else:
            with pytest.raises(UnsupportedFeature, match=expected):
                table.to_table()
