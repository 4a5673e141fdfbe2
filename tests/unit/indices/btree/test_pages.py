"""The files of an index: batches of whole pages, bounds of each, and nothing left after a failure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from tablewright.indices.btree import pages
from tablewright.indices.btree.merge import Block
from tablewright.indices.btree.pages import write_pages
from tablewright.indices.files import read_index_file
from tablewright.storage import SubtreeStore
from tablewright.storage.base import Store
from tablewright.testing.worlds import memory_world


def block(values: list[int | None], first_id: int = 0) -> Block:
    return Block(pa.array(values, pa.int64()), np.arange(first_id, first_id + len(values), dtype=np.uint64))


def test_blocks_of_any_size_become_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_BATCH_ROWS", 4)
    store = memory_world().store
    blocks = [block([None] * 3), block([]), block([1]), block([2, 3, 4, 5, 6, 7, 8], 4)]
    written = write_pages(store, "_indices/a", pa.int64(), blocks, 2)
    assert read_index_file(store, "_indices/a", "page_data.lance").rows["values"].to_pylist() == [
        *(None, None, None),
        *range(1, 9),
    ]
    lookup = read_index_file(store, "_indices/a", "page_lookup.lance").rows
    assert lookup["min"].to_pylist() == [None, None, 2, 4, 6, 8]
    assert lookup["max"].to_pylist() == [None, 1, 3, 5, 7, 8]
    assert lookup["null_count"].to_pylist() == [2, 1, 0, 0, 0, 0]
    sizes = {entry.path.rpartition("/")[2]: entry.size for entry in store.list("_indices/a")}
    assert {file.path: file.size_bytes for file in written.files} == sizes
    assert (written.index_version, written.details_type_url) == (0, "/lance.table.BTreeIndexDetails")


def test_large_values_make_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_BATCH_BYTES", 100)
    found = list(pages._whole_pages([block(list(range(9)))] * 4, 4))
    assert [len(each) for each in found] == [16, 20]


def test_no_rows_make_two_empty_files() -> None:
    store = memory_world().store
    write_pages(store, "_indices/a", pa.string(), [])
    for name in ("page_data.lance", "page_lookup.lance"):
        assert read_index_file(store, "_indices/a", name).rows.num_rows == 0


class Refusing(SubtreeStore):
    """A store that takes all files but one."""

    refused = ""

    def put(self, path: str, data: bytes) -> None:
        if path.endswith(self.refused):
            raise RuntimeError("full")
        super().put(path, data)


@pytest.mark.parametrize("name", ["page_data.lance", "page_lookup.lance"])
def test_a_failure_leaves_no_file(name: str) -> None:
    store = Refusing(memory_world().store, "below")
    store.refused = name
    with pytest.raises(RuntimeError, match="full"):
        write_pages(store, "_indices/a", pa.int64(), [block([1, 2])])
    assert _names(store) == []


def test_a_failing_source_leaves_no_file() -> None:
    store = memory_world().store

    def failing() -> Iterator[Block]:
        yield block([1])
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        write_pages(store, "_indices/a", pa.int64(), failing())
    assert _names(store) == []


def _names(store: Store) -> list[str]:
    return [entry.path for entry in store.list("_indices/a")]
