"""Metadata of somebody who means harm, or of a disk that forgets: our errors that name the file, nothing else.

Names that lead out of the table's directory are never followed. A damaged bit may pass unnoticed (a letter of a name
that nobody reads); if it is noticed, it is one of our errors. Seeds are fixed; once, every bit was tried by hand.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from tests.depth import deep
from tests.unit.paimon.tables import append, copied, create, new_store, parquet

from tablewright.describe import describe_file
from tablewright.errors import CorruptTable, InternalError, TablewrightError
from tablewright.paimon.format.documents import Fields, json_object
from tablewright.paimon.format.hash_file import encode_hashes
from tablewright.paimon.format.index_manifest import HASH, IndexFile, encode_index_manifest
from tablewright.paimon.metadata import TableState, read_state
from tablewright.paimon.opening import open_in
from tablewright.storage import Store, open_store
from tablewright.storage.base import ObjectNotFound
from tablewright.testing import FaultyStore, seeded_world

OUTSIDE = ["../../../secret.parquet", "", "/etc/passwd", ".", "..", "a\0b", "a//b", "a/../../b", "x\n", "\x7f"]


def staged(store: Store | None = None) -> Store:
    """Two partitions of four rows, one deleted of each, and a file of key hashes; Avro is not compressed."""
    store = new_store() if store is None else store
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("n", pa.int32())])
    create(store, schema, partition_keys=["p"], options={"manifest.compression": "null"})
    for p in "ab":
        rows = pa.table({"id": range(4), "p": [p] * 4, "n": [7] * 4}, schema=schema)
        append(store, rows, partition=(p,), stats=["id", "n"])
    open_in(seeded_world(store, 1)).delete("id = 3")
    state = read_state(store)
    assert state.snapshot is not None
    data = encode_hashes([1, -2, 3])
    store.put("index/index-hashes-0", data)
    partition = state.files[0].partition
    file = IndexFile(type=HASH, partition=partition, bucket=0, name="index-hashes-0", size=len(data), row_count=3)
    path = f"manifest/{state.snapshot.index_manifest}"
    store.put(path, encode_index_manifest(state.index.replaced([], [file]), "null"))
    return store


def documents(state: TableState) -> dict[str, list[str]]:
    """The paths of a table's metadata, by kind."""
    snapshot = state.snapshot
    assert snapshot is not None
    manifests = [record["_FILE_NAME"] for records in state.manifest_lists for record in records.values]
    return {
        "schema": ["schema/schema-0"],
        "snapshot": [f"snapshot/snapshot-{snapshot.id}"],
        "list": [f"manifest/{snapshot.base.name}", f"manifest/{snapshot.delta.name}"],
        "manifest": [f"manifest/{name}" for name in manifests],
        "index": [f"manifest/{snapshot.index_manifest}"],
        "index file": [f"index/{file.name}" for file in state.index.files],
    }


def every_reader(store: Store, path: str) -> list[TablewrightError]:
    """What all who read a table say about it. Any error but ours comes through."""
    errors: list[TablewrightError] = []

    def heard(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (InternalError, ObjectNotFound):
            raise
        except TablewrightError as error:
            errors.append(error)
            return None

    heard(lambda: describe_file(store.get(path), path))
    table = heard(lambda: open_in(seeded_world(store, 9)))
    if table is not None:
        for call in (table.files, table.to_table, table.deletion_vectors, table.buckets, table.count_rows):
            heard(call)
        heard(lambda: table.to_table(["n"], "id > 1 and p = 'a'"))
        heard(lambda: table.delete("id = 1", engine="local", conflict_retries=0))
    return errors


def rewritten(store: Store, path: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the first record of an Avro file, and forget or put right what others have noted of its size."""
    reader = fastavro.reader(io.BytesIO(store.get(path)))
    records = list(reader)
    change(records[0])
    sink = io.BytesIO()
    fastavro.writer(sink, reader.writer_schema, records)
    found = documents(read_state(store))
    store.put(path, sink.getvalue())
    if path in found["manifest"]:
        for of_lists in found["list"]:
            lists = fastavro.reader(io.BytesIO(store.get(of_lists)))
            entries = [{**entry, "_FILE_SIZE": store.head(f"manifest/{entry['_FILE_NAME']}").size} for entry in lists]
            sink = io.BytesIO()
            fastavro.writer(sink, lists.writer_schema, entries)
            store.put(of_lists, sink.getvalue())
    noted = json.loads(store.get(found["snapshot"][0]))
    kept = {key: value for key, value in noted.items() if not key.endswith("ListSize")}
    store.put(found["snapshot"][0], json.dumps(kept).encode())


def changed(store: Store, path: str, **change: Any) -> None:
    store.put(path, json.dumps({**json.loads(store.get(path)), **change}).encode())


def test_names_that_lead_elsewhere(tmp_path: Path) -> None:
    """On a disk, where such a name would find something: a data file beside the table, with the table's columns."""
    store = open_store(tmp_path / "db.db" / "table")
    start = staged(store)
    secret = open_in(seeded_world(start)).to_table()
    (tmp_path / "db.db" / "secret.parquet").write_bytes(parquet(secret.slice(0, 4)))
    files = {info.path: start.get(info.path) for info in start.list("")}
    found = documents(read_state(start))
    snapshot, manifest, index = found["snapshot"][0], found["manifest"][0], found["index"][0]
    cases: list[tuple[str, Callable[[str], Any]]] = [
        (snapshot, lambda name: changed(store, snapshot, baseManifestList=name)),
        (snapshot, lambda name: changed(store, snapshot, deltaManifestList=name)),
        (snapshot, lambda name: changed(store, snapshot, indexManifest=name)),
        (found["list"][0], lambda name: rewritten(store, found["list"][0], lambda each: each.update(_FILE_NAME=name))),
        (manifest, lambda name: rewritten(store, manifest, lambda each: each["_FILE"].update(_FILE_NAME=name))),
        (index, lambda name: rewritten(store, index, lambda each: each.update(_FILE_NAME=name))),
    ]
    for path, change in cases:
        for name in OUTSIDE:
            change(name)
            watched = FaultyStore(store)
            with pytest.raises(CorruptTable, match="which names no file of its directory") as caught:
                open_in(seeded_world(watched)).to_table()
            assert caught.value.path.endswith(path), (path, name)
            assert not [call for call in watched.calls if ".." in call.path or not call.path]
            for changed_path, data in files.items():
                store.put(changed_path, data)
    assert open_in(seeded_world(store)).count_rows() == 6


def test_addresses_that_are_none() -> None:
    """External paths may lie anywhere, where Paimon allows them, but they have to be addresses."""
    start = staged()
    found = documents(read_state(start))
    manifest, index = found["manifest"][0], found["index"][0]
    for address in (
        "",
        "x",
        "../x",
        "s3://",
        "s3://bucket",
        "file:",
        "~/x",
        "/a/../b",
        "memory://x//y",
        "memory://x/\0",
    ):
        for path in (manifest, index):
            store = copied(start)
            rewritten(store, path, lambda each, address=address: each.get("_FILE", each).update(_EXTERNAL_PATH=address))
            with pytest.raises(CorruptTable, match=r"_EXTERNAL_PATH is .* which is no address of a file") as caught:
                open_in(seeded_world(store))
            assert caught.value.path.endswith(path)
    problems: list[str] = []
    for address in ("/a/b", "file:/a/b", "file:///a/b", "s3://bucket/a/b", "memory://a/b", "oss://bucket/a b/ü%20"):
        assert Fields({"x": address}, problems).address_or_none("x") == address
    assert not problems


def test_partitions_and_directories_that_are_none() -> None:
    start = staged()
    found = documents(read_state(start))
    for path in (found["manifest"][0], found["index"][0]):
        for partition in (b"", bytes(12), b"\0\0\0\1" + bytes(8), b"\0\0\0\1" + b"\xff" * 16):
            store = copied(start)
            rewritten(store, path, lambda each, partition=partition: each.update(_PARTITION=partition))
            errors = every_reader(store, path)
            assert errors and all(isinstance(error, CorruptTable) and error.path.endswith(path) for error in errors)
    for directory in ("../..", "/../x", "a/../../b", "a\0b"):
        store = copied(start)
        options = json.loads(store.get("schema/schema-0"))["options"]
        changed(store, "schema/schema-0", options={**options, "data-file.path-directory": directory})
        with pytest.raises(CorruptTable, match=r"data-file\.path-directory is .* which is no directory"):
            open_in(seeded_world(store))


def test_numbers_that_can_not_be() -> None:
    """A file of so many rows is not made room for before it is seen to have them; an offset is no file's."""
    start = staged()
    found = documents(read_state(start))
    for rows in (5, 2**31, 2**63 - 1):
        store = copied(start)
        rewritten(store, found["manifest"][0], lambda each, rows=rows: each["_FILE"].update(_ROW_COUNT=rows))
        with pytest.raises(CorruptTable, match=f"has 4 rows where its manifest counts {rows}"):
            open_in(seeded_world(store)).to_table()
    schema = fastavro.reader(io.BytesIO(start.get(found["index"][0]))).writer_schema
    wide = json.loads(json.dumps(schema).replace('"name": "f1", "type": "int"', '"name": "f1", "type": "long"'))
    records = list(fastavro.reader(io.BytesIO(start.get(found["index"][0]))))
    records[0]["_DELETIONS_VECTORS_RANGES"][0]["f1"] = 2**62
    sink = io.BytesIO()
    fastavro.writer(sink, wide, records)
    start.put(found["index"][0], sink.getvalue())
    with pytest.raises(CorruptTable, match="f1 is 4611686018427387904, more than 2147483647"):
        open_in(seeded_world(start))


def test_documents_that_no_writer_makes() -> None:
    deep_text = b'{"a":' + b"[" * 200 + b"]" * 200 + b"}"
    for data, words in [
        (deep_text, "nested more than 128 times"),
        (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, "not JSON|nested more"),
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
    ]:
        with pytest.raises(CorruptTable, match=words):
            json_object(data, "f")
    assert json_object(b'{"a": "\\ud83d\\ude00"}', "f") == {"a": "\U0001f600"}
    store = staged()
    changed(store, documents(read_state(store))["snapshot"][0], timeMillis=2**63 - 1)
    path = documents(read_state(store))["snapshot"][0]
    assert dict(describe_file(store.get(path), path).facts)["committed"] == f"{(2**63 - 1) * 1000} µs since 1970"
    rewritten(store, documents(read_state(store))["list"][0], lambda each: each.update(_NUM_ADDED_FILES=3))
    changed(store, path, snapshotHint=None)
    assert not every_reader(store, path)


def test_records_that_can_not_be_written_again() -> None:
    """What a delete carries on has to fit: else it says which file it is from, and leaves nothing behind."""
    store = staged()
    path = documents(read_state(store))["list"][0]
    rewritten(store, path, lambda each: None)
    reader = fastavro.reader(io.BytesIO(store.get(path)))
    schema = json.loads(json.dumps(reader.writer_schema))
    field = next(each for each in schema["fields"] if each["name"] == "_NUM_ADDED_FILES")
    field["type"] = "string"
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{**record, "_NUM_ADDED_FILES": "many"} for record in reader])
    store.put(path, sink.getvalue())
    before = {info.path for info in store.list("")}
    with pytest.raises(CorruptTable, match="a record of it can't be written again") as caught:
        open_in(seeded_world(store, 5)).delete("id = 1")
    assert caught.value.path.endswith(path) and {info.path for info in store.list("")} == before


VALUES: list[Any] = ["", "../x", "a\0b", 0, -1, 2**63, 10**400, 1.5, True, None, [], [1], {}, {"a": 1}, "DECIMAL(99)"]


def test_every_value_of_a_document_is_another() -> None:
    start = staged()
    found = documents(read_state(start))
    places = [(path, key) for path in (*found["schema"], *found["snapshot"]) for key in json.loads(start.get(path))]
    cases = [(path, key, value) for path, key in places for value in VALUES]
    for number in np.random.default_rng(4).permutation(len(cases))[: deep(100, len(cases))]:
        path, key, value = cases[number]
        store = copied(start)
        changed(store, path, **{key: value})
        every_reader(store, path)


def test_a_bit_is_flipped() -> None:
    start = staged()
    state = read_state(start)
    random, noticed = np.random.default_rng(8), 0
    for paths in documents(state).values():
        for path in paths:
            whole = start.get(path)
            for bit in random.permutation(len(whole) * 8)[: deep(10, 1000)].tolist():
                store = copied(start)
                damaged = bytearray(whole)
                damaged[bit // 8] ^= 1 << bit % 8
                store.put(path, bytes(damaged))
                noticed += bool(every_reader(store, path))
    assert noticed > 20
