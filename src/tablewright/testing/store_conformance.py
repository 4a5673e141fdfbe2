"""The guarantees of :mod:`tablewright.storage.base` as tests that every store passes.

Subclass, and give a ``store`` fixture that yields an empty store::

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self) -> Store:
            return MyStore(...)

Tests: ``tests/unit/storage/test_conformance.py``.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tablewright.errors import TablewrightError
from tablewright.storage import ObjectNotFound, Store
from tablewright.storage.subtree import delete_files
from tablewright.testing.extra import missing

try:
    import pytest
except ModuleNotFoundError as error:
    raise missing(__name__, "pytest") from error

__all__ = ["StoreConformance"]


class StoreConformance:
    """One test per guarantee. The store must be empty at the start of each."""

    writers = 8
    """How many threads race for one name."""

    def test_reads_what_was_put(self, store: Store) -> None:
        for data in (b"", b"x", bytes(range(256)) * 40):
            store.put("data/a.bin", data)
            assert store.get("data/a.bin") == data
            assert store.head("data/a.bin").size == len(data)

    def test_put_replaces(self, store: Store) -> None:
        store.put("a", b"long long ago")
        store.put("a", b"new")
        assert store.get("a") == b"new"

    def test_large_objects(self, store: Store) -> None:
        data = bytes(range(256)) * (6 * 1024 * 4)  # 6 MiB: beyond the size where clients begin to split uploads
        store.put("big", data)
        assert store.get("big") == data
        assert store.put_if_absent("big2", data)
        assert store.get("big2") == data

    def test_ranges_are_cut_at_the_end(self, store: Store) -> None:
        store.put("a", b"0123456789")
        assert store.get_range("a", 2, 5) == b"234"
        assert store.get_range("a", 8, 100) == b"89"
        assert store.get_range("a", 10, 20) == b""
        assert store.get_range("a", 50, 60) == b""
        assert store.get_range("a", 4, 4) == b""

    def test_put_if_absent_creates_once(self, store: Store) -> None:
        assert store.put_if_absent("_versions/1.manifest", b"first") is True
        assert store.put_if_absent("_versions/1.manifest", b"second") is False
        assert store.get("_versions/1.manifest") == b"first"

    def test_put_if_absent_respects_put_and_delete(self, store: Store) -> None:
        store.put("a", b"put")
        assert store.put_if_absent("a", b"x") is False
        store.delete("a")
        assert store.put_if_absent("a", b"again") is True
        assert store.get("a") == b"again"

    def test_of_many_writers_one_creates(self, store: Store) -> None:
        for round_number in range(5):
            path, barrier = f"_versions/{round_number}.manifest", threading.Barrier(self.writers)

            def write(number: int, path: str = path, barrier: threading.Barrier = barrier) -> bool:
                barrier.wait()
                return store.put_if_absent(path, b"%d" % number * 1000)

            with ThreadPoolExecutor(self.writers) as pool:
                created = list(pool.map(write, range(self.writers)))
            assert created.count(True) == 1
            assert store.get(path) == b"%d" % created.index(True) * 1000

    def test_losing_leaves_nothing(self, store: Store) -> None:
        assert store.put_if_absent("_versions/1.manifest", b"first")
        assert not store.put_if_absent("_versions/1.manifest", b"second")
        assert [info.path for info in store.list("")] == ["_versions/1.manifest"]

    def test_paths_stay_inside(self, store: Store) -> None:
        store.put("data/a", b"x")
        for path in ("../a", "data/../data/a", "data/./a"):
            for act in (store.get, store.head, store.delete, lambda path: store.put(path, b"y")):
                with pytest.raises(TablewrightError):
                    act(path)
        assert [info.path for info in store.list("")] == ["data/a"]

    def test_locations_print_no_options(self, store: Store) -> None:
        assert not [value for value in store.location.storage_options.values() if repr(value) in repr(store.location)]

    def test_readers_see_whole_objects(self, store: Store) -> None:
        values = [bytes([number]) * 100_000 for number in range(4)]
        store.put("a", values[0])

        def write() -> None:
            for value in values * 5:
                store.put("a", value)

        with ThreadPoolExecutor(1) as pool:
            writes = pool.submit(write)
            while not writes.done():
                assert store.get("a") in values
            writes.result()

    def test_absent_objects(self, store: Store) -> None:
        store.put("data/there", b"x")
        for path in ("a", "data/a", "data", "no/such/place"):
            with pytest.raises(ObjectNotFound):
                store.get(path)
            with pytest.raises(ObjectNotFound):
                store.get_range(path, 0, 1)
            with pytest.raises(ObjectNotFound):
                store.get_range(path, 0, 0)
            with pytest.raises(ObjectNotFound):
                store.head(path)

    def test_absence_is_a_key_error_of_ours(self, store: Store) -> None:
        with pytest.raises(KeyError) as caught:
            store.get("a")
        assert isinstance(caught.value, TablewrightError)
        assert "a" in str(caught.value)

    def test_delete(self, store: Store) -> None:
        store.put("a/b", b"x")
        store.delete("a/b")
        store.delete("a/b")
        store.delete("never/was")
        with pytest.raises(ObjectNotFound):
            store.get("a/b")

    def test_many_are_deleted_at_once(self, store: Store) -> None:
        paths = [f"data/{number}/x#y {number}" for number in range(1200)]
        for path in (*paths[:20], *paths[-20:], "data/kept"):
            store.put(path, b"x")
        assert not delete_files(store, paths)
        assert not delete_files(store, [])
        assert [info.path for info in store.list("")] == ["data/kept"]

    def test_list_is_recursive_and_relative(self, store: Store) -> None:
        paths = {"data/a", "data/b", "data/deep/er/c", "database/d", "_versions/1.manifest", "e"}
        for path in paths:
            store.put(path, path.encode())
        assert {info.path for info in store.list("data")} == {"data/a", "data/b", "data/deep/er/c"}
        assert {info.path for info in store.list("data/")} == {"data/a", "data/b", "data/deep/er/c"}
        assert {info.path for info in store.list("")} == paths
        assert all(info.size == len(info.path) for info in store.list(""))

    def test_list_of_nothing(self, store: Store) -> None:
        assert list(store.list("")) == []
        assert list(store.list("data")) == []
        store.put("database/x", b"")
        assert list(store.list("data")) == []

    def test_list_of_many(self, store: Store) -> None:
        paths = {f"many/{number:04}" for number in range(1200)}
        with ThreadPoolExecutor(self.writers) as pool:
            list(pool.map(lambda path: store.put(path, b""), paths))
        assert {info.path for info in store.list("many")} == paths

    def test_list_follows_puts_and_deletes(self, store: Store) -> None:
        store.put("d/a", b"1")
        assert store.put_if_absent("d/b", b"2")
        assert {info.path for info in store.list("d")} == {"d/a", "d/b"}
        store.delete("d/a")
        assert {info.path for info in store.list("d")} == {"d/b"}

    def test_modification_times(self, store: Store) -> None:
        store.put("a", b"x")
        (listed,) = store.list("")
        now_ns = time.time_ns()
        assert listed.path == "a"
        assert abs(listed.modified_ns - now_ns) < 60_000_000_000
        head = store.head("a")
        assert (head.path, head.size) == (listed.path, listed.size)
        assert abs(head.modified_ns - listed.modified_ns) < 1_000_000_000  # some stores answer in whole seconds here

    def test_unusual_names(self, store: Store) -> None:
        for path in ("with space/ü", "%2F.json", "a+b=c&d", "tree/b%2Fx/@y", "q?x"):
            store.put(path, path.encode())
            assert store.get(path) == path.encode()
            assert path in {info.path for info in store.list("")}
            store.delete(path)
            assert path not in {info.path for info in store.list("")}

    def test_location_names_the_store(self, store: Store) -> None:
        assert store.location.uri
        assert not store.location.uri.endswith("/")
        codec = store.codec_location("data/a.lance")
        assert codec is None or codec.uri == f"{store.location.uri}/data/a.lance"
