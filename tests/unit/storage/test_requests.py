"""storage/requests.py: requests of this process, and those of workers for it."""

from __future__ import annotations

from tablewright.storage import open_store
from tablewright.storage.requests import add_requests, requests_made


def test_requests_add_up() -> None:
    store, before = open_store("memory://requests"), requests_made()
    store.put("a", b"x")
    store.get("a")
    assert requests_made() - before == 2
    add_requests(5)
    assert requests_made() - before == 7
