"""write_dataset's own decisions; what it writes is judged in tests/differential."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.api.auto_cleanup import cleanup_config
from tablewright.api.write import properties_of
from tablewright.errors import CommitConflict, InvalidRequest, SchemaMismatch, TableExists
from tablewright.storage import open_store


@pytest.fixture
def address() -> str:
    return f"memory://{uuid.uuid4()}/table"


def racing(address: str, data: Any, theirs: Any) -> Any:
    """Batches of ``data`` that let another writer create the table while they are read."""

    def batches() -> Any:
        tw.write_dataset(theirs, address)
        yield from data.to_batches()

    return pa.RecordBatchReader.from_batches(data.schema, batches())


def test_append_joins_a_table_that_was_created_meanwhile(address: str) -> None:
    rows = pa.table({"id": [1, 2]})
    ds = tw.write_dataset(racing(address, rows, pa.table({"id": [7]})), address, mode="append")
    assert (ds.version, ds.to_table().to_pydict()) == (2, {"id": [7, 1, 2]})


def test_append_to_another_table_that_was_created_meanwhile_fails_clean(address: str) -> None:
    rows = pa.table({"id": [1, 2]})
    with pytest.raises((SchemaMismatch, CommitConflict)):
        tw.write_dataset(racing(address, rows, pa.table({"name": ["x"]})), address, mode="append")
    assert len(list(open_store(address).list("data"))) == 1


def test_create_loses_to_another_create_and_leaves_nothing(address: str) -> None:
    rows = pa.table({"id": [1, 2]})
    with pytest.raises(TableExists):
        tw.write_dataset(racing(address, rows, pa.table({"id": [7]})), address)
    assert len(list(open_store(address).list("data"))) == 1
    assert tw.dataset(address).count_rows() == 1


def test_a_stale_dataset_appends_past_what_came_in_between(address: str) -> None:
    stale = tw.write_dataset({"id": [1]}, address)
    tw.write_dataset({"id": [2]}, address, mode="append")
    assert tw.write_dataset({"id": [3]}, stale, mode="append").to_table()["id"].to_pylist() == [1, 2, 3]
    assert stale.version == 1


def test_a_dataset_can_be_appended_to_itself(address: str) -> None:
    ds = tw.write_dataset({"id": [1, 2]}, address)
    assert tw.write_dataset(ds, address, mode="append").count_rows() == 4


def test_properties_and_messages() -> None:
    assert properties_of("m", {"a": "b"}) == {"a": "b", "__lance_commit_message": "m"}
    assert properties_of(None, None) == {}
    with pytest.raises(InvalidRequest, match="contradict"):
        properties_of("m", {"__lance_commit_message": "n"})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (10, "10s"), (3600, "1h"), (86_400 * 14, "14days"), (90_061, "1day 1h 1m 1s"), (31_557_600, "1year")],
)
def test_cleanup_spans_are_spelled_as_lance_spells_them(seconds: int, text: str) -> None:
    assert cleanup_config({"interval": 3, "older_than_seconds": seconds}) == {
        "lance.auto_cleanup.interval": "3",
        "lance.auto_cleanup.older_than": text,
    }


def test_unknown_cleanup_options_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="often"):
        cleanup_config({"often": 1})


@pytest.mark.parametrize(
    "wrong",
    [{"mode": "replace"}, {"max_rows_per_file": 0}, {"max_bytes_per_file": -1}, {"data_storage_version": "9.9"}],
)
def test_wrong_settings_are_refused_before_anything_is_written(address: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        tw.write_dataset({"id": [1]}, address, **wrong)
    assert list(open_store(address).list("")) == []


def test_commit_lock_and_progress_are_called(address: str) -> None:
    from contextlib import contextmanager

    seen: list[Any] = []

    @contextmanager
    def lock(version: int) -> Any:
        seen.append(("lock", version))
        yield

    class Progress:
        def begin(self, fragment: Any, **_: Any) -> None:
            seen.append("begin")

        def complete(self, fragment: Any, **_: Any) -> None:
            seen.append(("complete", fragment.physical_rows))

    tw.write_dataset({"id": [1, 2, 3]}, address, commit_lock=lock, progress=Progress(), max_rows_per_file=2)
    assert seen == ["begin", ("complete", 2), "begin", ("complete", 1), ("lock", 1)]
