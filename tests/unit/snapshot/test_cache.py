from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tablewright.snapshot.cache import ByteCache


def test_oldest_leave_first() -> None:
    cache = ByteCache[str](bytes_max=10)
    cache.put("a", "a", 4)
    cache.put("b", "b", 4)
    assert cache.get("a", lambda: ("new", 4)) == "a"
    cache.put("c", "c", 4)
    assert cache.bytes_used == 8
    assert cache.get("a", lambda: ("new", 4)) == "a"
    assert cache.get("b", lambda: ("new", 2)) == "new"


def test_too_big_is_not_kept() -> None:
    cache = ByteCache[str](bytes_max=10)
    assert cache.put("a", "a", 4) == "a"
    assert cache.get("b", lambda: ("big", 11)) == "big"
    assert cache.bytes_used == 4
    assert cache.get("b", lambda: ("again", 11)) == "again"
    cache.clear()
    assert cache.bytes_used == 0


def test_threads_agree() -> None:
    cache = ByteCache[object](bytes_max=1000)
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda number: cache.get(number % 5, lambda: (object(), 1)), range(500)))
    assert len(set(map(id, values))) == 5
    assert cache.bytes_used == 5
