"""A Paimon table: what is read, and what a delete carries on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.paimon.tables import (
    append,
    copied,
    create,
    ids_of,
    made,
    new_store,
    numbers,
    rewritten,
    sized,
    table_of,
)

import tablewright.paimon as paimon
from tablewright.errors import CorruptTable
from tablewright.format.deletion_vectors.paimon import encode_vector_file
from tablewright.format.row_set import RowSet
from tablewright.paimon.metadata import read_state
from tablewright.testing import FaultyStore


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
    data, (far,) = encode_vector_file({file.ranges[0].data_file: RowSet.of([3, 10])})
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
