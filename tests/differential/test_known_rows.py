"""Changes of rows that an index knows give the table, transaction and metrics of those whose rows a scan finds."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.format.fragment import Fragment
from tablewright.format.transaction import Delete, Transaction, Update
from tablewright.jobs.attempt import Made, run_job
from tablewright.jobs.delete import DeleteJob
from tablewright.jobs.table import Table
from tablewright.jobs.update import UpdateJob
from tablewright.operations.update import UpdateOptions
from tablewright.reading import row_search, uncovered
from tablewright.reading.lookup import Lookup
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.testing import seeded_world

ROWS = 3000
Change = DeleteJob | UpdateJob


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable row ids"])
def tables(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Path]:
    """Tables of several fragments with nulls, duplicates and deleted rows: all indexed, and with rows that are not."""
    places = {}
    for name in ("covered", "uncovered"):
        keys = pa.array([None if n % 11 == 3 else n // 2 for n in range(ROWS)], pa.int64())
        rows = {
            "key": keys,
            "v": pa.array([None if n % 7 == 0 else n for n in range(ROWS)], pa.int32()),
            "text": [f"row {n}" for n in range(ROWS)],
            "s": [{"a": n, "b": None if n % 5 == 0 else str(n)} for n in range(ROWS)],
        }
        place = places[name] = tmp_path_factory.mktemp(name) / "t"
        made = tw.write_dataset(pa.table(rows), place, max_rows_per_file=700, enable_stable_row_ids=request.param)
        made.create_scalar_index("key", "BTREE")
        made.delete("v % 10 = 3")
        if name == "uncovered":
            made.insert(pa.table({column: rows[column][:50] for column in rows}, schema=made.schema))
    return places


@contextmanager
def _by_scans() -> Iterator[None]:
    with patch.object(row_search, "recognised", lambda *_: None):
        yield


def _unnamed(fragment: Fragment) -> Fragment:
    """Without the names of files: threads take them in any order."""
    files = tuple(replace(file, path="") for file in fragment.files)
    deletion = None if fragment.deletion is None else replace(fragment.deletion, id=0)
    return replace(fragment, files=files, deletion=deletion)


def _comparable(transaction: Transaction) -> Transaction:
    operation = transaction.operation
    assert isinstance(operation, Delete | Update)
    changed = replace(operation, updated_fragments=tuple(map(_unnamed, operation.updated_fragments)))
    if isinstance(changed, Update):
        changed = replace(changed, new_fragments=tuple(map(_unnamed, changed.new_fragments)))
    return replace(transaction, uuid="", operation=changed)


def _changed(base: Path, place: Path, change: Change) -> tuple[Any, ...]:
    """What a change returns, the transaction with its rows, and the table that pylance sees afterwards."""
    shutil.copytree(base, place)
    snapshot = open_snapshot(seeded_world(open_store(str(place)), seed=1))
    made: list[Made] = []
    commit = type(change).commit

    def noted(job: Any, what: Made, attempt: int) -> Any:
        made.append(what)
        return commit(job, what, attempt)

    try:
        with patch.object(type(change), "commit", noted):
            done = run_job(change, Table(snapshot))
    except InvalidRequest as error:  # row ids of later fragments are no int; threads say which they see first
        left = [str(path.relative_to(place)) for path in sorted(place.rglob("*")) if path.is_file()]
        return re.sub("[0-9]+", "N", str(error)), left
    (one,) = made
    assert one.affected is not None
    affected = {id: rows.to_numpy().tolist() for id, rows in one.affected.offsets.items()}
    theirs = lance.dataset(str(place))
    theirs.validate()
    manifest = replace(done.snapshot.manifest, timestamp_ns=0, transaction_file="", fragments=())
    fragments = list(map(_unnamed, done.snapshot.fragments))
    rows = theirs.to_table(with_row_id=True, with_row_address=True).sort_by("_rowaddr").to_pylist()
    return done.result, _comparable(one.transaction), affected, one.affected.reads, manifest, fragments, rows


def _agree(base: Path, change: Change, *, by_index: bool | None = None) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with patch.object(Lookup, "rows", autospec=True, side_effect=Lookup.rows) as asked:
            ours = _changed(base, Path(directory) / "index", change)
        with _by_scans():
            expected = _changed(base, Path(directory) / "scan", change)
        if by_index is not None:
            assert bool(asked.called) is by_index
        for one, other in zip(ours, expected, strict=True):
            assert one == other


literals = st.one_of(st.integers(-3, ROWS // 2 + 3), st.sampled_from([2**31, -(2**63), 2**63 - 1, 2**64]))
widths = st.one_of(st.integers(0, 80), st.integers(0, 350))  # two rows a key: a lookup has 512 rows at most
predicates = st.one_of(
    literals.map(lambda n: f"key = {n}"),
    st.lists(literals, min_size=1, max_size=8).map(lambda some: f"key IN ({', '.join(map(str, some))})"),
    st.tuples(literals, widths).map(lambda pair: f"key BETWEEN {pair[0]} AND {pair[0] + pair[1]}"),
    st.tuples(literals, widths).map(lambda pair: f"key >= {pair[0]} AND key < {pair[0] + pair[1]}"),
)
updates = st.sampled_from(
    [
        {"v": "-1"},
        {"v": "null"},
        {"v": "v + 1", "text": "concat(text, '!')"},
        {"key": "key + 100000"},
        {"key": "5", "v": "6", "text": "'x'", "s": "null"},
        {"s.a": "7"},
        {"s.b": "text"},
        {"v": "cast(_rowid as int)"},
    ]
)


names = st.sampled_from(["covered", "uncovered"])


@example(name="covered", predicate="key = 1000", use=True)
@example(name="covered", predicate="key = 5000", use=True)
@given(name=names, predicate=predicates, use=st.sampled_from([None, True, True, False]))
def test_deletes(tables: dict[str, Path], name: str, predicate: str, use: bool | None) -> None:
    _agree(tables[name], DeleteJob(predicate=predicate, use_scalar_index=use))


@example(name="covered", predicate="key = 1000", assigned={"v": "-1"}, mode="auto", use=True)
@example(name="covered", predicate="key = 5000", assigned={"v": "-1"}, mode="auto", use=True)
@given(
    name=names,
    predicate=predicates,
    assigned=updates,
    mode=st.sampled_from(["auto", "auto", "rewrite_rows", "rewrite_columns"]),
    use=st.sampled_from([None, True, True, False]),
)
def test_updates(
    tables: dict[str, Path], name: str, predicate: str, assigned: dict[str, str], mode: str, use: bool | None
) -> None:
    options = UpdateOptions(write_mode=mode, use_scalar_index=use)
    _agree(tables[name], UpdateJob(updates=assigned, where=predicate, options=options))


def test_which_changes_ask_an_index(tables: dict[str, Path]) -> None:
    _agree(tables["covered"], DeleteJob(predicate="key = 1000", use_scalar_index=True), by_index=True)
    _agree(tables["covered"], DeleteJob(predicate="key = 1000", use_scalar_index=False), by_index=False)
    _agree(tables["covered"], DeleteJob(predicate="key + 0 = 1000", use_scalar_index=True), by_index=False)
    _agree(tables["uncovered"], DeleteJob(predicate="key = 1000", use_scalar_index=True), by_index=True)
    _agree(tables["uncovered"], DeleteJob(predicate="key = 7", use_scalar_index=True), by_index=True)
    with patch.object(uncovered, "_ROWS_MAX", 49):
        _agree(tables["uncovered"], DeleteJob(predicate="key = 7", use_scalar_index=True), by_index=False)
    options = UpdateOptions(use_scalar_index=True)
    _agree(tables["covered"], UpdateJob(updates={"v": "1"}, where="key = 8", options=options), by_index=True)
    _agree(tables["covered"], UpdateJob(updates={"v": "1"}, where="key < 900", options=options), by_index=True)
