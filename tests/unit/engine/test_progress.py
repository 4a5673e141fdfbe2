"""engine/progress.py: a bar for people, nothing for pipes."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from rich.console import Console

import tablewright as tw
from tablewright.engine import progress as module
from tablewright.engine.progress import Progress, RowProgress


def terminal() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=True, width=80, color_system=None), text


def test_long_work_shows_a_bar_on_a_terminal() -> None:
    console, text = terminal()
    with Progress("Compacting", 4, show=True, console=console, delay_seconds=0.01) as bar:
        deadline = time.monotonic() + 10
        while not bar.visible and time.monotonic() < deadline:
            time.sleep(0.01)
        bar.update(3)
    assert "Compacting" in text.getvalue()
    assert "3/4" in text.getvalue()


def test_short_work_shows_nothing() -> None:
    console, text = terminal()
    with Progress("Writing", 2, show=True, console=console, delay_seconds=30) as bar:
        bar.update(2)
        assert not bar.visible
    assert text.getvalue() == ""


def test_the_total_may_become_known_later() -> None:
    console, text = terminal()
    with Progress("Reading", show=True, console=console, delay_seconds=0) as bar:
        deadline = time.monotonic() + 10
        while not bar.visible and time.monotonic() < deadline:
            time.sleep(0.01)
        bar.update(1, 12)
    assert "1/12" in text.getvalue()


@pytest.mark.parametrize(
    ("isatty", "environment", "expected"),
    [
        (True, {}, True),
        (True, {"CI": "true"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_wanted_only_where_a_person_looks(
    monkeypatch: pytest.MonkeyPatch, isatty: bool, environment: dict[str, str], expected: bool
) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return isatty

    monkeypatch.setattr(module.sys, "stderr", Stream())
    for name in ("CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert module.wanted() is expected


def visible(bar: Progress) -> None:
    deadline = time.monotonic() + 10
    while not bar.visible and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_stream_shows_rows_and_bytes() -> None:
    console, text = terminal()
    batch = pa.record_batch({"id": pa.array(range(2500), pa.int64())})
    with RowProgress("Writing s3://me:hidden@bucket/t", show=True, console=console, delay_seconds=0) as bar:
        visible(bar)
        assert list(bar.counted([batch, batch])) == [batch, batch]
    assert "Writing s3://***@bucket/t" in text.getvalue()
    assert "5,000 rows, 40.0 kB" in text.getvalue()


def test_without_a_terminal_a_stream_is_not_even_counted() -> None:
    batches: list[pa.RecordBatch] = []
    with RowProgress("Writing", show=False) as bar:
        assert bar.counted(batches) is batches


@pytest.mark.parametrize("verb", ["write", "insert", "merge"])
def test_a_local_write_from_an_iterator_shows_progress(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """On a terminal, once it has lasted a while."""
    text = io.StringIO()
    monkeypatch.setattr(text, "isatty", lambda: True, raising=False)
    for name in ("CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    uri = f"memory://progress-{verb}"
    dataset = tw.write_dataset(pa.table({"id": range(3)}), uri)
    shown: list[RowProgress] = []
    begin = RowProgress.__enter__

    def entered(self: RowProgress) -> RowProgress:
        shown.append(self)
        return begin(self)

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": pa.array(range(100, 1500), pa.int64())})
        visible(shown[-1])
        yield pa.record_batch({"id": pa.array([9000], pa.int64())})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches())
    monkeypatch.setattr(module, "DELAY_SECONDS", 0.0)
    monkeypatch.setattr(module.sys, "stderr", text)
    monkeypatch.setattr(RowProgress, "__enter__", entered)
    if verb == "write":
        tw.write_dataset(reader, uri, mode="overwrite")
    elif verb == "insert":
        dataset.insert(reader)
    else:
        dataset.merge_insert("id").when_not_matched_insert_all().execute(reader)
    assert ("Keeping the source" if verb == "merge" else f"Writing {uri}") in text.getvalue()
    assert "rows, " in text.getvalue()
