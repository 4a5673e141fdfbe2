"""``commit_batch``: several writers' appends as one version, each of them once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CommitConflict, InvalidRequest, TableNotFound, VersionNotFound, WrongType

commit_batch = tw.LanceDataset.commit_batch


@pytest.fixture
def uri(tmp_path: Path) -> str:
    tw.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


def part(uri: str, *ids: int, read_version: int = 1) -> tw.Transaction:
    fragments = tw.fragment.write_fragments(pa.table({"id": list(ids)}), uri)
    return tw.Transaction(read_version, tw.LanceOperation.Append(fragments))


def ids_of(uri: str) -> list[int]:
    found: list[int] = tw.dataset(uri).to_table()["id"].to_pylist()
    return found


def test_parts_of_different_versions(uri: str) -> None:
    parts = [part(uri, 10), part(uri, 20, 21)]
    tw.dataset(uri).insert({"id": [5]})
    parts.append(part(uri, 30, read_version=2))
    done = commit_batch(uri, parts)
    assert done["dataset"].version == 3
    assert ids_of(uri) == [1, 2, 5, 10, 20, 21, 30]


def test_a_part_twice_is_refused(uri: str) -> None:
    """Its rows would come twice, which is what pylance makes of it."""
    once = part(uri, 10)
    with pytest.raises(InvalidRequest, match="in two new fragments"):
        commit_batch(uri, [once, once])
    assert ids_of(uri) == [1, 2]


def test_a_part_that_was_committed_before_is_refused(uri: str) -> None:
    one, other = part(uri, 10), part(uri, 20)
    commit_batch(uri, [one])
    with pytest.raises(CommitConflict, match="committed before") as caught:
        commit_batch(uri, [one, other])
    assert not caught.value.retryable
    commit_batch(uri, [other])
    assert ids_of(uri) == [1, 2, 10, 20]


def test_what_is_no_batch_of_appends(uri: str) -> None:
    good = part(uri, 10)
    wrong: list[tuple[Any, type[Exception], str]] = [
        ([], InvalidRequest, "at least one"),
        (None, WrongType, "not NoneType"),
        (good, WrongType, "not Transaction"),
        (iter([good]), WrongType, "a list of Transactions"),
        ([good, good.operation], WrongType, "a list of Transactions"),
        ([good, tw.Transaction(1, tw.LanceOperation.Restore(1))], InvalidRequest, "append transactions only"),
        ([tw.Transaction(0, good.operation)], InvalidRequest, "at least 1"),
        ([tw.Transaction(99, good.operation)], VersionNotFound, "99"),
    ]
    for transactions, kind, words in wrong:
        with pytest.raises(kind, match=words):
            commit_batch(uri, transactions)
    with pytest.raises(TableNotFound):
        commit_batch(uri + "-elsewhere", [good])
    assert tw.dataset(uri).version == 1


def test_an_overwrite_in_between_wins(uri: str) -> None:
    waiting = part(uri, 10)
    tw.write_dataset(pa.table({"id": [7]}), uri, mode="overwrite")
    with pytest.raises(CommitConflict):
        commit_batch(uri, [waiting])
    assert ids_of(uri) == [7]


def test_batches_side_by_side(uri: str) -> None:
    """Each batch is one version, and none of its rows is lost or doubled."""
    batches = [[part(uri, 100 * b + p) for p in range(3)] for b in range(1, 6)]
    threads = [threading.Thread(target=commit_batch, args=(uri, parts)) for parts in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ids_of(uri)) == sorted([1, 2, *(100 * b + p for b in range(1, 6) for p in range(3))])
    assert tw.dataset(uri).version == 6
    sizes = [tw.dataset(uri, version=version).count_rows() for version in range(1, 7)]
    assert sizes == [2, 5, 8, 11, 14, 17]
