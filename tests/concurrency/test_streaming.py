"""Reads stream: the first batch comes before the rest of the table was touched, and nothing runs after the last."""

from __future__ import annotations

import functools
import itertools
import threading

import pytest

import tablewright as tw
from tablewright.storage import Store
from tablewright.testing import FaultyStore

from .stage import ADDRESS, new_store, numbers, on_stage, set_up

FRAGMENTS = 400  # more than any number of threads reads ahead
ROWS = 2


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)


@functools.cache
def _table() -> Store:
    """Made once: nobody here writes."""
    made = new_store()
    on_stage(made, lambda: tw.write_dataset(numbers(0, ROWS * FRAGMENTS), ADDRESS, max_rows_per_file=ROWS))
    return made


@pytest.fixture
def store(_stage: None) -> FaultyStore:
    return FaultyStore(_table())


def _files_touched(store: FaultyStore) -> int:
    return len({call.path for call in store.calls if call.path.startswith("data/")})


def test_the_first_batch_needs_a_few_files_only(store: FaultyStore) -> None:
    batches = on_stage(store, lambda: iter(tw.dataset(ADDRESS).to_batches()))
    first = next(batches)
    assert first["id"].to_pylist() == list(range(first.num_rows))
    assert 1 <= _files_touched(store) < FRAGMENTS
    rows = sum(batch.num_rows for batch in itertools.chain([first], batches))
    assert rows == ROWS * FRAGMENTS
    assert _files_touched(store) == FRAGMENTS


def test_a_reader_that_stops_early_leaves_the_rest_alone(store: FaultyStore) -> None:
    batches = on_stage(store, lambda: iter(tw.dataset(ADDRESS).to_batches()))
    next(batches)
    close = getattr(batches, "close", None)
    if close is not None:
        close()
    del batches
    touched = _files_touched(store)
    assert touched < FRAGMENTS
    assert on_stage(store, lambda: tw.dataset(ADDRESS).head(3)).num_rows == 3
    assert _files_touched(store) < FRAGMENTS


def test_limit_reads_no_more_than_it_needs(store: FaultyStore) -> None:
    table = on_stage(store, lambda: tw.dataset(ADDRESS).to_table(limit=25, offset=5))
    assert table["id"].to_pylist() == list(range(5, 30))
    assert _files_touched(store) <= 15


def test_counting_reads_no_data_file(store: FaultyStore) -> None:
    assert on_stage(store, lambda: tw.dataset(ADDRESS).count_rows()) == ROWS * FRAGMENTS
    assert _files_touched(store) == 0


def test_no_thread_outlives_its_scan(store: FaultyStore) -> None:
    on_stage(store, lambda: tw.dataset(ADDRESS).to_table())
    before = threading.active_count()
    for _ in range(2):
        on_stage(store, lambda: tw.dataset(ADDRESS).to_table())
    assert threading.active_count() <= before
