"""log.py and the events: what is in the log, that it holds no secret, and that it is silent by default."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.engine.choose import Choice
from tablewright.engine.events import log_choice
from tablewright.engine.local import LocalEngine
from tablewright.errors import CommitConflict, TablewrightError
from tablewright.format.transaction import Append, Transaction
from tablewright.log import Log
from tablewright.redact import remember_secrets
from tablewright.testing import memory_world
from tablewright.transaction.events import log_conflict, log_lost_race
from tablewright.transaction.retry import RetryOptions, with_retries


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "tablewright")
    return caplog


def of(records: pytest.LogCaptureFixture, event: str) -> list[Any]:
    return [record for record in records.records if getattr(record, "event", None) == event]


def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"id": range(40), "v": range(40)}), uri, max_rows_per_file=10)
    return uri


def test_a_commit(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    uri = table(tmp_path)
    (record,) = of(records, "commit")
    assert (record.name, record.levelno) == ("tablewright.commit", logging.INFO)
    assert (record.table, record.version, record.operation, record.attempts) == (uri, 1, "Overwrite", 1)
    assert record.getMessage().startswith(f"committed version 1 of {uri}: Overwrite, attempts=1, seconds=")
    assert record.funcName == "log_commit"


def test_a_conflict_and_what_is_done_next(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    uri = table(tmp_path)
    first, second = tw.dataset(uri), tw.dataset(uri)
    first.update({"v": "1"}, where="id = 3")
    records.clear()
    second.update({"v": "2"}, where="id in (3, 20)")
    (record,) = of(records, "conflict")
    assert record.levelno == logging.INFO
    assert (record.operation, record.theirs, record.version, record.attempt) == ("Update", "Update", 2, 1)
    assert "both modified 1 rows" in record.reason
    assert record.getMessage().startswith(f"attempt 1 of Update on {uri} conflicts with Update, version 2: both modif")
    assert record.then.startswith("it runs again in ")
    assert [each.version for each in of(records, "commit")] == [3]


@pytest.mark.parametrize(("retryable", "retries"), [(False, 5), (True, 0)])
def test_a_conflict_that_fails(records: pytest.LogCaptureFixture, retryable: bool, retries: int) -> None:
    def run(number: int) -> None:
        raise CommitConflict("Append", "Overwrite", 7, retryable=retryable)

    with pytest.raises(CommitConflict):
        with_retries(memory_world(), run, RetryOptions(conflict_retries=retries))
    (record,) = of(records, "conflict")
    assert record.getMessage().endswith("conflicts with Overwrite, version 7; it fails")


def test_a_rebase_past_a_compaction(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    uri = table(tmp_path)
    stale = tw.dataset(uri)
    tw.dataset(uri).optimize.compact_files()
    stale.delete("id = 3")
    (record,) = of(records, "rebase")
    assert (record.operation, record.base, record.onto) == ("Delete", 1, 3)
    assert record.getMessage().startswith(f"rebased Delete on {uri} from version 1 onto 3; rebased past 1 compaction: ")


def test_a_rebase_past_an_append(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    uri = table(tmp_path)
    stale = tw.dataset(uri)
    tw.dataset(uri).insert(pa.table({"id": [90], "v": [1]}))
    stale.delete("id = 3")
    (record,) = of(records, "rebase")
    assert record.getMessage() == f"rebased Delete on {uri} from version 1 onto 2"
    assert record.passed is None


def test_a_race_that_was_lost(records: pytest.LogCaptureFixture) -> None:
    transaction = Transaction(read_version=1, uuid="u", operation=Append(fragments=()))
    log_lost_race("memory://t", transaction, 5, 1)
    (record,) = of(records, "race")
    text = "version 5 of memory://t is another writer's: Append is put after it, attempts=1"
    assert record.getMessage() == text


def test_the_engine_and_why(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    uri = table(tmp_path)
    (record,) = of(records, "engine")
    assert record.getMessage() == f"Writing {uri}: engine=local, the rows are in this process, and stream"
    records.clear()
    tw.dataset(uri, engine="local").delete("id = 3")
    (record,) = of(records, "engine")
    assert (record.name, record.levelno) == ("tablewright.engine", logging.INFO)
    assert record.getMessage() == 'Deleting: engine=local, tasks=1, engine="local" was asked for'
    assert (record.engine, record.tasks, record.why) == ("local", 1, 'engine="local" was asked for')


def test_plans_stages_files_and_requests_are_for_debugging(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    uri = table(tmp_path)
    files = [record.path for record in of(records, "file")]
    assert len(files) == 4 and all(path.startswith("data/") for path in files)
    records.clear()
    tw.dataset(uri).delete("id = 3")
    (plan,) = of(records, "plan")
    assert plan.getMessage().startswith(f"{uri}, attempt 1: Delete: write deletion files, predicate=id = 3\n")
    assert [record.getMessage().split(":")[0] for record in of(records, "stage")] == ["Deleting", "Commit"]
    requests = [record.getMessage() for record in of(records, "request")]
    assert f"read {uri}/_versions/18446744073709551614.manifest" in requests
    assert any(text.startswith(f"read numbers {uri}/data/") for text in requests)
    texts = str(tmp_path / "texts.lance")
    tw.write_dataset({"s": ["a", "b"]}, texts).to_table()
    assert any(record.getMessage().startswith(f"open {texts}/data/") for record in of(records, "request"))
    kinds = ("plan", "stage", "request", "file")
    assert {record.levelno for kind in kinds for record in of(records, kind)} == {logging.DEBUG}


def test_files_that_are_removed(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    uri = table(tmp_path)
    rows = pa.table({"id": [1], "v": [1]})
    stale = tw.dataset(uri)
    tw.write_dataset(rows, uri, mode="overwrite")
    with pytest.raises(TablewrightError):
        stale.update({"v": "2"}, where="id = 3", write_mode="rewrite_rows")
    discarded = of(records, "discard")
    assert discarded and discarded[0].table == uri


def test_no_secret_is_in_any_text(records: pytest.LogCaptureFixture) -> None:
    remember_secrets({"aws_secret_access_key": "very-secret-value"})
    uri = "s3://me:hidden@bucket/table?sig=signature"
    log_conflict(uri, CommitConflict("Append", "Overwrite", 7, reason="very-secret-value"), 0, "it fails")
    log_choice(f"Writing {uri}", Choice(LocalEngine(), "very-secret-value"))
    Log("storage").debug("request", "%(path)s", path=f"{uri}/data")
    assert len(records.records) == 3
    for record in records.records:
        shown = f"{record.getMessage()} {record.__dict__}"
        assert not any(secret in shown for secret in ("very-secret-value", "hidden", "signature"))


def test_nothing_is_made_for_a_record_that_is_not_wanted() -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("no handler wants it")

    Log("job").debug("plan", "%(plan)s", plan=Costly())


SCRIPT = """
import logging, sys
import pyarrow as pa, tablewright as tw
uri = sys.argv[1]
tw.write_dataset(pa.table({"id": range(40), "v": range(40)}), uri, max_rows_per_file=10)
first, second = tw.dataset(uri), tw.dataset(uri)
first.update({"v": "1"}, where="id = 3")
second.update({"v": "1"}, where="id = 3")
tw.dataset(uri).optimize.compact_files()
assert logging.getLogger().handlers == []
assert [type(handler).__name__ for handler in logging.getLogger("tablewright").handlers] == ["NullHandler"]
"""


def test_a_process_that_asks_for_no_log_prints_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "t.lance")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    assert (done.stdout, done.stderr) == ("", "")
