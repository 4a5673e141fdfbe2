from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tablewright.errors import TableNotFound, VersionNotFound
from tablewright.format.naming import HINT_PATH, detached_path, encode_hint, manifest_path
from tablewright.snapshot import find_version, latest_version, list_versions, probe_latest
from tablewright.snapshot.locate import uses_hint
from tablewright.storage import Store, SubtreeStore, open_store
from tablewright.testing import FaultyStore, Pause, StaleList, memory_world, on_call


@pytest.fixture(params=["memory", "local", "faulty"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(tmp_path / "table")
    store = memory_world().store
    return FaultyStore(store) if request.param == "faulty" else store


def put(store: Store, *versions: int, v2: bool = True) -> None:
    for version in versions:
        store.put(manifest_path(version, v2=v2), b"x" * version)


@pytest.mark.parametrize("v2", [True, False])
def test_versions_of_either_scheme(store: Store, v2: bool) -> None:
    assert list_versions(store) == ()
    assert latest_version(store) is None
    put(store, 2, 10, 1, 9, v2=v2)
    entries = list_versions(store)
    assert [(entry.version, entry.size, entry.v2) for entry in entries] == [
        (1, 1, v2),
        (2, 2, v2),
        (9, 9, v2),
        (10, 10, v2),
    ]
    assert latest_version(store) == entries[-1]
    assert find_version(store, 9) == entries[2]
    assert find_version(store, 3) is None
    assert find_version(store, 0) is None


def test_strangers_in_the_directory(store: Store) -> None:
    put(store, 1)
    for name in ("latest_version_hint.json", "x.manifest", "1.manifest.bak", "deep/18446744073709551610.manifest"):
        store.put(f"_versions/{name}", b"")
    detached = 1 << 63 | 5
    store.put(detached_path(detached), b"")
    assert [entry.version for entry in list_versions(store)] == [1]
    latest = latest_version(store)
    assert latest is not None and latest.version == 1
    found = find_version(store, detached)
    assert found is not None and found.path == detached_path(detached)


def test_migration_under_way(store: Store) -> None:
    put(store, 1, 2, 3, v2=False)
    put(store, 1, 2)
    assert [(entry.version, entry.v2) for entry in list_versions(store)] == [(1, True), (2, True), (3, False)]
    found = find_version(store, 2)
    assert found is not None and found.v2


def test_ordered_stores_read_one_page() -> None:
    store = memory_world().store
    put(store, *range(1, 30))
    counting = _Counting(store)
    latest = latest_version(counting)
    assert latest is not None and latest.version == 29
    assert counting.seen == 1


class _Counting(SubtreeStore):
    """Counts what is taken from a listing."""

    def __init__(self, store: Store) -> None:
        super().__init__(open_store("memory://"), store.location.uri.removeprefix("memory://"))
        self.seen = 0

    def list(self, prefix):  # type: ignore[no-untyped-def]
        for info in super().list(prefix):
            self.seen += 1
            yield info


class Slow(FaultyStore):
    """A store that answers slowly: requests that do not depend on each other come at the same time."""

    answers_slowly = True


class TestProbing:
    @pytest.fixture(params=[FaultyStore, Slow])
    def store(self, request: pytest.FixtureRequest) -> FaultyStore:
        store: FaultyStore = request.param(memory_world().store)
        return store

    @pytest.mark.parametrize("hint", [None, b"junk", encode_hint(1), encode_hint(4), encode_hint(5), encode_hint(99)])
    @pytest.mark.parametrize("v2", [True, False])
    def test_any_hint_will_do(self, store: FaultyStore, hint: bytes | None, v2: bool) -> None:
        put(store, 1, 2, 3, 4, 5, v2=v2)
        if hint is not None:
            store.put(HINT_PATH, hint)
        for at_least in (1, 3, 5):
            assert probe_latest(store, at_least).version == 5

    def test_a_hint_too_low_does_not_mislead(self, store: FaultyStore) -> None:
        put(store, 5, 10)  # 5 is tagged, a stalled writer wrote the hint late
        store.put(HINT_PATH, encode_hint(5))
        assert probe_latest(store, 5).version == 10

    def test_a_long_way_is_listed(self, store: FaultyStore) -> None:
        put(store, *range(1, 100))
        store.put(HINT_PATH, encode_hint(1))
        before = len(store.calls)
        assert probe_latest(store, 1).version == 99
        assert len(store.calls) - before < 60

    def test_gaps_do_not_mislead(self, store: FaultyStore) -> None:
        put(store, 5, 500)  # 5 is tagged, what lay between was cleaned up
        assert probe_latest(store, 5).version == 500

    @pytest.mark.parametrize("kind", [FaultyStore, Slow])
    def test_a_stale_listing_does_not_mislead(self, kind: type[FaultyStore]) -> None:
        inner = memory_world().store
        put(inner, 1, 2, 3, 4, 5)
        store = kind(inner, on_call(StaleList(lambda path: path in map(manifest_path, (4, 5))), method="list"))
        assert probe_latest(store, 3).version == 5
        store = kind(inner, on_call(StaleList(lambda path: path != manifest_path(1)), method="list"))
        assert probe_latest(store, 3).version == 5

    def test_a_slow_store_is_asked_once(self) -> None:
        """The listing and the looks at both names of the next version are under way together."""
        inner = memory_world().store
        put(inner, 1, 2, 3)
        barrier = threading.Barrier(3)
        store = Slow(inner, on_call(Pause(lambda _: barrier.wait(timeout=20) and None)))
        assert probe_latest(store, 3).version == 3
        assert len(store.calls) == 3

    def test_a_local_writer_that_knows_the_newest_version(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The names are enough, unless another version is the newest: then that is looked at."""
        store = open_store(tmp_path / "table")
        put(store, 1, 2, 3)
        known = find_version(store, 3)
        assert known is not None
        with monkeypatch.context() as patched:
            patched.setattr("tablewright.storage.local.LocalStore.head", lambda *_: pytest.fail("a file was looked at"))
            assert probe_latest(store, 3, known) is known
        put(store, 4)
        assert probe_latest(store, 3, known).version == 4
        put(store, 7)  # 5 and 6 were cleaned up
        assert probe_latest(store, 3, known).version == 7
        put(store, 8, v2=False)
        assert probe_latest(store, 3, known).version == 8
        for version in (1, 2, 3, 4, 7):
            store.delete(manifest_path(version))
        store.delete(manifest_path(8, v2=False))
        with pytest.raises(TableNotFound):
            probe_latest(store, 3, known)

    def test_a_replaced_table(self, store: FaultyStore) -> None:
        with pytest.raises(TableNotFound):
            probe_latest(store, 5)
        put(store, 1)
        with pytest.raises(VersionNotFound, match="Open it again"):
            probe_latest(store, 5)


def test_hints_are_kept_where_listings_are_unordered(tmp_path: Path) -> None:
    assert uses_hint(open_store(tmp_path))
    assert not uses_hint(open_store("s3://b/t", {"skip_signature": "true"}))
    assert uses_hint(open_store("s3://b--use1-az4--x-s3/t", {"skip_signature": "true"}))
