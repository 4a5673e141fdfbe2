"""Upserts of a stream, without one: the function that foreachBatch gets."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import tablewright as tw
from tablewright.errors import ColumnNotFound, InvalidRequest, TablewrightError
from tablewright.spark import upsert as module


@pytest.fixture
def table(tmp_path: Path) -> str:
    return tw.write_dataset([{"id": 1, "n": 1}], tmp_path / "t.lance").uri


def rows(table: str) -> dict[int, int]:
    found = tw.dataset(table).to_table()
    assert len(set(found["id"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


def test_a_batch_commits_once(table: str) -> None:
    upsert = tw.stream_upsert(table, on="id", name="s")
    upsert([{"id": 1, "n": 5}, {"id": 2, "n": 6}], 0)
    tw.dataset(table).update({"n": "n + 100"})
    upsert([{"id": 1, "n": 5}, {"id": 2, "n": 6}], 0)  # it would undo what came since
    assert rows(table) == {1: 105, 2: 106}
    upsert([{"id": 1, "n": 7}], 1)
    assert rows(table) == {1: 7, 2: 106}
    assert tw.dataset(table).config() == {"tablewright.stream.s": "1"}


def test_streams_of_different_names_do_not_know_each_other(table: str) -> None:
    for name in ("a", "b"):
        tw.stream_upsert(table, on="id", name=name)([{"id": 3, "n": len(name)}], 0)
    assert tw.dataset(table).version == 3


def test_two_drivers_with_the_same_batch(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked before either has committed."""
    both, check = threading.Barrier(2), module.check_new_batch

    def together(*arguments: Any) -> None:
        check(*arguments)
        both.wait(timeout=60)

    monkeypatch.setattr(module, "check_new_batch", together)
    upsert = tw.stream_upsert(table, on="id", name="s")
    drivers = [threading.Thread(target=upsert, args=([{"id": 1, "n": 5}, {"id": 2, "n": 6}], 0)) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert rows(table) == {1: 5, 2: 6}
    assert tw.dataset(table).version == 2


def test_keys_that_come_twice_in_a_batch(table: str) -> None:
    twice = [{"id": 2, "n": 1}, {"id": 2, "n": 2}]
    with pytest.raises(TablewrightError):
        tw.stream_upsert(table, on="id", name="s")(twice, 0)
    assert tw.dataset(table).config() == {}  # neither rows nor number
    tw.stream_upsert(table, on="id", name="s", dedupe="last")(twice, 0)
    assert rows(table) == {1: 1, 2: 2}


def test_a_stream_that_keeps_its_table_in_good_shape(table: str) -> None:
    plain = tw.stream_upsert(table, on="id", name="s")
    auto = tw.stream_upsert(table, on="id", name="s", optimize="auto")
    for batch in range(40):
        plain([{"id": 100 + batch, "n": batch}], batch)
    before = len(tw.dataset(table).get_fragments())
    auto([{"id": 1, "n": 2}], 40)
    assert len(tw.dataset(table).get_fragments()) < before
    assert tw.dataset(table).config()["tablewright.stream.s"] == "40"
    plain([{"id": 1, "n": 3}], 40)
    assert rows(table)[1] == 2


def test_what_is_wrong_is_said_at_once(table: str) -> None:
    with pytest.raises(InvalidRequest, match="optimize must be"):
        tw.stream_upsert(table, on="id", optimize="yes")
    with pytest.raises((InvalidRequest, ColumnNotFound)):
        tw.stream_upsert(table, on="none")
    with pytest.raises(InvalidRequest, match="name must be text"):
        tw.stream_upsert(table, on="id", name="")
    with pytest.raises(InvalidRequest, match="give stream_upsert a name"):
        tw.stream_upsert(table, on="id")([{"id": 1, "n": 1}], 0)


def test_on_connect_a_name_is_needed_before_the_stream_starts(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the function runs on the server, which does not tell it the query: the error would end the stream."""
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    monkeypatch.setattr(module, "active_session", lambda: session)
    with pytest.raises(InvalidRequest, match="give stream_upsert a name"):
        tw.stream_upsert(table, on="id")
    tw.stream_upsert(table, on="id", name="s")


def test_it_takes_an_open_table(table: str) -> None:
    ds = tw.dataset(table)
    assert pickle.loads(pickle.dumps(ds)).uri == table
    tw.stream_upsert(ds, on=["id"], name="s")([{"id": 1, "n": 9}], 0)
    assert rows(table) == {1: 9}
