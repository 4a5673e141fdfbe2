"""Races of row-level changes, pair by pair: both are made from one version, and one commits after the other.

*Theirs* is there when *ours*, made from an older version, comes to commit. What has to happen is asked from the
conflict table itself (`expected`): a prepared transaction passes as it is, passes after a rebase, or has to run again.
The calls that people make (`delete`, `update`, `add_columns`, `insert`) run again by themselves: both always take
effect, and the rows are those of one of the two serial orders. The same with pylance on either side, and at random.

Predicates look at `id` only, which nobody changes: two changes that each read what the other writes, in different rows,
may pass each other under snapshot isolation, and no serial order would do that.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.commit import CommitConflictError
from tests.caches import BUDGETS, cached
from tests.concurrency.leftovers import unreferenced
from tests.depth import deep
from tests.differential.wire import ManifestBytes, build, latest_manifest, parse
from tests.property.row_model import (
    AddColumns,
    Append,
    Change,
    Delete,
    Expression,
    Model,
    Update,
    Values,
    assert_reads_as,
    created,
    ids_in,
    literal,
    new_rows,
    plus,
)

import tablewright as tw
from tablewright.api.translate import to_operation
from tablewright.errors import CommitConflict
from tablewright.transaction.conflicts import Outcome, Situation, expected, kinds_of

FRAGMENTS, PER_FILE = 3, 8
THEIRS = frozenset({1, 2, 3})
"""Rows of fragment 0 that their change touches."""

ROWS: dict[Situation, frozenset[int]] = {
    "same rows": frozenset({2, 3, 4}),
    "other rows": frozenset({5, 6}),
    "other fragments": frozenset({17, 18}),
}
"""Rows that our change touches."""

VERBS = ["delete", "update rows", "update columns", "add column", "append"]


@dataclass(frozen=True)
class Table:
    """A table to start from, and its model; every test works on a copy that shares the files."""

    uri: str
    model: Model
    stable: bool

    def copy(self, folder: Path, name: str = "t") -> str:
        target = folder / f"{name}.lance"
        shutil.copytree(self.uri, target, copy_function=os.link)
        return str(target)


def _table(folder: Path, *, stable: bool) -> Table:
    uri = str(folder / "base.lance")
    model = created(tw, uri, FRAGMENTS * PER_FILE, per_file=PER_FILE, stable=stable)
    return Table(uri, model, stable)


KINDS = ["addresses", "stable"]


@pytest.fixture(scope="module", params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return _table(tmp_path_factory.mktemp("races"), stable=request.param == "stable")


@pytest.fixture(scope="module")
def both_tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    return [_table(tmp_path_factory.mktemp(f"random-{stable}"), stable=stable) for stable in (False, True)]


# ------------------------------------------------------------------------------------------------------- changes


def _upper(column: str) -> Expression:
    return Expression(
        f"upper({column})", lambda row: None if row[column] is None else row[column].upper(), frozenset({column})
    )


def _text_of(column: str) -> Expression:
    return Expression(
        f"cast({column} as string)",
        lambda row: None if row[column] is None else str(row[column]),
        frozenset({column}),
    )


def make(verb: str, ids: Iterable[int], model: Model, *, ours: bool) -> Change:
    """The change of one side: ours writes `b`, theirs `a`; neither looks at what the other writes."""
    sets = {"b": _upper("b")} if ours else {"a": plus("a", 100)}
    match verb:
        case "delete":
            return Delete(ids_in(ids))
        case "update rows":
            return Update(sets, ids_in(ids), "rewrite_rows")
        case "update columns":
            return Update(sets, ids_in(ids), "rewrite_columns")
        case "add column":
            return AddColumns("ours" if ours else "theirs", pa.int64(), plus("id", 1))
        case _:
            return Append(new_rows(model, 1000 if ours else 2000, 5), model, 3)


@dataclass(frozen=True)
class PatchByLance:
    """An update of columns in place as pylance can make it: values from a table, joined by `id`."""

    column: str
    value: Any
    ids: frozenset[int]
    says_rows: bool = True

    def run(self, library: Any, dataset: Any) -> None:
        updated, fields, offsets = [], [], {}
        for fragment in dataset.get_fragments():
            ids = sorted(self.ids & set(fragment.to_table(columns=["id"])["id"].to_pylist()))
            if not ids:
                continue
            values = pa.array([self.value] * len(ids), dataset.schema.field(self.column).type)
            source = pa.table({"id": pa.array(ids, pa.int64()), self.column: values})
            metadata, fields, rows = fragment.update_columns(source, left_on="id", with_offsets=True)
            updated.append(metadata)
            offsets[fragment.fragment_id] = rows
        operation = lance.LanceOperation.Update(
            updated_fragments=updated,
            fields_modified=list(fields),
            update_mode="rewrite_columns",
            **({"updated_fragment_offsets": offsets} if self.says_rows else {}),
        )
        lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)

    def after(self, model: Model, version: int) -> Model:
        return Update({self.column: literal(self.value)}, ids_in(self.ids)).after(model, version)


def make_by_lance(verb: str, ids: Iterable[int], model: Model) -> Change:
    """Their change, as pylance can make it."""
    return PatchByLance("a", 77, frozenset(ids)) if verb == "update columns" else make(verb, ids, model, ours=False)


def prepare(dataset: tw.LanceDataset, change: Change) -> tw.Transaction:
    """A change of ours, run and not committed."""
    match change:
        case Delete():
            return dataset.prepare_delete(change.where.sql).execute_uncommitted()[0]
        case Update():
            updates = {path: expression.sql for path, expression in change.sets.items()}
            prepared = dataset.prepare_update(updates, where=change.where.sql, write_mode=change.mode)
            return prepared.execute_uncommitted()[0]
        case AddColumns():
            transforms = {change.name: change.expression.sql}
            return dataset.prepare_add_columns(transforms).execute_uncommitted()[0]
        case Append():
            new = tw.fragment.write_fragments(_arrow(change), dataset, max_rows_per_file=change.per_file)
            return tw.Transaction(dataset.version, tw.LanceOperation.Append(new))
        case _:
            raise AssertionError(change)


def _arrow(change: Append) -> pa.Table:
    names = change.model.columns
    return pa.table({name: pa.array([row[name] for row in change.rows], type) for name, type in names.items()})


def kind_of(uri: str, version: int) -> str:
    """The row or column of the conflict table that a committed version stands in."""
    return _kind(tw.dataset(uri).read_transaction(version))


def _kind(transaction: tw.Transaction) -> str:
    (kind,) = kinds_of(to_operation(transaction.operation))
    return kind


# ------------------------------------------------------------------------------------------------------ what holds


def serial(model: Model, *changes: Change) -> list[dict[int, Values]]:
    """What the rows may be after all of them: one after the other, in any order."""
    orders = []
    for order in itertools.permutations(changes):
        after = model
        for version, change in enumerate(order, 2):
            after = change.after(after, version)
        orders.append(after.values())
    return orders


def assert_serial(uri: str, model: Model, *changes: Change) -> None:
    """The rows are those of some serial order of the changes."""
    found, orders = read(uri), serial(model, *changes)
    if found not in orders:
        wrong = [
            {id: (found.get(id), order.get(id)) for id in found.keys() | order if found.get(id) != order.get(id)}
            for order in orders
        ]
        raise AssertionError(f"No serial order of {changes}. What differs from each of them (found, wanted): {wrong}")


def read(uri: str) -> dict[int, Values]:
    """The rows by key, as both libraries read them; both find the table valid."""
    here, there = tw.dataset(uri), lance.dataset(uri)
    here.validate()
    there.validate()
    assert here.version == there.version
    found = here.to_table().to_pylist()
    assert there.to_table().to_pylist() == found
    columns = ["id", "_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    system = here.to_table(columns=columns)
    assert there.to_table(columns=columns).equals(system)
    assert len(set(system["_rowid"].to_pylist())) == len(found)
    rows = {row["id"]: row for row in found}
    assert len(rows) == len(found), "a row is there twice"
    return rows


def assert_clean(uri: str) -> None:
    """Every file belongs to some version: what was written in vain is gone."""
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    assert not unreferenced(tw.dataset(uri), paths)


def _situations(ours: str, theirs: str) -> list[Situation]:
    """All, where both touch chosen rows; else the only one there is."""
    chosen = {"delete", "update rows", "update columns"}
    if {ours, theirs} <= chosen:
        return list(ROWS)
    return ["other fragments"] if "append" in (ours, theirs) else ["same rows"]


PAIRS = [(ours, theirs, situation) for ours in VERBS for theirs in VERBS for situation in _situations(ours, theirs)]


def _on_tables(turn: int) -> list[Any]:
    """Every pair on both kinds of table; in CI they take turns, and what one test leaves out another one has."""
    return [
        pytest.param(kind, ours, theirs, at, id=f"{kind}, {ours} after {theirs}, {at}")
        for stable, kind in enumerate(KINDS)
        for number, (ours, theirs, at) in enumerate(PAIRS)
        if deep(1, 2) > 1 or (number + stable + turn) % 2 == 0
    ]


def _outcome(uri: str, transaction: tw.Transaction) -> Outcome:
    """What came of committing a prepared transaction: as it is, after a rebase, or not at all."""
    before = set(Path(uri).rglob("*"))
    try:
        made = tw.CommitBuilder(uri).execute(transaction)
    except CommitConflict as conflict:
        assert {path for path in set(Path(uri).rglob("*")) - before if path.is_file()} == set(), "left behind"
        return Outcome.RETRY if conflict.retryable else Outcome.INCOMPATIBLE
    committed = made.read_transaction(made.version)
    assert committed.uuid == transaction.uuid
    return Outcome.FINE if committed.read_version == transaction.read_version else Outcome.REBASE


def _check_commit(
    uri: str, model: Model, transaction: tw.Transaction, ours: Change, theirs: Change, at: Situation
) -> None:
    """Commit past theirs, which is there: exactly what the table says comes out of it."""
    wanted = expected(_kind(transaction), kind_of(uri, tw.dataset(uri).version), at)
    assert _outcome(uri, transaction) == wanted
    done = (ours, theirs) if wanted in (Outcome.FINE, Outcome.REBASE) else (theirs,)
    assert_serial(uri, model, *done)


@pytest.mark.parametrize(("table", "ours", "theirs", "at"), _on_tables(0), indirect=["table"])
def test_a_prepared_change_does_what_the_table_says(
    table: Table, tmp_path: Path, ours: str, theirs: str, at: Situation
) -> None:
    uri = table.copy(tmp_path)
    mine, other = make(ours, ROWS[at], table.model, ours=True), make(theirs, THEIRS, table.model, ours=False)
    transaction = prepare(tw.dataset(uri), mine)
    other.run(tw, tw.dataset(uri))
    _check_commit(uri, table.model, transaction, mine, other, at)


@pytest.mark.parametrize(("table", "ours", "theirs", "at"), _on_tables(1), indirect=["table"])
def test_both_calls_take_effect_in_some_order(
    table: Table, tmp_path: Path, ours: str, theirs: str, at: Situation
) -> None:
    uri = table.copy(tmp_path)
    mine, other = make(ours, ROWS[at], table.model, ours=True), make(theirs, THEIRS, table.model, ours=False)
    stale = tw.dataset(uri)
    other.run(tw, tw.dataset(uri))
    count = mine.run(tw, stale)
    assert stale.version == tw.dataset(uri).version == 3
    assert_serial(uri, table.model, mine, other)
    assert_clean(uri)
    if ours in ("delete", "update rows", "update columns"):  # the later one counts what the earlier one left
        assert count == mine.count(other.after(table.model, 2))


# --------------------------------------------------------------------------------------- columns against columns

COLUMNS: dict[str, tuple[Situation, dict[str, Expression]]] = {
    "another column": ("same rows", {"b": _upper("b")}),
    "the same column": ("same column", {"a": literal(7)}),
    "the same and another column": ("same column", {"b": literal("x"), "a": plus("a", 1)}),
    "made from their column": ("column read", {"b": _text_of("a")}),
    "a member of a struct": ("same rows", {"st.x": plus("id", 5)}),
}


@pytest.mark.parametrize("which", COLUMNS)
@pytest.mark.parametrize("rows", [s for s in ROWS if s != "other fragments"])
def test_columns_rewritten_by_both(table: Table, tmp_path: Path, which: str, rows: Situation) -> None:
    """Rule v: side by side, unless both write one column, or ours was made from theirs in the same rows."""
    situation, sets = COLUMNS[which]
    if situation == "column read" and rows == "other rows":
        situation = "other rows"
    theirs = make("update columns", THEIRS, table.model, ours=False)
    ours = Update(sets, ids_in(ROWS[rows]), "rewrite_columns")
    uri, again = table.copy(tmp_path), table.copy(tmp_path, "again")
    transaction, stale = prepare(tw.dataset(uri), ours), tw.dataset(again)
    for place in (uri, again):
        theirs.run(tw, tw.dataset(place))
    _check_commit(uri, table.model, transaction, ours, theirs, situation)
    assert ours.run(tw, stale) == len(ROWS[rows])
    assert_serial(again, table.model, ours, theirs)


# --------------------------------------------------------------------------------- what the issue asks for by name

_B, _R = {Outcome.FINE, Outcome.REBASE}, {Outcome.RETRY}
PROMISES: list[tuple[str, str, Situation, set[Outcome]]] = [
    ("Delete", "Delete", "other rows", _B),
    ("Delete", "Delete", "same rows", _B),
    ("Delete", "UpdateRows", "other rows", _B),
    ("UpdateRows", "Delete", "other rows", _B),
    ("UpdateRows", "UpdateRows", "other rows", _B),
    ("UpdateRows", "UpdateRows", "same rows", _R),
    ("UpdateRows", "Delete", "same rows", _R),
    ("Delete", "UpdateRows", "same rows", _R),
    ("UpdateColumns", "Delete", "other rows", _B),
    ("Delete", "UpdateColumns", "other rows", _B),
    ("UpdateColumns", "UpdateColumns", "same rows", _B),
    ("UpdateColumns", "UpdateColumns", "other rows", _B),
    ("UpdateColumns", "UpdateColumns", "same column", _R),
    ("MergeKeep", "Delete", "same rows", _B),
]


@pytest.mark.parametrize(("ours", "theirs", "at", "wanted"), PROMISES)
def test_the_table_keeps_what_was_promised(ours: str, theirs: str, at: Situation, wanted: set[Outcome]) -> None:
    """The tests above ask the table; this asks that the table has not given up."""
    assert expected(ours, theirs, at) in wanted


def _attempts(report: str) -> int:
    found = re.search(r"\battempts=(\d+)", report)
    assert found is not None, report
    return int(found[1])


REEXECUTED = [
    ("delete", "delete", "same rows", 1),
    ("delete", "delete", "other rows", 1),
    ("delete", "update columns", "other rows", 1),
    ("update columns", "delete", "other rows", 1),
    ("update columns", "update columns", "same rows", 1),
    ("update rows", "delete", "other rows", 1),
    ("update rows", "update rows", "other rows", 1),
    ("update rows", "update rows", "same rows", 2),
    ("update rows", "delete", "same rows", 2),
    ("update columns", "delete", "same rows", 2),
    ("delete", "update rows", "same rows", 2),
]


@pytest.mark.parametrize(("ours", "theirs", "at", "attempts"), REEXECUTED)
def test_only_true_conflicts_run_again(
    table: Table, tmp_path: Path, ours: str, theirs: str, at: Situation, attempts: int
) -> None:
    uri = table.copy(tmp_path)
    mine, other = make(ours, ROWS[at], table.model, ours=True), make(theirs, THEIRS, table.model, ours=False)
    stale = tw.dataset(uri)
    if isinstance(mine, Delete):
        prepared = stale.prepare_delete(mine.where.sql)
    else:
        updates = {path: expression.sql for path, expression in mine.sets.items()}
        prepared = stale.prepare_update(updates, where=mine.where.sql, write_mode=mine.mode)
    other.run(tw, tw.dataset(uri))
    assert _attempts(prepared.analyze_plan()) == attempts
    assert_serial(uri, table.model, mine, other)


def test_a_row_deleted_by_both_is_counted_once(table: Table, tmp_path: Path) -> None:
    uri = table.copy(tmp_path)
    first, second = tw.dataset(uri), tw.dataset(uri)
    assert first.delete("id in (1, 2, 3)") == {"num_deleted_rows": 3}
    assert second.delete("id in (2, 3, 4, 20)") == {"num_deleted_rows": 2}
    assert read(uri).keys() == table.model.rows.keys() - {1, 2, 3, 4, 20}
    third = tw.dataset(uri, version=1)
    assert third.delete("id in (1, 2, 3)") == {"num_deleted_rows": 0}
    assert read(uri).keys() == table.model.rows.keys() - {1, 2, 3, 4, 20}


REMOVED = frozenset(range(PER_FILE))


@pytest.mark.parametrize("whole_is", ["ours", "theirs"])
@pytest.mark.parametrize("verb", ["delete", "update rows", "update columns", "add column"])
def test_a_whole_fragment_removed_against_a_change_in_it(
    table: Table, tmp_path: Path, verb: str, whole_is: str
) -> None:
    """Deletion vectors are not united with a removal: the later one runs again. New columns need no rows of it."""
    whole, part = Delete(ids_in(REMOVED)), make(verb, ROWS["other rows"], table.model, ours=True)
    mine, other = (whole, part) if whole_is == "ours" else (part, whole)
    uri, again = table.copy(tmp_path), table.copy(tmp_path, "again")
    transaction, stale = prepare(tw.dataset(uri), mine), tw.dataset(again)
    for place in (uri, again):
        other.run(tw, tw.dataset(place))
    outcome = _outcome(uri, transaction)
    if verb != "add column":
        assert outcome == Outcome.RETRY
    assert_serial(uri, table.model, *((other,) if outcome == Outcome.RETRY else (mine, other)))
    mine.run(tw, stale)
    assert_serial(again, table.model, mine, other)


def test_rows_that_two_writers_delete_together_take_the_fragment_along(table: Table, tmp_path: Path) -> None:
    uri = table.copy(tmp_path)
    first, second = tw.dataset(uri), tw.dataset(uri)
    first.delete("id in (0, 1, 2, 3)")
    assert second.delete("id in (3, 4, 5, 6, 7)") == {"num_deleted_rows": 4}
    assert [fragment.fragment_id for fragment in lance.dataset(uri).get_fragments()] == [1, 2]
    assert read(uri).keys() == table.model.rows.keys() - REMOVED


def test_one_stale_writer_past_many(table: Table, tmp_path: Path) -> None:
    """Every kind of change came in between, in every fragment; ours still needs no second look."""
    uri = table.copy(tmp_path)
    stale = tw.dataset(uri)
    between = [
        Delete(ids_in({0, 8, 16})),
        Update({"a": literal(50)}, ids_in({1, 9, 17}), "rewrite_rows"),
        Update({"a": plus("a", 1)}, ids_in({2, 10, 18}), "rewrite_columns"),
        Append(new_rows(table.model, 500, 4), table.model),
        Delete(ids_in({3, 500})),
        Update({"st.y": literal("s")}, ids_in({4, 12}), "rewrite_columns"),
    ]
    for change in between:
        change.run(tw, tw.dataset(uri))
    ours = Update({"b": literal("ours")}, ids_in({5, 6, 13, 14, 21, 22}), "rewrite_columns")
    prepared = stale.prepare_update({"b": "'ours'"}, where=ours.where.sql, write_mode="rewrite_columns")
    assert _attempts(prepared.analyze_plan()) == 1
    expected_rows = table.model
    for version, change in enumerate([*between, ours], 2):
        expected_rows = change.after(expected_rows, version)
    for dataset in (tw.dataset(uri), lance.dataset(uri)):
        dataset.validate()
        assert_reads_as(dataset, expected_rows, stable=table.stable)


# ------------------------------------------------------------------------------------------------- a long add_columns


@dataclass
class Counting:
    """A function over batches that remembers the ids it was asked about."""

    name: str = "slow"

    def __post_init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.seen += batch["id"].to_pylist()
        values = [a if a is None else a * 3 for a in batch["a"].to_pylist()]
        return pa.record_batch([pa.array(values, pa.int64())], schema=pa.schema([(self.name, pa.int64())]))


TRIPLE = AddColumns("slow", pa.int64(), Expression("a * 3", lambda row: row["a"] and row["a"] * 3, frozenset({"a"})))

WHILE_ADDING: dict[str, tuple[Change, frozenset[int]]] = {
    "rows are deleted": (Delete(ids_in({1, 2, 9})), frozenset()),
    "a fragment is removed": (Delete(ids_in(REMOVED)), frozenset()),
    "another column is rewritten": (Update({"b": literal("x")}, ids_in({1, 9}), "rewrite_columns"), frozenset()),
    "rows are moved": (Update({"b": literal("x")}, ids_in({1, 2, 9}), "rewrite_rows"), frozenset({1, 2, 9})),
    "its input is rewritten": (
        Update({"a": literal(5)}, ids_in({1, 2}), "rewrite_columns"),
        frozenset(range(PER_FILE)),
    ),
    "rows with another input are moved": (
        Update({"a": literal(5)}, ids_in({1, 9}), "rewrite_rows"),
        frozenset({1, 9}),
    ),
    "another column is added": (AddColumns("other", pa.int64(), plus("id", 1)), frozenset()),
}


def _adding(uri: str, during: Change | None, library: Any = tw) -> tuple[Counting, Counting]:
    """Add a column by a function, and let `during` happen when all its values are computed."""
    first, later = Counting(), Counting()

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        made = (later if interrupted else first)(batch)
        if not interrupted and len(first.seen) == FRAGMENTS * PER_FILE:
            interrupted.append(True)
            if during is not None:
                during.run(library, library.dataset(uri))
        return made

    interrupted: list[bool] = []
    schema = pa.schema([("slow", pa.int64())])
    tw.dataset(uri, engine="local").add_columns(tw.batch_udf(output_schema=schema)(function), read_columns=["id", "a"])
    return first, later


@pytest.mark.parametrize("what", [*WHILE_ADDING, "rows are appended"])
@pytest.mark.parametrize("library", [tw, lance], ids=["by us", "by pylance"])
def test_a_long_add_columns_keeps_what_it_has(table: Table, tmp_path: Path, what: str, library: Any) -> None:
    """Whatever others do meanwhile, only rows that are new, or whose inputs changed, are computed."""
    uri = table.copy(tmp_path)
    if what == "rows are appended":
        during, again = Append(new_rows(table.model, 300, 3), table.model), frozenset({300, 301, 302})
    else:
        during, again = WHILE_ADDING[what]
    if library is lance and isinstance(during, Update) and during.mode == "rewrite_columns":
        ((column, value),) = during.sets.items()
        during = PatchByLance(column, value.value({}), frozenset(during_ids(during)))
    first, later = _adding(uri, during, library)
    assert sorted(first.seen) == list(range(FRAGMENTS * PER_FILE))
    assert set(later.seen) <= again
    assert_serial(uri, table.model, TRIPLE, during)
    assert_clean(uri)
    assert tw.dataset(uri).version == 3


def during_ids(change: Update) -> list[int]:
    """The keys that an update by key names."""
    return [int(number) for number in re.findall(r"\d+", change.where.sql)]


def test_new_columns_past_an_update_that_moves_some_rows_and_patches_others(table: Table, tmp_path: Path) -> None:
    """Values from the old input for patched rows beside values from the new for moved ones would be no serial order."""
    uri = table.copy(tmp_path)
    sets = {"a": literal(5), "b": literal("x"), "st.x": literal(9)}  # wide enough that a single row is cheaper moved
    update = Update(sets, ids_in({1, *range(8, 16)}), "auto")
    first, later = _adding(uri, update)
    transaction = tw.dataset(uri).read_transaction(2)
    assert transaction.operation.new_fragments and transaction.operation.fields_modified, "the update is not mixed"
    assert len(first.seen) == FRAGMENTS * PER_FILE
    assert set(later.seen) <= {1, *range(8, 16)}
    assert_serial(uri, table.model, TRIPLE, update)


# ------------------------------------------------------------------------------------------------------- pylance too


@pytest.mark.parametrize(("table", "ours", "theirs", "at"), _on_tables(0), indirect=["table"])
def test_ours_past_pylance(table: Table, tmp_path: Path, ours: str, theirs: str, at: Situation) -> None:
    """pylance was faster: prepared changes as the table says, calls always."""
    mine, other = make(ours, ROWS[at], table.model, ours=True), make_by_lance(theirs, THEIRS, table.model)
    uri, again = table.copy(tmp_path), table.copy(tmp_path, "again")
    transaction, stale = prepare(tw.dataset(uri), mine), tw.dataset(again)
    for place in (uri, again):
        other.run(lance, lance.dataset(place))
    _check_commit(uri, table.model, transaction, mine, other, at)
    mine.run(tw, stale)
    assert_serial(again, table.model, mine, other)


@pytest.mark.parametrize(("table", "theirs", "ours", "at"), _on_tables(1), indirect=["table"])
def test_pylance_past_ours(table: Table, tmp_path: Path, theirs: str, ours: str, at: Situation) -> None:
    """We were faster: pylance's own rebase relies on what our transaction says. It may refuse, it must not err."""
    mine, other = make(ours, THEIRS, table.model, ours=False), make_by_lance(theirs, ROWS[at], table.model)
    if isinstance(other, Update):
        other = Update({"b": literal("theirs")}, other.where)
    if isinstance(other, AddColumns | Append):
        other = make(theirs, (), table.model, ours=True)
    uri = table.copy(tmp_path)
    stale = lance.dataset(uri)
    mine.run(tw, tw.dataset(uri))
    if theirs in ("update columns", "add column"):  # these it does not run again by itself
        refused = False
        try:
            other.run(lance, stale)
        except CommitConflictError:
            refused = True
        assert_serial(uri, table.model, *((mine,) if refused else (mine, other)))
    else:
        other.run(lance, stale)
        assert_serial(uri, table.model, mine, other)


# ------------------------------------------------------------------------------------- transactions that don't tell


APPEND = 100
"""Where a Transaction holds an Append; other operations have numbers above it."""

FRAGMENT_LISTS = {1, 2}
"""Where Delete (1) and Update (2) list the fragments that they changed."""


def _without(operation: bytes, fragment: int) -> bytes:
    """A Delete or Update that does not name a fragment. An id is field 1 of a DataFragment, absent if it is 0."""

    def names_it(number: int, kind: int, payload: bytes) -> bool:
        if kind != 2 or number not in FRAGMENT_LISTS:
            return False
        ids = [value[0] for n, k, value in parse(payload) if (n, k) == (1, 0)]
        return (ids or [0]) == [fragment]

    return build([each for each in parse(operation) if not names_it(*each)])


def _silence(uri: str, how: str) -> None:
    """Change what the newest version says that it did; its manifest stays as it is."""

    def lie(number: int, kind: int, payload: bytes) -> tuple[int, int, bytes]:
        if kind != 2 or number < APPEND:
            return number, kind, payload
        return (APPEND, 2, b"") if how == "says it appended" else (number, kind, _without(payload, 0))

    path = latest_manifest(uri)
    parts = ManifestBytes.read(path)
    changed = build([lie(*each) for each in parse(parts.transaction)])
    assert changed != parts.transaction, "nothing to keep silent about"
    for file in Path(uri, "_transactions").glob("*.txn"):
        if file.read_bytes() == parts.transaction:
            file.unlink()
            file.write_bytes(changed)
    parts.transaction = changed
    path.unlink()
    parts.write(path)


SILENT: dict[str, Change] = {
    "deleted": Delete(ids_in({1, 2, 9})),
    "moved": Update({"a": literal(5)}, ids_in({1, 2, 9})),
    "patched": PatchByLance("a", 5, frozenset({1, 2, 9})),
}


@pytest.mark.parametrize("what", SILENT)
@pytest.mark.parametrize("how", ["leaves a fragment out", "says it appended"])
@pytest.mark.parametrize("rows", ["same rows", "other rows"])
@pytest.mark.parametrize("verb", ["delete", "update rows", "update columns", "add column"])
def test_what_a_foreign_transaction_keeps_silent_about(
    both_tables: list[Table], tmp_path: Path, what: str, verb: str, rows: Situation, how: str
) -> None:
    """A version changed fragment 0, and its transaction does not tell: the two manifests do.

    The two kinds of table take turns, so that every two of the other circumstances meet on both.
    """
    turn = list(SILENT).index(what) + VERBS.index(verb) + (how == "says it appended") + (rows == "same rows")
    table = both_tables[turn % 2]
    uri = table.copy(tmp_path)
    theirs, mine = SILENT[what], make(verb, ROWS[rows], table.model, ours=True)
    prepared = prepare(tw.dataset(uri), mine)
    theirs.run(lance, lance.dataset(uri))
    _silence(uri, how)
    assert read(uri) == theirs.after(table.model, 2).values()
    aside = str(tmp_path / "aside.lance")
    shutil.copytree(uri, aside)
    done = (theirs,) if _outcome(uri, prepared) == Outcome.RETRY else (mine, theirs)
    assert_serial(uri, table.model, *done)
    mine.run(tw, tw.dataset(aside, version=1))
    assert_serial(aside, table.model, mine, theirs)


@pytest.mark.parametrize("says_rows", [True, False], ids=["with rows", "without rows"])
def test_columns_patched_without_saying_which_rows(table: Table, tmp_path: Path, says_rows: bool) -> None:
    """Without offsets every row of the fragment may have changed: a change that was made from the column runs again."""
    uri = table.copy(tmp_path)
    theirs = PatchByLance("a", 5, THEIRS, says_rows)
    ours = Update({"b": _text_of("a")}, ids_in(ROWS["other rows"]), "rewrite_columns")
    prepared = prepare(tw.dataset(uri), ours)
    theirs.run(lance, lance.dataset(uri))
    stale = tw.dataset(uri, version=1)
    assert _outcome(uri, prepared) == (Outcome.REBASE if says_rows else Outcome.RETRY)
    if not says_rows:
        ours.run(tw, stale)
    assert_serial(uri, table.model, ours, theirs)


# ------------------------------------------------------------------------------------------------------ random races

_VALUES = {
    "a": [
        literal(7),
        plus("a", 1),
        plus("id", 3),
        Expression("length(b)", lambda r: r["b"] and len(r["b"]), frozenset("b")),
    ],
    "b": [literal("new"), _upper("b"), _text_of("a"), _text_of("id")],
    "st.x": [literal(1), plus("id", 2), plus("a", 5)],
}


@st.composite
def _racing(draw: st.DrawFn, model: Model, number: int, library: Any) -> Change:
    ids = ids_in(draw(st.sets(st.sampled_from(sorted(model.rows)), min_size=1, max_size=12)))
    able = [name for name in _VALUES if library is tw or "." not in name]
    names = draw(st.sets(st.sampled_from(able), min_size=1, max_size=2 if library is tw else 1))
    sets = {name: draw(st.sampled_from(_VALUES[name])) for name in sorted(names)}
    modes = ["auto", "rewrite_rows", "rewrite_columns"]
    update = st.builds(Update, st.just(sets), st.just(ids), st.sampled_from(modes))
    added = AddColumns(f"n{number}", pa.int64(), draw(st.sampled_from(_VALUES["st.x"][1:])))
    append = Append(new_rows(model, 1000 * number, draw(st.integers(1, 5))), model, 3)
    return draw(st.one_of(st.just(Delete(ids)), update, update, st.sampled_from([added, append])))


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=deep(1, 2) * settings.default.max_examples)
@given(data=st.data(), stable=st.booleans(), writers=st.integers(2, 3), budget=st.sampled_from(list(BUDGETS)))
def test_random_stale_writers(
    both_tables: list[Table], data: st.DataObject, stable: bool, writers: int, budget: str
) -> None:
    """Two or three writers made from one version; the first may be pylance. Some serial order comes out."""
    table = both_tables[stable]
    libraries = [data.draw(st.sampled_from([tw, tw, lance])), *[tw] * (writers - 1)]
    changes = [data.draw(_racing(table.model, number, library)) for number, library in enumerate(libraries, 1)]
    with tempfile.TemporaryDirectory(prefix="tablewright-races-") as folder, cached(budget):
        uri = table.copy(Path(folder))
        handles = [library.dataset(uri) for library in libraries]
        for library, handle, change in zip(libraries, handles, changes, strict=True):
            change.run(library, handle)
        assert_serial(uri, table.model, *changes)
        assert_clean(uri)
