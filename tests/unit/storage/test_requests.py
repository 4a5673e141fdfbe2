"""Requests are counted, by however many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tablewright.storage import open_store
from tablewright.storage.requests import add_requests, count_request, requests_made


def test_each_one_counts() -> None:
    before = requests_made()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: count_request(), range(1000)))
    assert requests_made() == before + 1000


def test_a_store_counts_its_calls() -> None:
    store, before = open_store("memory://requests"), requests_made()
    store.put("a", b"1")
    store.get("a")
    assert requests_made() == before + 2


def test_requests_of_workers_add_up() -> None:
    before = requests_made()
    add_requests(5)
    assert requests_made() - before == 5
