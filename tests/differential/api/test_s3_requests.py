"""How many requests an operation makes on S3, those of the data-file codec included: a proxy counts them.

Times are left to ``python -m benchmarks latency``, where the proxy waits 30 ms before it passes a request on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.slow_proxy import Request, SlowProxy, rounds

import tablewright as tw
from tablewright.cache import process_cache

COMMIT = Counter(
    {
        "GET ?list": 1,  # the newest version
        "HEAD _versions": 2,  # is there one above it, under either name?
        "PUT _transactions": 1,
        "HEAD _transactions": 2,  # the version that was read is there before our commit, and after it
        "PUT _versions": 1,
    }
)
OPEN = Counter({"GET ?list": 1, "GET _versions": 1})
WRITE = Counter({"PUT data": 1})


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "text": [f"row {n}" for n in range(start, stop)]})


def kinds(requests: list[Request]) -> Counter[str]:
    """Requests by method and directory of the table; the codec's reads of data files are left out."""
    found = Counter(f"{request.method} {_directory(request.target)}" for request in requests)
    for read in ("GET data", "HEAD data"):
        found.pop(read, None)
    return found


def _directory(target: str) -> str:
    path, _, query = target.partition("?")
    return "?list" if "list-type" in query else path.split("/")[3]


class Scene:
    """A table of some fragments behind the proxy."""

    def __init__(self, proxy: SlowProxy, options: dict[str, str], bucket: str, fragments: int = 6) -> None:
        self.proxy, self.options, self.uri = proxy, options, f"s3://{bucket}/t.lance"
        self.ds = tw.write_dataset(rows(0, 2), self.uri, storage_options=options)
        self.ds.insert(rows(2, 2 * fragments), max_rows_per_file=2)

    def requests(self, work: Callable[[Any], object]) -> list[Request]:
        with self.proxy.counted() as found:
            work(self.ds)
        return found


@pytest.fixture
def scene(slow_s3: tuple[SlowProxy, dict[str, str]], s3_bucket: str) -> Scene:
    return Scene(*slow_s3, s3_bucket)


def test_append_and_open(scene: Scene) -> None:
    assert kinds(scene.requests(lambda ds: ds.insert(rows(100, 101)))) == COMMIT + WRITE

    def by_address(_: Any) -> None:
        tw.write_dataset(rows(101, 102), scene.uri, mode="append", storage_options=scene.options)

    assert kinds(scene.requests(by_address)) == OPEN + COMMIT + WRITE

    def look(_: Any) -> None:
        opened = tw.dataset(scene.uri, storage_options=scene.options)
        assert (opened.count_rows(), opened.list_indices()) == (14, [])

    assert kinds(scene.requests(look)) == OPEN
    assert lance.dataset(scene.uri, storage_options=scene.options).count_rows() == 14


def test_changes_of_one_row(scene: Scene) -> None:
    hidden = Counter({"PUT _deletions": 1})
    assert kinds(scene.requests(lambda ds: ds.delete("id = 3"))) == COMMIT + hidden
    assert kinds(scene.requests(lambda ds: ds.update({"text": "'z'"}, where="id = 4"))) == COMMIT + hidden + WRITE

    def upsert(ds: Any) -> None:
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(7, 8))

    assert kinds(scene.requests(upsert)) == COMMIT + hidden + WRITE
    theirs = lance.dataset(scene.uri, storage_options=scene.options).to_table().sort_by("id")
    assert theirs.equals(scene.ds.to_table().sort_by("id"))
    assert theirs.num_rows == 11


def test_a_file_of_a_small_fragment_is_read_once(scene: Scene) -> None:
    def upsert(ds: Any) -> None:
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(7, 8))

    def reads(work: Callable[[Any], object]) -> Counter[str]:
        found = [request for request in scene.requests(work) if "/data/" in request.target and request.method != "PUT"]
        assert {request.method for request in found} <= {"GET"}, "the manifest knows the size"
        return Counter(request.target.partition("?")[0] for request in found)

    assert sorted(reads(upsert).values()) == [1] * 6
    assert sorted(reads(lambda ds: ds.to_table(columns=["id"])).values()) == [1], "others are known"
    process_cache().clear()
    assert sorted(reads(lambda ds: ds.to_table()).values()) == [1] * 7


def test_a_point_delete_by_an_index(scene: Scene) -> None:
    theirs = lance.dataset(scene.uri, storage_options=scene.options)
    theirs.create_scalar_index("id", "BTREE")
    ds = tw.dataset(scene.uri, storage_options=scene.options)
    found = scene.requests(lambda _: ds.delete("id = 5"))
    assert len(found) <= 30
    assert ds.count_rows() == lance.dataset(scene.uri, storage_options=scene.options).count_rows() == 11


def test_lists_of_versions_tags_and_branches(scene: Scene) -> None:
    for number in range(4):
        scene.ds.update_config({"n": str(number)})
    listed = scene.requests(lambda ds: ds.versions())
    assert kinds(listed) == Counter({"GET ?list": 1, "GET _versions": 6})
    assert kinds(scene.requests(lambda ds: ds.tags.list())) == Counter({"GET ?list": 1})
    assert kinds(scene.requests(lambda ds: ds.branches.list())) == Counter({"GET ?list": 1})
    assert kinds(scene.requests(lambda ds: ds.list_indices())) == Counter()


def test_rounds_are_chains_of_requests() -> None:
    def request(began: float, ended: float) -> Request:
        return Request("GET", "/", began, ended)

    assert rounds([]) == 0
    assert rounds([request(0, 1), request(1, 2), request(0.5, 2)]) == 2
    assert rounds([request(0, 5), request(1, 5), request(2, 3)]) == 1
