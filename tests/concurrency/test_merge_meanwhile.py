"""Other writers of all kinds between the match of a merge and its commit.

Theirs is there when ours, which has looked at an older version, comes to commit: the rows and the report are those of
"theirs, then ours". Where that can't be (their version has no key column any more), it is a typed error. A merge never
loses a row, never makes two of one key, and leaves no file behind, whatever came of it.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.stage import ADDRESS, set_up, within
from tests.depth import deep, stride
from tests.property.merge_change import CLAUSES, COUNTS, AnyMerge, Merge, OrderedMerge, newer
from tests.property.row_model import (
    COLUMNS,
    AddColumns,
    AddNulls,
    Append,
    Change,
    Delete,
    DropColumns,
    Model,
    Predicate,
    Rename,
    Update,
    Widen,
    always,
    assert_reads_as,
    created,
    ids_in,
    literal,
    new_rows,
    plus,
    table_of,
)

import tablewright as tw
from tablewright.errors import CommitConflict, TablewrightError
from tablewright.storage import open_store
from tablewright.testing import FaultyStore, Pause, first_of, on_call, seeded_world

MATCHED, NEW = frozenset({1, 2, 5}), frozenset({100, 101})
"""Keys of our merge that the table has in the beginning, and that it has not."""
OPEN_SEED, THEIR_SEED = 6, 77
"""Writers whose worlds have one seed give their files the same names: the later one would replace the other's."""


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)
    monkeypatch.setattr("tablewright.engine.local.default_threads", lambda: 1)


# ------------------------------------------------------------------------------------------------------------- tables
@dataclass(frozen=True)
class Table:
    """A table of several versions to start from, and its model."""

    path: Path
    model: Model
    first: Model
    stable: bool

    def copy(self, target: Path) -> str:
        shutil.copytree(self.path, target, copy_function=os.link)
        return str(target)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """Three fragments of four rows, row 7 deleted; with addresses and with stable ids, without and with an index."""
    made = []
    for stable, indexed in [(False, False), (True, True), (True, False), (False, True)]:
        path = tmp_path_factory.mktemp("meanwhile") / "t.lance"
        first = created(tw, str(path), 12, per_file=4, stable=stable)
        tw.dataset(path).delete("id = 7")
        if indexed:
            lance.dataset(str(path)).create_scalar_index("id", "BTREE")
        made.append(Table(path, Delete(ids_in({7})).after(first, 2), first, stable))
    return made


@pytest.fixture(autouse=True, scope="module")
def _before_the_stage(tables: list[Table]) -> None:
    """The tables are made while addresses are still addresses."""


# ------------------------------------------------------------------------------------------- the other writers
@dataclass(frozen=True)
class Rekey:
    """A row gets another key, in its place or elsewhere."""

    old: int
    new: int
    mode: str

    def run(self, library: Any, dataset: Any) -> None:
        dataset.update({"id": str(self.new)}, where=f"id = {self.old}", write_mode=self.mode)

    def after(self, model: Model, version: int) -> Model:
        rows = dict(model.rows)
        row = rows.pop(self.old, None)
        if row is None:
            return model
        return replace(
            model, rows={**rows, self.new: replace(row, values={**row.values, "id": self.new}, updated=version)}
        )


@dataclass(frozen=True)
class CastKey:
    """The key column becomes one of 32 bits."""

    def run(self, library: Any, dataset: Any) -> None:
        dataset.alter_columns({"path": "id", "data_type": pa.int32()})

    def after(self, model: Model, version: int) -> Model:
        rows = {id: replace(row, updated=version) for id, row in model.rows.items()}
        return replace(model, columns={**model.columns, "id": pa.int32()}, rows=rows)


@dataclass(frozen=True)
class Compact:
    """All fragments become one."""

    def run(self, library: Any, dataset: Any) -> None:
        dataset.optimize.compact_files()

    def after(self, model: Model, version: int) -> Model:
        return model


@dataclass(frozen=True)
class Index:
    """A new index, on the key or not."""

    column: str
    kind: str

    def run(self, library: Any, dataset: Any) -> None:
        dataset.create_scalar_index(self.column, self.kind, replace=True)

    def after(self, model: Model, version: int) -> Model:
        return model


@dataclass(frozen=True)
class RestoreFirst:
    """The first version is there again."""

    first: Model = field(repr=False)

    def run(self, library: Any, dataset: Any) -> None:
        dataset.checkout_version(1).restore()

    def after(self, model: Model, version: int) -> Model:
        return replace(self.first, next_row_id=model.next_row_id)


@dataclass(frozen=True)
class Overwrite:
    """Other rows take the place of all."""

    rows: tuple[Any, ...]
    model: Model = field(repr=False)

    def run(self, library: Any, dataset: Any) -> None:
        target = dataset if library is tw else dataset.uri
        library.write_dataset(table_of(self.model, list(self.rows)), target, mode="overwrite")

    def after(self, model: Model, version: int) -> Model:
        return Append(self.rows, model).after(replace(model, rows={}), version)


@dataclass(frozen=True)
class Theirs:
    """What another writer does, and with which library."""

    library: Any
    make: Callable[[Table], Change]


def _theirs() -> dict[str, Theirs]:
    both: dict[str, Callable[[Table], Change]] = {
        "append of a new key": lambda t: Append((*new_rows(t.model, 100, 1), *new_rows(t.model, 300, 1)), t.model),
        "append of other keys": lambda t: Append(new_rows(t.model, 300, 3), t.model),
        "delete of a matched row": lambda t: Delete(ids_in({2})),
        "delete of a matched fragment": lambda t: Delete(ids_in({0, 1, 2, 3})),
        "delete of other rows": lambda t: Delete(ids_in({0, 4, 9})),
        "update of a matched row": lambda t: Update({"a": literal(50)}, ids_in({1, 2}), "rewrite_rows"),
        "update of other rows": lambda t: Update({"a": plus("a", 50)}, ids_in({0, 4, 9}), "rewrite_rows"),
        "an upsert of a new key": lambda t: Merge(
            tuple({**row, "a": 60} for i in (2, 3, 100, 300) for row in new_rows(t.model, i, 1)), t.model
        ),
        "an upsert of other keys": lambda t: Merge(
            tuple(row for i in (0, 3, 300) for row in new_rows(t.model, i, 1)), t.model
        ),
        "a column of values": lambda t: AddColumns("z", pa.int64(), plus("id", 1)),
        "a column of nulls": lambda t: AddNulls("z", pa.int64()),
        "a dropped column": lambda t: DropColumns(("b",)),
        "a renamed column": lambda t: Rename("b", "bb"),
        "a wider column": lambda t: Widen("a"),
        "an overwrite": lambda t: Overwrite(
            tuple(row for i in (1, 3, 100) for row in new_rows(t.model, i, 1)), t.model
        ),
        "a restored version": lambda t: RestoreFirst(t.first),
    }
    ours: dict[str, Callable[[Table], Change]] = {
        "columns of a matched row": lambda t: Update({"a": literal(50)}, ids_in({1, 2}), "rewrite_columns"),
        "columns of other rows": lambda t: Update({"a": plus("a", 50)}, ids_in({0, 4, 9}), "rewrite_columns"),
        "other columns of a matched row": lambda t: Update({"b": literal("theirs")}, ids_in({2, 5}), "rewrite_columns"),
        "a key in place": lambda t: Rekey(3, 100, "rewrite_columns"),
        "a key that moves": lambda t: Rekey(3, 100, "rewrite_rows"),
        "a matched key in place": lambda t: Rekey(2, 500, "rewrite_columns"),
        "a matched key that moves": lambda t: Rekey(2, 500, "rewrite_rows"),
    }
    theirs: dict[str, Callable[[Table], Change]] = {
        "a compaction": lambda t: Compact(),
        "an index on the key": lambda t: Index("id", "BTREE"),
        "an index": lambda t: Index("a", "BITMAP"),
        "a narrower key": lambda t: CastKey(),
    }
    return (
        {f"our {name}": Theirs(tw, make) for name, make in (both | ours).items()}
        | {f"pylance's {name}": Theirs(lance, make) for name, make in both.items()}
        | {name: Theirs(lance, make) for name, make in theirs.items()}
    )


# ------------------------------------------------------------------------------------------- our merges
def _source(model: Model, ids: frozenset[int], *, partial: bool = False) -> tuple[Any, ...]:
    rows = [{**new_rows(model, i, 1)[0], "a": 40 + i} for i in sorted(ids)]
    return tuple({"id": row["id"], "a": row["a"]} for row in rows) if partial else tuple(rows)


def _less(number: int) -> Predicate:
    return Predicate(
        f"id > 4 and a < {number}", lambda row: row["a"] is not None and row["id"] > 4 and row["a"] < number
    )


def _ordered(model: Model, name: str, **options: Any) -> OrderedMerge:
    """The clauses of this name: 1 is to go, 5 gets the source's values, others those of an expression."""
    ops = {1: "d", 5: "all"}
    rows = tuple({**row, "op": ops.get(row["id"], "u")} for row in _source(model, MATCHED | NEW, partial=True))
    return OrderedMerge(rows, model, CLAUSES[name], **options)


OURS: dict[str, Callable[[Model], AnyMerge]] = {
    "upsert": lambda m: Merge(_source(m, MATCHED | NEW), m),
    "partial upsert": lambda m: Merge(_source(m, MATCHED | NEW, partial=True), m),
    "find or create": lambda m: Merge(_source(m, MATCHED | NEW), m, matched="nothing"),
    "update what is newer": lambda m: Merge(
        _source(m, MATCHED | NEW, partial=True), m, condition=newer("a"), inserts=False
    ),
    "fail": lambda m: Merge(_source(m, NEW), m, matched="fail"),
    "delete": lambda m: Merge(_source(m, MATCHED | NEW), m, matched="delete", inserts=False),
    "replace": lambda m: Merge(_source(m, MATCHED | NEW), m, by_source=_less(8)),
    "delete what the source lacks": lambda m: Merge(
        _source(m, MATCHED | NEW), m, matched="nothing", inserts=False, by_source=always()
    ),
    "updates and deletes in order": lambda m: _ordered(m, "updates and deletes in order"),
    "some inserts": lambda m: _ordered(m, "some inserts"),
    "inserts in order": lambda m: _ordered(m, "inserts in order"),
    "of what the source lacks": lambda m: _ordered(m, "of what the source lacks"),
    "of every kind": lambda m: _ordered(m, "of every kind"),
    "of every kind, serializable": lambda m: _ordered(m, "of every kind", isolation="serializable"),
}


ORDERED = [name for name in OURS if isinstance(OURS[name](Model(COLUMNS)), OrderedMerge)]


# ------------------------------------------------------------------------------------------- what holds
def _open(uri: str, library: Any = tw, **options: Any) -> Any:
    if library is lance:
        return lance.dataset(uri, **options)
    with within(seeded_world(open_store(uri), OPEN_SEED)):
        return tw.dataset(ADDRESS, **options)


def _left(uri: str) -> set[str]:
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(_open(uri), paths)


def _race(uri: str, ours: AnyMerge, run_theirs: Callable[[], Any], moment: str) -> tuple[Any, int]:
    """Theirs comes before we publish, or when we have only opened the table. What came of it, and their version."""
    done = list[int]()

    def theirs(call: Any = None) -> None:
        run_theirs()
        done.append(lance.dataset(uri).version)

    plan = on_call(Pause(theirs), method="put_if_absent", path="_versions/*", nth=0) if moment == "late" else None
    with within(seeded_world(FaultyStore(open_store(uri), plan), 5)):
        dataset = tw.dataset(ADDRESS)
        if moment == "early":
            theirs()
        try:
            outcome: Any = ours.run(tw, dataset)
        except TablewrightError as error:
            outcome = error
    (version,) = done
    return outcome, version


def _possible(ours: AnyMerge, model: Model) -> bool:
    """Whether the columns that it needs are still there. A narrower key takes them too: each of its values fits."""
    return all(name in model.columns for name in ours.columns)


def _orders(table: Table, theirs: Change, ours: AnyMerge, version: int) -> list[tuple[Any, Model, bool]]:
    """What may come out, if something does: our report, the rows, and whether their ids are known too.

    First theirs, then ours. The other way round where neither has to know of the other: a column's name, or rows that
    come while we delete those that the source lacks.
    """
    orders = list[tuple[Any, Model, bool]]()
    between = theirs.after(table.model, version)
    if _possible(ours, between) and not ours.fails(between):
        orders.append((ours.count(between), ours.after(between, version + 1), table.stable))
    if ours.leaves_new_rows or isinstance(theirs, Rename | DropColumns):
        rows = theirs.after(ours.after(table.model, version + 1), version)
        orders.append((ours.count(table.model), rows, False))
    return orders


def _judge(uri: str, table: Table, theirs: Change, ours: AnyMerge, outcome: Any, version: int) -> str:
    """What came of it: `done`, `refused`, a `conflict` to be tried again, or one that is final (`stop`)."""
    between = theirs.after(table.model, version)
    expected, stable, result = between, table.stable, "done"
    if isinstance(outcome, CommitConflict):
        result = "conflict" if outcome.retryable else "stop"
    elif isinstance(outcome, TablewrightError):
        assert not _possible(ours, between) or ours.fails(between), f"refused: {outcome!r}"
        result = "refused"
    else:
        version += 1
        orders = [order for order in _orders(table, theirs, ours, version - 1) if order[0] == outcome]
        assert orders, f"no order makes it report {outcome}"
        ids = set(_open(uri).to_table(columns=["id"])["id"].to_pylist())
        _, expected, stable = next((order for order in orders if order[1].rows.keys() == ids), orders[0])
    for library in (tw, lance):
        dataset = _open(uri, library)
        dataset.validate()
        assert dataset.version == version
        assert_reads_as(dataset, expected, stable=stable)
    assert not _left(uri), f"left behind: {_left(uri)}"
    return result


def _pairs(name: str) -> list[tuple[str, Theirs]]:
    """All others for an upsert; for some merges a third of what pylance does as we do it, for the rest half of all.

    In CI it is a quarter for the rest, and of merges with ordered clauses a twelfth; these meet all in `make soak`.
    """
    pairs = list(_theirs().items())
    if name == "upsert":
        return pairs
    if name in ("find or create", "replace"):
        return [pair for n, pair in enumerate(pairs) if not pair[0].startswith("pylance's") or n % 3 == len(name) % 3]
    rest = [each for each in OURS if each not in ("upsert", "find or create", "replace")]
    step = stride(12) if name in ORDERED else 4 // deep(1, 2)
    return pairs[rest.index(name) % step :: step]


def _run(uri: str, library: Any, change: Change) -> None:
    with within(seeded_world(open_store(uri), THEIR_SEED)):
        change.run(library, library.dataset(uri))


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_theirs_then_ours(name: str, tables: list[Table], tmp_path: Path) -> None:
    wrong = list[str]()
    for number, (their_name, theirs) in enumerate(_pairs(name)):
        table = tables[number % 2 * 2 if isinstance(theirs.make(tables[0]), CastKey) else (number + len(name)) % 4]
        moment = ["early", "late"][number // 4 % 2]
        mode = ["auto", "rewrite_rows", "rewrite_columns"][number % 3]
        ours, change = replace(OURS[name](table.model), mode=mode), theirs.make(table)
        uri = table.copy(tmp_path / f"{number}.lance")
        try:
            outcome, version = _race(uri, ours, lambda: _run(uri, theirs.library, change), moment)  # noqa: B023
            result = _judge(uri, table, change, ours, outcome, version)
            assert result in (["stop"] if isinstance(change, Overwrite | RestoreFirst) else ["done", "refused"]), result
        except Exception as error:
            wrong.append(f"{their_name}, {moment}, {mode}, {table.path}: {error!r:.600}")
    assert not wrong, "\n".join(wrong)


# ------------------------------------------------------------------------------------------------- what more can happen
@pytest.mark.parametrize("moment", ["early", "late"])
def test_the_key_column_goes(moment: str, tables: list[Table], tmp_path: Path) -> None:
    """Dropped, it is an error that names it; the other columns stay as they are."""
    for number, name in enumerate(OURS):
        if name in ("delete what the source lacks", "of what the source lacks"):  # then we came first
            continue
        uri = tables[number % 4].copy(tmp_path / f"{number}.lance")
        ours = OURS[name](tables[number % 4].model)
        outcome, version = _race(uri, ours, lambda: _run(uri, tw, DropColumns(("id",))), moment)  # noqa: B023
        assert isinstance(outcome, TablewrightError) and "id" in str(outcome), name
        found = _open(uri)
        assert (found.version, found.count_rows(), found.schema.names) == (version, 11, ["a", "b", "st", "v"]), name
        assert not _left(uri), name


def test_the_key_gets_another_name(tables: list[Table], tmp_path: Path) -> None:
    """A merge knows its columns by their ids: that does not stop it, unless it has to look again."""
    for number, moment in enumerate(["early", "late"]):
        table = tables[number]
        uri = table.copy(tmp_path / f"{moment}.lance")
        ours = OURS["upsert"](table.model)
        outcome, _ = _race(uri, ours, lambda: _run(uri, tw, Rename("id", "key")), moment)  # noqa: B023
        assert outcome == ours.count(table.model)
        renamed = lance.dataset(uri).to_table()
        assert renamed.column_names == ["key", "a", "b", "st", "v"]
        rows = ours.after(table.model, 9).values()
        assert {row.pop("key"): row for row in renamed.to_pylist()} == {
            id: {name: value for name, value in row.items() if name != "id"} for id, row in rows.items()
        }


def test_other_keys_do_not_disturb(tables: list[Table], tmp_path: Path) -> None:
    """One attempt is enough where nobody touched a row or a key of ours, whatever else came."""
    disturbing = {
        "an upsert of a new key",
        "append of a new key",
        "a compaction",
        "a wider column",
        "a column of values",
    }
    for number, (name, theirs) in enumerate(_theirs().items()):
        plain = name.removeprefix("our ").removeprefix("pylance's ")
        if plain in disturbing or not plain.startswith(
            ("append", "an upsert", "delete of o", "update of o", "columns of o")
        ):
            continue
        table = tables[number % 4]
        uri = table.copy(tmp_path / f"{number}.lance")
        stale = _open(uri)
        _run(uri, theirs.library, theirs.make(table))
        ours = replace(OURS["upsert"](table.model), retries=0, mode="rewrite_rows")
        result = ours.configured(stale).execute(ours.source)
        assert (result["num_attempts"], result["num_inserted_rows"], result["num_updated_rows"]) == (1, 2, 3), name


def test_null_keys_never_meet(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    nulls = pa.table({"id": pa.array([None, None, 5], pa.int64()), "by": ["p", "q", "r"]})
    lance.write_dataset(nulls, uri)
    stale = _open(uri)
    lance.write_dataset(nulls.slice(0, 2), uri, mode="append")
    upsert = stale.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().conflict_retries(0)
    assert upsert.execute(nulls)["num_attempts"] == 1
    assert _open(uri).count_rows() == 7


def test_no_retries_is_a_conflict(tables: list[Table], tmp_path: Path) -> None:
    """With nothing left behind, for each kind of merge that another row would change."""
    for number, name in enumerate(["upsert", "partial upsert", "find or create", "fail", "replace"]):
        table = tables[number % 4]
        uri = table.copy(tmp_path / f"{number}.lance")
        ours = replace(OURS[name](table.model), retries=0)
        theirs = _theirs()["pylance's append of a new key"].make(table)
        outcome, version = _race(uri, ours, lambda: _run(uri, lance, theirs), "late")  # noqa: B023
        assert isinstance(outcome, CommitConflict) and outcome.retryable, name
        assert _judge(uri, table, theirs, ours, outcome, version) == "conflict"


# ------------------------------------------------------------------------------------------- one after the other
def _next(chance: random.Random, model: Model, number: int) -> tuple[Any, Change]:
    """A change of a table in any state, by either library, most of them about rows and keys of ours."""
    library = chance.choice([tw, tw, lance])
    there = sorted(model.rows)
    mine = [id for id in there if id in MATCHED | NEW]
    some = {*chance.sample(mine, min(len(mine), 2)), *chance.sample(there, min(len(there), 2))}
    free = [id for id in sorted(NEW | {2, 7, 300 + number}) if id not in model.rows]
    if library is tw and chance.random() < 0.3:
        name = f"z{number}"
        ways: list[Change] = [
            AddColumns(name, pa.int64(), plus("id", 1)),
            AddNulls(name, pa.int64()),
            Update({"a": literal(number)}, ids_in(some), "rewrite_columns"),
            Rekey(chance.choice(there), free[0], chance.choice(["rewrite_rows", "rewrite_columns"])),
        ]
        if model.columns["a"] == pa.int32():
            ways.append(Widen("a"))
        return library, chance.choice(ways)
    if library is lance and chance.random() < 0.4:
        return library, chance.choice([Compact(), Index("b", "BITMAP")])
    upserted = {*some, *free[:1]}
    rows = tuple({**new_rows(model, id, 1)[0], "a": 45 + number} for id in upserted)
    partial = tuple({"id": row["id"], "a": row["a"]} for row in rows)
    return library, chance.choice(
        [
            Append(new_rows(model, free[-1], 1), model),
            Delete(ids_in(some)),
            Update({"a": literal(number)}, ids_in(some), "rewrite_rows"),
            Merge(rows, model),
            Merge(partial, model),
            Merge(partial, model, matched="delete", inserts=False),
        ]
    )


AGAIN = ["upsert", "partial upsert", "find or create", "update what is newer", "delete"]


@pytest.mark.slow
@pytest.mark.parametrize("group", range(4))
def test_others_again_and_again(group: int, tables: list[Table], tmp_path: Path) -> None:
    """At our first tries to publish somebody was faster. What an attempt keeps of the one before has to hold."""
    for seed in range(group, deep(16, 48), 4):
        chance = random.Random(seed)
        table = tables[seed % 4]
        uri = table.copy(tmp_path / f"{seed}.lance")
        name = chance.choice([*AGAIN, *ORDERED[:3]]) if seed % 2 else chance.choice(AGAIN)
        ours = replace(OURS[name](table.model), mode=chance.choice(["auto", "rewrite_rows", "rewrite_columns"]))
        states, told = [table.model], list[str]()

        def rival(call: Any, uri: str = uri, chance: random.Random = chance, seed: int = seed) -> None:
            library, change = _next(chance, states[-1], len(states))  # noqa: B023
            told.append(f"{library.__name__}: {change!r:.200}")  # noqa: B023
            with within(seeded_world(open_store(uri), 100 * seed + len(states))):  # noqa: B023
                change.run(library, library.dataset(uri))
            states.append(change.after(states[-1], int(lance.dataset(uri).version)))  # noqa: B023

        plans = [on_call(Pause(rival), method="put_if_absent", path="_versions/*", nth=n) for n in range(1 + seed % 4)]
        try:
            with within(seeded_world(FaultyStore(open_store(uri), first_of(*plans)), 100 * seed + 99)):
                counts = ours.run(tw, tw.dataset(ADDRESS))
            assert 2 <= len(states) <= 2 + seed % 4  # a second compaction does nothing
            version, before = int(lance.dataset(uri).version), states[-1]
            assert counts == ours.count(before), f"reported {counts}, and it is {ours.count(before)}"
            for library in (tw, lance):
                _open(uri, library).validate()
                assert_reads_as(_open(uri, library), ours.after(before, version), stable=False)
            assert not _left(uri)
        except Exception as error:
            error.add_note(f"seed {seed}, {name}, {ours.mode}, stable {table.stable}:\n" + "\n".join(told))
            raise


# ------------------------------------------------------------------------------------------- committed later
_COMMIT = """
import pickle, sys
import tablewright as tw
path, uri = sys.argv[1:]
with open(path, "rb") as file:
    transaction = pickle.load(file)
try:
    print("version", tw.CommitBuilder(uri).execute(transaction).version)
except tw.errors.CommitConflict as conflict:
    print("conflict", conflict.retryable)
"""


@pytest.mark.parametrize(
    "name", ["upsert", "partial upsert", "find or create", "delete", "replace", "updates and deletes in order"]
)
def test_committed_after_others(name: str, tables: list[Table], tmp_path: Path) -> None:
    """A transaction that waits: past what does not matter to it, a conflict where it would have to look again."""
    passes = {"append of other keys", "delete of other rows", "an upsert of other keys"}
    for number, (their_name, theirs) in enumerate(_theirs().items()):
        plain = their_name.removeprefix("our ").removeprefix("pylance's ")
        if plain not in passes | {
            "append of a new key",
            "delete of a matched row",
            "an upsert of a new key",
            "a key in place",
        }:
            continue
        table = tables[number % 4]
        uri = table.copy(tmp_path / f"{number}.lance")
        ours, change = OURS[name](table.model), theirs.make(table)
        handle = _open(uri)
        transaction, result = ours.configured(handle).execute_uncommitted(ours.source)
        counts = tuple(result[count] for count in COUNTS)
        assert counts == ours.count(table.model) and _open(uri).version == handle.version
        _run(uri, theirs.library, change)
        version = int(lance.dataset(uri).version)
        outcome: Any = counts
        try:
            tw.CommitBuilder(handle).execute(transaction)
        except CommitConflict as conflict:
            outcome = conflict
        if isinstance(outcome, CommitConflict):  # its files stay: they belong to whoever holds the transaction
            assert outcome.retryable and plain not in passes, their_name
            assert_reads_as(_open(uri), change.after(table.model, version), stable=table.stable)
        else:
            assert _judge(uri, table, change, ours, outcome, version) == "done", their_name


def test_committed_by_another_process(tables: list[Table], tmp_path: Path) -> None:
    """There the transaction has no keys with it: it passes on the version that it was made from, and on no other."""
    environment = {**os.environ, "PYTHONPATH": str(Path(tw.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
    for theirs, expected in ((None, "version"), ("our append of other keys", "conflict True")):
        uri = tables[1].copy(tmp_path / f"{expected}.lance")
        ours = OURS["upsert"](tables[1].model)
        transaction, _ = ours.configured(_open(uri)).execute_uncommitted(ours.source)
        letter = tmp_path / "letter"
        letter.write_bytes(pickle.dumps(transaction))
        if theirs is not None:
            _run(uri, tw, _theirs()[theirs].make(tables[1]))
        before = int(lance.dataset(uri).version)
        done = subprocess.run(
            [sys.executable, "-c", _COMMIT, str(letter), uri],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(expected)
        if theirs is None:
            assert done.stdout.strip() == f"version {before + 1}"
            assert_reads_as(_open(uri), ours.after(tables[1].model, before + 1), stable=True)
