"""The entries and the transaction of new segments."""

from __future__ import annotations

from uuid import UUID

from tests.unit.operations.create_index.tables import snapshot_of, table

from tablewright.format.index import IndexFile
from tablewright.format.index_kinds import BTREE
from tablewright.format.transaction import CreateIndex
from tablewright.indices.building import WrittenIndex
from tablewright.operations.create_index.finish import entry_of, finish_indices
from tablewright.operations.create_index.options import IndexRequest
from tablewright.operations.create_index.plan import plan_index


def test_an_entry_says_what_was_written():
    snapshot = snapshot_of(table())
    (segment,) = plan_index(snapshot, IndexRequest(column="id", kind=BTREE, fragment_ids=(1,))).segments
    written = WrittenIndex(files=(IndexFile(path="x", size_bytes=3),), details_type_url=BTREE.type_url, index_version=0)
    entry = entry_of(segment, written, UUID(int=3), 5, 7_123_456_789)
    assert (entry.name, entry.fields, entry.dataset_version, entry.created_at_ms) == ("id_idx", (0,), 5, 7123)
    assert sorted(entry.coverage or ()) == [1]
    transaction = finish_indices([entry], [], 5, UUID(int=4))
    assert transaction.read_version == 5
    assert transaction.operation == CreateIndex(new_indices=(entry,))


def test_an_untrained_index_covers_nothing_but_says_so():
    snapshot = snapshot_of(table())
    (segment,) = plan_index(snapshot, IndexRequest(column="id", kind=BTREE, train=False)).segments
    entry = entry_of(segment, WrittenIndex(files=(), details_type_url=BTREE.type_url), UUID(int=3), 1, 0)
    assert entry.fragment_bitmap and not entry.coverage
