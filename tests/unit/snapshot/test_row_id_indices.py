"""Row-id indices are in the budget of the cache: found by the next version, evicted, and never mistaken."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.caches import cached

import tablewright as tw
from tablewright.snapshot import row_id_index
from tablewright.snapshot.row_id_index import RowIdIndex

KIND = "row-id indices"


@pytest.fixture
def reads() -> Iterator[list[int]]:
    """Of how many fragments each index was read."""
    found: list[int] = []
    real = row_id_index.row_id_ranges
    with mock.patch.object(row_id_index, "row_id_ranges", lambda raw: found.append(len(raw)) or real(raw)):
        yield found


def _table(uri: str, first: int = 0) -> tw.LanceDataset:
    rows = pa.table({"id": range(first, first + 20)})
    return tw.write_dataset(rows, uri, mode="overwrite", enable_stable_row_ids=True, max_rows_per_file=5)


def _kept() -> int:
    kinds = tw.cache_stats().kinds
    return kinds[KIND].entries if KIND in kinds else 0


def test_the_next_version_extends_what_the_cache_has(reads: list[int]) -> None:
    with cached("large"):
        ds = _table(f"memory://{uuid4()}")
        assert ds.take_rows([3, 99, 3]).to_pydict() == {"id": [3, 3]}
        assert ds.take_rows([4]).to_pydict() == {"id": [4]}
        assert (reads, _kept(), ds._snapshot._index) == ([4], 1, {})
        stale = ds.checkout_version(1)
        ds.update({"id": "id + 100"}, where="id = 3")
        assert ds.take_rows([3, 4]).to_pydict() == {"id": [103, 4]}
        assert (reads, _kept()) == ([4, 2], 1), "the fragment that lost a row, and the new one"
        assert stale.take_rows([3, 4]).to_pydict() == {"id": [3, 4]}
        assert reads == [4, 2, 1]
        assert tw.cache_stats().kinds[KIND].bytes_used > 4 * row_id_index._PIECE_BYTES


@pytest.mark.parametrize("budget", ["off", "tiny"])
def test_an_index_that_the_cache_does_not_take_stays_with_the_snapshot(
    reads: list[int], budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowIdIndex, "nbytes", 1 << 20)
    with cached(budget):
        ds = _table(f"memory://{uuid4()}")
        first = ds._snapshot.row_id_index
        assert ds._snapshot.row_id_index is first
        assert (reads, _kept(), set(ds._snapshot._index)) == ([4], 0, {"own"})
        stale = ds.checkout_version(1)
        ds.update({"id": "id + 100"}, where="id = 3")
        assert ds._snapshot._index == {"before": first}
        assert ds.take_rows([3, 4]).to_pydict() == {"id": [103, 4]}
        assert (reads, set(ds._snapshot._index)) == ([4, 2], {"own"})
        ds.delete("id = 103")
        assert ds.take_rows([3, 4]).to_pydict() == {"id": [4]}
        assert stale.take_rows([3, 4]).to_pydict() == {"id": [3, 4]}


def test_one_that_was_evicted_is_built_again(reads: list[int]) -> None:
    with cached("large"):
        ds = _table(f"memory://{uuid4()}")
        ds.take_rows([3])
        tw.config(cache_bytes=0)
        tw.config(cache_bytes=1 << 20)
        assert ds.take_rows([3]).to_pydict() == {"id": [3]}
        assert reads == [4, 4]


def test_another_table_at_the_same_address_takes_nothing_over() -> None:
    uri = f"memory://{uuid4()}"
    with cached("large"):
        _table(uri).take_rows([3])
        tw.LanceDataset.drop(uri)
        assert _table(uri, 500).take_rows([3, 7]).to_pydict() == {"id": [503, 507]}


def test_a_loop_of_commits_leaves_one_behind() -> None:
    with cached("large"):
        ds = _table(f"memory://{uuid4()}")
        for number in range(5):
            ds.update({"id": "id + 100"}, where=f"id = {number}")
            assert ds.take_rows([number]).to_pydict() == {"id": [number + 100]}
        assert _kept() == 1
