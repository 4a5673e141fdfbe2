"""A Paimon table: what is read, what is refused by name, what is called corrupt, and what a delete carries on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.paimon.tables import append, copied, create, ids_of, new_store, numbers, overwrite_option

import tablewright.paimon as paimon
from tablewright.errors import CorruptTable, InvalidRequest, TableNotFound, UnsupportedFeature, VersionNotFound
from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.deletion_vectors.paimon import encode_vector_file
from tablewright.paimon.metadata import earliest_snapshot_id, latest_snapshot_id, read_state
from tablewright.paimon.opening import open_in
from tablewright.storage import Store, open_store
from tablewright.testing import FaultyStore, seeded_world


def table_of(store: Store, snapshot: int | None = None, seed: int = 0) -> paimon.PaimonTable:
    return open_in(seeded_world(store, seed), snapshot)


def made(**how: Any) -> Store:
    """A table of two files of ten rows; row 3 is deleted."""
    store = new_store()
    create(store, numbers(0, 1).schema, **how)
    append(store, numbers(0, 10))
    append(store, numbers(10, 20))
    if not how.get("primary_keys"):
        table_of(store, seed=1).delete("id = 3")
    return store


def test_looking_at_a_table() -> None:
    store = made()
    table = table_of(store)
    assert repr(table) == f"PaimonTable('{store.location.uri}': append, deletion vectors, snapshot 3, 2 data files)"
    assert table.options == {"deletion-vectors.enabled": "true"} and table.uri == store.location.uri
    assert table.schema == pa.schema([("id", pa.int64()), ("s", pa.string())])
    assert (table.primary_keys, table.partition_keys) == ((), ())
    assert [(file.rows, file.bucket, file.level, file.partition) for file in table.files()] == [(10, 0, 0, {})] * 2
    assert [vector.vector.to_numpy().tolist() for vector in table.deletion_vectors().values()] == [[3]]
    assert table.buckets().partitions == {}
    assert paimon.open(store.location.uri).count_rows() == 19
    empty = new_store()
    create(empty, numbers(0, 1).schema, primary_keys=["id"], options={"bucket": "4"})
    assert "primary key id, bucket=4, deletion vectors, no snapshot yet, 0 data files" in repr(table_of(empty))


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


def rewritten(store: Store, path: str, change: Callable[[dict[str, Any]], Any], field: Any = None) -> None:
    """Change every record of an Avro file in place, and perhaps add a field to its schema."""
    reader = fastavro.reader(io.BytesIO(store.get(path)))
    records, schema = list(reader), dict(reader.writer_schema)
    for record in records:
        change(record)
    schema = {key: value for key, value in schema.items() if not key.startswith("__")}
    if field is not None:
        schema["fields"] = [*schema["fields"], field]
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), records, codec="deflate")
    store.put(path, sink.getvalue())


def sized(store: Store) -> None:
    """Forget the noted sizes of manifest lists, which `rewritten` makes wrong."""
    path = f"snapshot/snapshot-{latest_snapshot_id(store)}"
    document = json.loads(store.get(path))
    store.put(
        path, json.dumps({key: value for key, value in document.items() if not key.endswith("ListSize")}).encode()
    )


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


def test_what_a_delete_carries_on() -> None:
    """Fields that we don't know, of snapshot, manifest lists and index entries; other kinds of index files."""
    store = new_store()
    create(store, numbers(0, 1).schema)
    others = {"watermark": 17, "statistics": "stat-1", "nextRowId": 10, "fromTheFuture": {"a": [1]}}
    commit = {"properties": {"of": "one commit"}, "changelogManifestList": "x", "changelogRecordCount": 4}
    append(store, numbers(0, 10), others={**others, **commit})
    table_of(store, seed=1).delete("id = 1")
    snapshot = read_state(store).snapshot
    assert snapshot is not None and snapshot.index_manifest is not None
    assert {key: snapshot.document.get(key) for key in others} == others
    assert not commit.keys() & snapshot.document.keys()
    assert snapshot.document["operation"] == "DELETE"

    index = f"manifest/{snapshot.index_manifest}"
    future = {"name": "_FUTURE", "type": ["null", {"type": "array", "items": "long"}], "default": None}
    rewritten(store, index, lambda record: record.update(_FUTURE=[7], _INDEX_TYPE="BTREE", _FILE_NAME="other"), future)
    rewritten(store, f"manifest/{snapshot.base.name}", lambda record: record.update(_FUTURE=[8]), future)
    sized(store)
    assert ids_of(store) == list(range(10))
    table_of(store, seed=2).delete("id = 2")
    state = read_state(store)
    assert state.manifest_lists[0].values[0]["_FUTURE"] == [8] and not state.manifest_lists[1].values
    kept, new = state.index.files
    assert kept.record is not None and kept.record["_FUTURE"] == [7] and kept.type == "BTREE"
    assert new.record is not None and new.record["_FUTURE"] is None and new.row_count == 1
    assert ids_of(store) == [0, 1, *range(3, 10)]


def test_a_scan_reads_what_it_needs() -> None:
    store = made()
    counting = FaultyStore(store)
    table = table_of(counting)
    opened = len(counting.calls)
    assert table.count_rows() == 19 and len(counting.calls) == opened  # metadata alone
    table.delete("id = 100")
    assert not [call for call in counting.calls if call.method.startswith("put")]
    batches = table.to_batches(["id"])
    assert next(iter(batches)).num_rows == 9


def test_a_filter_over_partitions_reads_only_those() -> None:
    store = new_store()
    rows = pa.schema([("id", pa.int64()), ("p", pa.string()), ("n", pa.int32())])
    create(store, rows, partition_keys=["p", "n"])
    for number, (p, n) in enumerate([("a", 1), ("a", 2), ("b", 1), ("b", 2)]):
        append(
            store, pa.table({"id": [number, number + 10], "p": [p] * 2, "n": [n] * 2}, schema=rows), partition=(p, n)
        )

    def searched(filter: str | pc.Expression, *, delete: bool = False) -> tuple[int, list[int]]:
        counting = FaultyStore(store)
        table = table_of(counting, seed=4)
        found = [table.delete(filter).num_deleted_rows] if delete else table.to_table(["id"], filter)["id"].to_pylist()
        return len({call.path for call in counting.calls if call.path.endswith(".parquet")}), found

    assert searched("p = 'a'") == (2, [0, 10, 1, 11])
    assert searched(pc.field("n") > 1) == (2, [1, 11, 3, 13])
    assert searched("p = 'b' and n = 2") == (1, [3, 13])
    assert searched("p is null") == (0, [])
    assert searched("p = 'a' and id > 9") == (2, [10, 11])
    assert searched("(p = 'a' or id = 3) and n = 2 and id > 1") == (2, [11, 3])
    assert searched((pc.field("p") == "a") & (pc.field("id") > 9)) == (2, [10, 11])
    assert searched("true") == (4, [0, 10, 1, 11, 2, 12, 3, 13])
    assert searched("n = 1 and p <> 'a'", delete=True) == (1, [2])
    assert ids_of(store) == [0, 1, 3, 10, 11, 13]


def test_vectors_that_can_not_be() -> None:
    """A position that the data file does not have; a length or a count that the bin contradicts; two of one file."""
    start = made()
    state = read_state(start)
    assert state.snapshot is not None
    index, (file,) = f"manifest/{state.snapshot.index_manifest}", state.index.files
    data, (far,) = encode_vector_file({file.ranges[0].data_file: DeletionVector.of([3, 10])})
    for change, words in [
        ({"f2": far.length, "_CARDINALITY": 2}, "the vector of data-.*: 1 deleted offsets lie beyond the 10 rows"),
        ({"f2": far.length + 1, "_CARDINALITY": None}, "gives length"),
        ({"f2": far.length, "_CARDINALITY": 7}, "counts 7 positions"),
    ]:
        store = copied(start)
        store.put(f"index/{file.name}", data)
        rewritten(store, index, lambda record, change=change: record["_DELETIONS_VECTORS_RANGES"][0].update(change))
        for read in (table_of(store).to_table, lambda store=store: table_of(store).delete("id = 7")):
            with pytest.raises(CorruptTable, match=words) as caught:
                read()
            assert caught.value.path.endswith(file.name)

    def doubled(record: dict[str, Any]) -> None:
        record["_DELETIONS_VECTORS_RANGES"] *= 2

    rewritten(start, index, doubled)
    with pytest.raises(CorruptTable, match="has two deletion vectors"):
        table_of(start).to_table()
