from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.cache import process_cache
from tablewright.errors import CorruptTable, StorageError
from tablewright.format.fragment import DeletionFileType, Fragment
from tablewright.format.naming import HINT_PATH, deletion_path, manifest_path, transaction_file_path
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Append, Transaction
from tablewright.snapshot import (
    files,
    latest_version,
    read_deletion_vector,
    read_manifest,
    read_transaction,
    write_deletion_vector,
    write_hint,
    write_transaction,
)
from tablewright.storage import ObjectNotFound, Store, identity, open_store
from tablewright.testing import CrashBefore, FailBefore, FaultyStore, SimulatedCrash, memory_world, on_call


@pytest.fixture
def table(tmp_path: Path) -> Store:
    uri = str(tmp_path / "t")
    tw.write_dataset(pa.table({"a": range(20_000)}), uri)
    tw.dataset(uri).delete("a % 1000 = 7")
    return open_store(uri)


def latest(store: Store) -> files.ManifestFile:
    entry = latest_version(store)
    assert entry is not None
    return read_manifest(store, entry)


# ------------------------------------------------------------------------------------------------- transactions
def test_inline_transaction_comes_first(table: Store) -> None:
    file = latest(table)
    transaction = read_transaction(table, file)
    assert transaction is not None and transaction == file.transaction
    assert transaction.operation.name == "Delete"


def test_the_file_stands_in(table: Store) -> None:
    file = latest(table)
    for without in (
        replace(file, transaction_bytes=None),
        replace(file, transaction_bytes=b""),
        replace(file, transaction_bytes=b"\xff garbage"),
    ):
        assert read_transaction(table, without) == file.transaction
    table.delete(transaction_file_path(file.manifest.transaction_file))
    assert read_transaction(table, replace(file, transaction_bytes=None)) is None
    with pytest.raises(CorruptTable, match="inline transaction"):
        read_transaction(table, replace(file, transaction_bytes=b"\xff garbage"))
    unnamed = replace(file, transaction_bytes=None, manifest=replace(file.manifest, transaction_file=""))
    assert read_transaction(table, unnamed) is None


def test_transactions_are_written_under_their_name() -> None:
    store = memory_world().store
    transaction = Transaction(read_version=3, uuid="c0ffee", operation=Append(fragments=()))
    assert write_transaction(store, transaction) == "3-c0ffee.txn"
    assert [info.path for info in store.list("")] == ["_transactions/3-c0ffee.txn"]


# ---------------------------------------------------------------------------------------------------- manifests
def test_damaged_manifests_name_the_file(table: Store) -> None:
    entry = latest_version(table)
    assert entry is not None
    data = table.get(entry.path)
    for damaged in (b"", data[:-1], data[:50], b"not a manifest at all", data[:-16] + b"\0" * 16):
        table.put(entry.path, damaged)
        with pytest.raises(CorruptTable) as caught:
            read_manifest(table, entry)
        assert caught.value.path == f"{table.location.uri}/{entry.path}"
    table.delete(entry.path)
    with pytest.raises(ObjectNotFound):
        read_manifest(table, entry)


# --------------------------------------------------------------------------------------------------------- hint
def test_hint(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    write_hint(store, 7)
    assert store.get(HINT_PATH) == b'{"version":7}'


def test_a_hint_never_fails_a_commit() -> None:
    store = FaultyStore(memory_world().store, on_call(FailBefore(), path=HINT_PATH))
    write_hint(store, 7)
    assert len(store.calls) == 1
    with pytest.raises(SimulatedCrash):
        write_hint(FaultyStore(memory_world().store, on_call(CrashBefore())), 7)


def test_object_stores_need_no_hint() -> None:
    store = memory_world().store
    write_hint(store, 7)
    assert list(store.list("")) == []


# ---------------------------------------------------------------------------------------------------- deletions
def fragment(vector: RowSet, store: Store, file_type: DeletionFileType, rows: int = 100_000) -> Fragment:
    deletion, _ = write_deletion_vector(store, 3, vector, 12, 345, file_type)
    return Fragment(id=3, files=(), physical_rows=rows, deletion=deletion)


@pytest.mark.parametrize("file_type", DeletionFileType)
def test_round_trip(file_type: DeletionFileType, tmp_path: Path) -> None:
    vector = RowSet.of(np.arange(0, 9000, 3))
    for store in (memory_world().store, open_store(tmp_path)):
        deleted = fragment(vector, store, file_type)
        assert deleted.deletion is not None and deleted.deletion.num_deleted_rows == 3000
        _, size = write_deletion_vector(store, 3, vector, 12, 345, file_type)
        assert [found.size for found in store.list("_deletions")] == [size]
        suffix = "bin" if file_type is DeletionFileType.BITMAP else "arrow"
        assert [info.path for info in store.list("")] == [f"_deletions/3-12-345.{suffix}"]
        assert read_deletion_vector(store, deleted) == vector
    assert len(read_deletion_vector(store, Fragment(id=1, files=(), physical_rows=5))) == 0


def test_reads_are_cached_per_process(table: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 0)
    deleted = latest(table).manifest.fragments[0]
    process_cache().clear()
    first = read_deletion_vector(table, deleted)
    assert len(first) == 20 and 1007 in first
    assert deleted.deletion is not None
    assert read_deletion_vector(open_store(table.location.uri), deleted) is first
    assert read_deletion_vector(table, deleted, fresh=True) is not first
    assert process_cache().stats().kinds["deletion vectors"].bytes_used > 0
    table.delete(deletion_path(deleted.id, deleted.deletion))
    with pytest.raises(CorruptTable, match="missing"):
        read_deletion_vector(table, deleted)


def test_stores_of_tests_are_not_cached() -> None:
    store = FaultyStore(memory_world().store)
    deleted = fragment(RowSet.of([1]), store, DeletionFileType.BITMAP)
    read_deletion_vector(store, deleted)
    read_deletion_vector(store, deleted)
    assert [call.method for call in store.calls] == ["put", "get", "get"]


def test_what_does_not_fit_the_fragment_is_refused() -> None:
    store = memory_world().store
    beyond = fragment(RowSet.of([1, 200]), store, DeletionFileType.BITMAP, rows=100)
    with pytest.raises(CorruptTable, match="beyond the 100 rows"):
        read_deletion_vector(store, beyond)
    deleted = fragment(RowSet.of([1, 2]), store, DeletionFileType.BITMAP)
    assert deleted.deletion is not None
    miscounted = deleted.with_deletion(replace(deleted.deletion, num_deleted_rows=3))
    with pytest.raises(CorruptTable, match="2 rows are deleted where the fragment says 3"):
        read_deletion_vector(store, miscounted)
    uncounted = deleted.with_deletion(replace(deleted.deletion, num_deleted_rows=0))
    assert len(read_deletion_vector(store, uncounted)) == 2


def test_garbage_and_failures() -> None:
    store = memory_world().store
    deleted = fragment(RowSet.of([1]), store, DeletionFileType.ARROW_ARRAY)
    assert deleted.deletion is not None
    store.put(deletion_path(3, deleted.deletion), b"garbage")
    with pytest.raises(CorruptTable, match=r"_deletions/3-12-345\.arrow"):
        read_deletion_vector(store, deleted)
    with pytest.raises(StorageError):
        read_deletion_vector(FaultyStore(store, on_call(FailBefore())), deleted)


def test_a_manifest_of_many_gigabytes_is_not_read(tmp_path: Path) -> None:
    """A sparse file costs nothing on disk; reading it would take all memory."""
    path = tmp_path / "t" / manifest_path(1)
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(64 * 2**30)
    with pytest.raises(CorruptTable, match="68719476736 bytes, and a manifest at most"):
        latest(open_store(tmp_path / "t"))
