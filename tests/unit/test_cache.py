from __future__ import annotations

import gc
import os
import random
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from tablewright.cache import Cache, CacheKind, KindStats, process_cache

ENTRY = 256


def test_least_recently_used_leave_first() -> None:
    cache = Cache(bytes_max=3 * ENTRY)
    for key in "abc":
        cache.keep(("kind", key), key.upper(), 0)
    assert cache.find(("kind", "a")) == "A"
    cache.keep(("other", "d"), "D", 0)
    assert [cache.find(("kind", key)) for key in "abc"] == ["A", None, "C"]
    assert cache.find(("other", "d")) == "D"
    stats = cache.stats()
    assert (stats.bytes_used, stats.entries, stats.evictions) == (3 * ENTRY, 3, 1)
    assert stats.kinds["kind"] == KindStats(entries=2, bytes_used=2 * ENTRY, hits=3, misses=1)
    assert stats.kinds["other"] == KindStats(entries=1, bytes_used=ENTRY, hits=1)
    assert stats.hit_rate == 0.8 and Cache(1).stats().hit_rate == 0.0


def test_asking_whether_keys_are_there_is_no_use_of_them() -> None:
    cache = Cache(bytes_max=2 * ENTRY)
    for key in "ab":
        cache.keep(("kind", key), key.upper(), 0)
    assert cache.count_held([("kind", "a"), ("kind", "c"), ("other", "b")]) == 1
    assert (cache.stats().hits, cache.stats().misses) == (0, 0)
    cache.keep(("kind", "c"), "C", 0)
    assert cache.count_held([("kind", key) for key in "abc"]) == 2 and cache.find(("kind", "a")) is None
    words = CacheKind[str]("words of a count")
    words.keep("a", "A", 1)
    assert (words.count_held("ab"), words.count_held("")) == (1, 0)
    words.drop("a")


def test_what_is_too_big_is_not_kept_and_pushes_nothing_out() -> None:
    cache = Cache(bytes_max=1000)
    cache.keep(("kind", "a"), "a", 500)
    cache.keep(("kind", "b"), "b", 1000)
    assert cache.find_all([("kind", "a"), ("kind", "b")]) == ["a", None]


def test_a_value_replaces_another() -> None:
    cache = Cache(bytes_max=2000)
    cache.keep(("kind", "a"), "a", 500)
    cache.keep(("kind", "a"), "b", 700)
    assert cache.find(("kind", "a")) == "b"
    assert cache.stats().bytes_used == 700 + ENTRY
    cache.drop(("kind", "a"))
    cache.drop(("kind", "a"))
    assert cache.stats().bytes_used == cache.stats().entries == 0


def test_the_budget_can_shrink_to_nothing() -> None:
    cache = Cache(bytes_max=10_000)
    for number in range(10):
        cache.keep(("kind", number), number, 100)
    cache.resize(3 * (100 + ENTRY))
    assert [cache.find(("kind", number)) for number in range(10)] == [None] * 7 + [7, 8, 9]
    cache.resize(0)
    cache.keep(("kind", 1), 1, 0)
    assert cache.find(("kind", 1)) is None
    assert cache.stats().bytes_used == cache.stats().entries == 0
    cache.resize(1000)
    cache.keep(("kind", 1), 1, 0)
    assert cache.find(("kind", 1)) == 1
    cache.clear()
    assert cache.stats().entries == 0


def test_values_that_left_are_freed() -> None:
    class Value:
        pass

    cache, value = Cache(bytes_max=1000), Value()
    watched = weakref.ref(value)
    cache.keep(("kind", 1), value, 500)
    del value
    assert watched() is not None
    cache.keep(("kind", 2), "other", 500)
    gc.collect()
    assert watched() is None


def test_threads_share_it() -> None:
    cache = Cache(bytes_max=40 * ENTRY)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(2000):
            key = ("kind", chance.randrange(100))
            found = cache.find(key)
            assert found is None or found == key
            if found is None:
                cache.keep(key, key, chance.randrange(200))
            elif chance.random() < 0.1:
                cache.drop(key)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    stats = cache.stats()
    assert stats.hits + stats.misses == 16_000
    assert stats.bytes_used <= stats.bytes_max
    cache.clear()
    assert cache.stats().bytes_used == 0


def test_kinds_have_their_own_keys() -> None:
    one, two = CacheKind[str]("test one"), CacheKind[str]("test two")
    assert one.get("a", lambda: ("1", 1)) == "1"
    assert two.find("a") is None
    assert one.get("a", lambda: ("2", 1)) == "1"
    one.drop("a")
    assert one.find_all(["a"]) == [None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore")
def test_a_forked_child_begins_empty_also_while_the_lock_is_held() -> None:
    kind = CacheKind[str]("test of a fork")
    kind.keep("a", "parent", 1)
    cache = process_cache()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._lock:
            held.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    child = os.fork()
    if child == 0:
        ok = kind.find("a") is None and cache.stats().entries == 0
        kind.keep("a", "child", 1)
        os._exit(0 if ok and kind.find("a") == "child" else 1)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kind.find("a") == "parent"
