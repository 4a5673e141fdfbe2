"""Merges that add columns (`schema_evolution=True`): a fault at every storage call, and other writers at every call.

The columns come with a version of their own, just before that of the rows. So a reader finds one of three states, each
whole: as it was; with new columns that are null; merged. A merge that failed with an error left no file that no version
needs, and works when run again. Of several writers those that returned took effect in some order; one that was refused
could not have come after the others either. All that stays of it are null columns, where its last attempt came so far.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.scene import FAULTS, Rows, Scene, calls_of, leftovers, newest, one_thread, small_scene
from tests.concurrency.stage import (
    ADDRESS,
    Judged,
    copied,
    listing,
    makes_sense,
    new_store,
    on_stage,
    set_up,
    within,
)
from tests.depth import deep
from tests.property.merge_change import Merge
from tests.property.row_model import (
    COLUMNS,
    AddColumns,
    AddNulls,
    Append,
    Change,
    Delete,
    DropColumns,
    Model,
    Rename,
    Update,
    Widen,
    always,
    ids_in,
    literal,
    new_rows,
    plus,
)

import tablewright as tw
from tablewright.errors import CommitConflict, CommitUnknown, InvalidRequest, StorageError, TablewrightError
from tablewright.storage import Store, open_store
from tablewright.testing import (
    Call,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    Pause,
    Plan,
    SimulatedCrash,
    at_call,
    first_of,
    interleave,
    on_call,
    seeded_world,
)

EMPTY = Model(COLUMNS)


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables stand in the test's own world; a writer is one thread, so that its calls come in one order."""
    set_up(monkeypatch)
    one_thread(monkeypatch)


# ------------------------------------------------------------------------------------------------------- the merges
@dataclass(frozen=True)
class Evolving(Merge):
    """A merge whose source has columns that the table may lack."""

    adds: Mapping[str, pa.DataType] = field(default_factory=dict)

    def configured(self, dataset: Any) -> Any:
        return super().configured(dataset).schema_evolution(True)

    def widened(self, model: Model) -> Model:
        """The table with the columns that the source has, null where they are new."""
        for name in self.rows[0]:
            if name not in model.columns:
                model = AddNulls(name, self.model.columns[name]).after(model, 0)
        return model

    def after(self, model: Model, version: int) -> Model:
        return super().after(self.widened(model), version)


def _evolving(ids: set[int], adds: Mapping[str, pa.DataType], *columns: str, **more: Any) -> Evolving:
    """New columns, and `a` with the number 40 and more; all columns of the table, or some."""
    model = Model({**COLUMNS, **adds})
    rows = [{**new_rows(model, i, 1)[0], "a": 40 + i} for i in sorted(ids)]
    names = ("id", *columns, *adds) if columns else tuple(model.columns)
    return Evolving(tuple({name: row[name] for name in names} for row in rows), model, adds=adds, **more)


N, M = {"n": pa.int64()}, {"m": pa.string()}

MERGES: dict[str, Evolving] = {
    "rows": _evolving({1, 4, 100, 101}, N, mode="rewrite_rows"),
    "columns": _evolving({1, 4}, N | M, "a", inserts=False, mode="rewrite_columns"),
    "both": _evolving({1, 4, 100}, M, "a", "st", by_source=always(), mode="rewrite_columns"),
    "inserts": _evolving({1, 100, 101}, {"s": COLUMNS["st"]}, matched="nothing"),
}


# ------------------------------------------------------------------------------------------------------- what is there
def _states(scene: Scene, merge: Evolving) -> list[tuple[int, Rows]]:
    """As it was, with null columns, merged."""
    return [scene.before, (3, merge.widened(scene.model).values()), (4, merge.after(scene.model, 4).values())]


def _as_pylance_reads(store: Store, place: Path) -> tuple[int, Rows]:
    """The same objects on a disk, where pylance finds them."""
    for info in store.list(""):
        path = place / info.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(info.path))
    dataset = lance.dataset(str(place))
    dataset.validate()
    found = dataset.to_table().to_pylist()
    rows = {row["id"]: row for row in found}
    assert len(rows) == len(found), "pylance finds a row twice"
    return int(dataset.version), rows


def _types(store: Store) -> dict[str, pa.DataType]:
    schema = on_stage(store, lambda: tw.dataset(ADDRESS).schema)
    return {column.name: column.type for column in schema}


@dataclass
class Bench:
    """Where a merge is judged after each fault."""

    scene: Scene
    merge: Evolving
    folder: Path
    judged: Judged = field(default_factory=Judged)
    places: Iterator[int] = field(default_factory=itertools.count)
    met: set[int] = field(default_factory=set)

    def judge(self, store: Store, error: BaseException | None, where: str, *, removes: bool) -> None:
        """What a fresh reader may find; `removes`: the fault kept a file from being removed."""
        if not self.judged.is_new(store, error):
            return
        states = _states(self.scene, self.merge)
        found = newest(store)
        assert found in states, f"{where}: {error!r}"
        assert found == _as_pylance_reads(store, self.folder / f"{next(self.places)}.lance"), where
        columns = dict(self.scene.model.columns) if found == states[0] else {**COLUMNS, **self.merge.adds}
        assert _types(store) == columns, where
        assert self.scene.objects <= listing(store), f"{where}: files of older versions are gone"
        if error is None:
            assert found == states[2], f"{where}: it returned, and nothing is there"
        elif not isinstance(error, SimulatedCrash | CommitUnknown):
            assert found in states[:2], f"{where}: it reported {error!r}, and yet it is there"
        if not removes and not isinstance(error, SimulatedCrash | CommitUnknown):
            assert not leftovers(store), f"{where}: left behind after {error!r}"
        self.met.add(states.index(found))
        if found in states[:2]:
            on_stage(store, lambda: self.merge.run(tw, tw.dataset(ADDRESS)), seed=8)
            assert newest(store) == states[2], f"{where}: running it again"


# ------------------------------------------------------------------------------------------------------------ faults
@pytest.mark.slow
@pytest.mark.parametrize("name", MERGES)
def test_a_fault_at_every_call(name: str, tmp_path: Path) -> None:
    merge = MERGES[name]
    bench = Bench(small_scene(new_store(), stable=len(name) % 2 == 0), merge, tmp_path)
    calls = calls_of(bench.scene, merge)
    columns = next(call.index for call in calls if call.method == "put_if_absent")
    for call in calls:
        for number, fault in enumerate(FAULTS):
            if makes_sense(fault, call):
                if deep(1, 2) == 1 and name in ("columns", "inserts") and (number + call.index + len(name)) % 2:
                    continue  # in CI these two take turns
                store = copied(bench.scene.store)
                error = bench.scene.outcome(FaultyStore(store, at_call(call.index, fault)), merge)
                bench.judge(store, error, f"{fault} at {call}", removes=call.method == "delete")
                assert call.index >= columns or error is None or newest(store)[0] in (2, 4), "columns came too early"
    assert bench.met == {0, 1, 2}
    assert {None, SimulatedCrash, StorageError} <= bench.judged.endings


@pytest.mark.parametrize("name", MERGES)
@pytest.mark.parametrize("nth", [0, 1], ids=["columns", "rows"])
def test_the_lost_reply_of_a_commit_is_settled(name: str, nth: int) -> None:
    """Either commit was made, the answer got lost or says no: the merge succeeds, and each is there once."""
    merge, scene = MERGES[name], small_scene(new_store(), stable=len(name) % 2 == 0)
    for fault in (LoseReply(), DenyCreation()):
        store = copied(scene.store)
        plan = on_call(fault, method="put_if_absent", path="_versions/*", nth=nth)
        assert scene.outcome(FaultyStore(store, plan), merge) is None
        assert newest(store) == _states(scene, merge)[2]
        assert not leftovers(store)
        assert [made.read_version for made in on_stage(store, lambda: tw.dataset(ADDRESS).get_transactions(2))] == [
            3,
            2,
        ]


@pytest.mark.parametrize("name", ["rows", "columns"])
@pytest.mark.parametrize("fault", [FailBefore(), LoseReply()], ids=["fails", "loses replies"])
@pytest.mark.parametrize("nth", [0, 1], ids=["columns", "rows"])
def test_a_store_that_falls_silent_at_a_commit(name: str, fault: Fault, nth: int) -> None:
    """Nobody knows whether it is there. Files stay if that is the commit of the rows: they may be needed."""
    merge, scene = MERGES[name], small_scene(new_store(), stable=False)
    store, puts = copied(scene.store), 0

    def plan(call: Call) -> Fault | None:
        nonlocal puts
        puts += call.method == "put_if_absent"
        return fault if puts > nth and call.path.startswith("_versions") else None

    assert isinstance(scene.outcome(FaultyStore(store, plan), merge), CommitUnknown)
    assert newest(store) == _states(scene, merge)[nth + isinstance(fault, LoseReply)]
    files = {path.partition("/")[0] for path in leftovers(store)} - {"_transactions"}
    assert bool(files) == (nth == 1 and isinstance(fault, FailBefore)), f"{files}"


THEIRS = Merge(_evolving({2, 100}, {}, "a").rows, EMPTY)
"""Takes a new key of ours, and changes a row beside one of ours."""


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1], ids=["before the columns", "between"])
def test_a_fault_while_it_runs_again(moment: int) -> None:
    """Another writer comes when ours is about to publish its columns, or its rows: ours has to look again."""
    merge, scene, judged = MERGES["rows"], small_scene(new_store(), stable=True), Judged()
    middle = merge.widened(scene.model)
    theirs = (THEIRS.after(scene.model, 3).values(), THEIRS.after(middle, 4).values())[moment]
    final = merge.after(THEIRS.after(scene.model, 3), 5).values()
    states = [*_states(scene, merge), (3 + moment, theirs)]
    states += [(version, merge.widened(THEIRS.after(scene.model, 3)).values()) for version in (4, 5)]

    def run(fault: Plan) -> tuple[FaultyStore, BaseException | None]:
        store = copied(scene.store)

        def rival(call: Call) -> None:
            with within(seeded_world(store, 55)):
                THEIRS.run(tw, tw.dataset(ADDRESS))

        publish = on_call(Pause(rival), method="put_if_absent", path="_versions/*", nth=moment)
        faulty = FaultyStore(store, first_of(fault, publish))
        return faulty, scene.outcome(faulty, merge)

    recorded, error = run(lambda call: None)
    assert error is None and newest(recorded.inner) == (5, final) and not leftovers(recorded.inner)
    published = [call.index for call in recorded.calls if call.method == "put_if_absent"]
    for call in recorded.calls[published[moment] :]:
        for number, fault in enumerate(FAULTS):
            if not makes_sense(fault, call) or (deep(1, 2) == 1 and (number + call.index) % 2 == moment):
                continue
            store, error = run(at_call(call.index, fault))
            if not judged.is_new(store.inner, error):
                continue
            where, found = f"{fault} at {call}: {error!r}", newest(store.inner)
            assert found in [*states, (5, final)], where
            if error is None:
                assert found in ((5, final), states[2]), where  # the fault may have come in the place of theirs
            elif not isinstance(error, SimulatedCrash | CommitUnknown):
                assert found in states and found != states[2], where
                assert call.method == "delete" or not leftovers(store.inner), where
    assert {None, SimulatedCrash, StorageError} <= judged.endings


# ------------------------------------------------------------------------------------------------------ other writers
class AppendBlindly(Append):
    """Keys mean nothing to an append: a row may come a second time."""

    def after(self, model: Model, version: int) -> Model:
        there = {id for id in model.rows if any(row["id"] == id for row in self.rows)}
        rows = {id + 10**6 if id in there else id: row for id, row in model.rows.items()}
        return super().after(replace(model, rows=rows), version)


def _append(start: int) -> Append:
    return AppendBlindly(new_rows(EMPTY, start, 2), EMPTY)


OURS = _evolving({1, 4, 100}, N)
"""All columns of the table and one more."""

OTHERS: dict[str, Change] = {
    "the same column": _evolving({2, 4, 100, 101}, N, "a"),
    "the same column, narrower": _evolving({2, 4, 100, 101}, {"n": pa.int32()}, "a"),
    "the same column, of text": _evolving({2, 4, 100, 101}, {"n": pa.string()}, "a"),
    "another column": _evolving({2, 4, 100, 101}, M, "a"),
    "that column and another": _evolving({2, 4, 100}, M | N, "st"),
    "other rows, the same column": _evolving({0, 8}, N, "a"),
    "a merge of the same rows": Merge(_evolving({1, 2, 100, 101}, {}, "a").rows, EMPTY),
    "a merge of the same new keys": Merge(_evolving({100, 101}, {}, "a").rows, EMPTY),
    "a merge of other rows": Merge(_evolving({0, 8, 102}, {}, "a").rows, EMPTY),
    "an append of a new key": _append(99),
    "an append": _append(200),
    "a delete of our rows": Delete(ids_in({1, 2})),
    "a delete of other rows": Delete(ids_in({0, 5})),
    "rows updated": Update({"a": plus("a", 100)}, ids_in({1, 2}), "rewrite_rows"),
    "columns updated": Update({"a": plus("a", 100)}, ids_in({0, 4, 5}), "rewrite_columns"),
    "a column dropped": DropColumns(("b",)),
    "the key dropped": DropColumns(("id",)),
    "a column renamed": Rename("b", "bb"),
    "a column renamed as ours": Rename("b", "n"),
    "the key renamed": Rename("id", "key"),
    "a wider column": Widen("a"),
    "another column, of values": AddColumns("z", pa.int64(), plus("id", 1)),
    "our column, of nulls": AddNulls("n", pa.int64()),
    "our column, of values": AddColumns("n", pa.int64(), plus("a", 1)),
    "our column, of text": AddColumns("n", pa.string(), literal("x")),
}


def _fits(given: pa.DataType, there: pa.DataType) -> bool:
    """Whether values go into a column: integers of either width, for all of them are small."""
    return given == there or {given, there} == {pa.int32(), pa.int64()}


def _possible(change: Change, model: Model) -> bool:
    """Whether a change finds the columns that it needs, and room for those that it adds."""
    there = model.columns
    match change:
        case Evolving():
            given = {name: change.model.columns[name] for name in change.rows[0]}
            return "id" in there and all(_fits(type, there.get(name, type)) for name, type in given.items())
        case Merge() | Append():
            given = {name: change.model.columns[name] for name in change.rows[0]}
            return all(name in there and _fits(type, there[name]) for name, type in given.items())
        case Delete():
            return "id" in there
        case Update():
            return {"id", *change.writes, *change.reads} <= there.keys()
        case DropColumns():
            return there.keys() >= set(change.names)
        case Rename():
            return change.old in there and change.new not in there
        case Widen():
            return there.get(change.name) == pa.int32()
        case AddNulls() | AddColumns():
            return change.name not in there
    raise AssertionError(f"{change}")


Found = tuple[list[str], dict[str, pa.DataType]]


def _found(model: Model) -> Found:
    """Rows and columns as what can be compared: neither has an order."""
    return sorted(repr(sorted(row.items())) for row in model.values().values()), dict(model.columns)


def _orders(model: Model, steps: Sequence[Callable[[Model], Model | None]]) -> Iterator[Model]:
    """The table after the steps, in every order in which each is possible."""
    for order in itertools.permutations(steps):
        after: Model | None = model
        for step in order:
            after = None if after is None else step(after)
        if after is not None:
            yield after


def _step(change: Change) -> Callable[[Model], Model | None]:
    return lambda model: change.after(model, 9) if _possible(change, model) else None


def _columns_only(change: Change) -> Callable[[Model], Model | None]:
    return lambda model: change.widened(model) if isinstance(change, Evolving) and _possible(change, model) else None


def _read(store: Store) -> Found:
    def read() -> Found:
        dataset = tw.dataset(ADDRESS)
        dataset.validate()
        assert [entry["version"] for entry in dataset.versions()] == list(range(1, dataset.version + 1))
        rows = [repr(sorted(row.items())) for row in dataset.to_table().to_pylist()]
        return sorted(rows), {column.name: column.type for column in dataset.schema}

    return on_stage(store, read)


def _judge(scene: Scene, store: Store, changes: list[Change], errors: list[BaseException | None], where: str) -> str:
    """What came of it: `both`, one that was `refused`, or one of which null columns stay (`half`)."""
    for change, error in zip(changes, errors, strict=True):
        assert error is None or isinstance(error, TablewrightError), f"{where}: {change!r:.80}: {error!r}"
    done = [change for change, error in zip(changes, errors, strict=True) if error is None]
    lost = [change for change, error in zip(changes, errors, strict=True) if error is not None]
    assert done, f"{where}: nobody came through: {errors}"
    found = _read(store)
    assert not leftovers(store), f"{where}: {errors}"
    if found in [_found(model) for model in _orders(scene.model, [_step(change) for change in done])]:
        result = "refused" if lost else "both"
    else:
        halves = [_step(change) for change in done] + [_columns_only(change) for change in lost]
        orders = [_found(model) for model in _orders(scene.model, halves)]
        assert lost and found in orders, f"{where}: {errors}\n{found}"
        result = "half"
    for change, error in zip(changes, errors, strict=True):
        if error is not None and not (isinstance(error, CommitConflict) and error.retryable):
            befores = list(_orders(scene.model, [_step(other) for other in done]))
            assert not any(_possible(change, model) for model in befores), f"{where}: {change!r:.80}: {error!r}"
    return result


MAY_BE_REFUSED = {
    "the same column, narrower",
    "the same column, of text",
    "the key dropped",
    "a column renamed as ours",
    "the key renamed",
    "our column, of nulls",
    "our column, of values",
    "our column, of text",
}
"""All others pass each other, whoever comes first."""

THOROUGH = ("the same column", "a merge of the same new keys", "a column dropped", "the key dropped")


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_another_writer_at_every_call(name: str) -> None:
    """It comes as a whole between two calls of ours, at each place where ours could see it.

    If it takes what the merge needs just between the columns and the rows, the columns stay, and nothing else.
    """
    theirs, results = OTHERS[name], dict[int, str]()
    scene = small_scene(new_store(), stable=len(name) % 2 == 0)
    calls = [call for call in calls_of(scene, OURS) if call.path.startswith("_versions")]
    columns, rows = [call.index for call in calls if call.method == "put_if_absent"]
    every = 1 if deep(1, 2) > 1 or name in THOROUGH else 3
    for call in calls[len(name) % every :: every]:
        store, errors = copied(scene.store), list[BaseException | None]()

        def run(call: Call, store: Store = store, errors: list[BaseException | None] = errors) -> None:
            try:
                with within(seeded_world(store, 55)):
                    theirs.run(tw, tw.dataset(ADDRESS))
                errors.append(None)
            except TablewrightError as error:
                errors.append(error)

        ours = scene.outcome(FaultyStore(store, at_call(call.index, Pause(run))), OURS)
        results[call.index] = _judge(scene, store, [OURS, theirs], [ours, *errors], f"{call}")
    assert name in MAY_BE_REFUSED or set(results.values()) == {"both"}
    assert all(columns < index <= rows for index, result in results.items() if result == "half"), results
    assert name != "the key dropped" or set(results.values()) == {"refused", "half", "both"}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_writers_switched_at_every_call(name: str) -> None:
    """A seed decides at every call who goes on. Handles are opened before the race, or within it."""
    changes = [OURS, OTHERS[name]]
    scene = small_scene(new_store(), stable=len(name) % 2 == 1)
    for seed in range(deep(3, 12)):
        store = copied(scene.store)

        def run(number: int, own: Store, seed: int = seed) -> Any:
            with within(seeded_world(own, 1000 * seed + number)):
                return changes[number].run(tw, tw.dataset(ADDRESS, version=2 if seed % 2 else None))

        outcomes = interleave(store, [lambda own, n=n: run(n, own) for n in range(2)], seed)
        result = _judge(scene, store, changes, [outcome.error for outcome in outcomes], f"seed {seed}")
        assert name in MAY_BE_REFUSED or result == "both", f"seed {seed}"


BY_PYLANCE = [
    "a merge of the same rows",
    "a merge of the same new keys",
    "a merge of other rows",
    "an append",
    "a delete of our rows",
    "rows updated",
    "a column dropped",
    "a column renamed as ours",
    "another column, of values",
    "our column, of nulls",
    "our column, of values",
]


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1], ids=["before the columns", "between"])
def test_pylance_meanwhile(moment: int, tmp_path: Path) -> None:
    """The other writer is pylance, and comes when ours is about to publish its columns, or its rows."""
    scene = small_scene(open_store(str(tmp_path / "base")), stable=moment == 0)
    for name in BY_PYLANCE:
        theirs, place, errors = OTHERS[name], tmp_path / f"{name}.lance", list[BaseException | None]()
        shutil.copytree(tmp_path / "base", place)

        def run(call: Call, theirs: Change = theirs, place: Path = place, errors: list[Any] = errors) -> None:
            try:
                theirs.run(lance, lance.dataset(str(place)))
                errors.append(None)
            except (OSError, ValueError) as error:  # pylance's words for: it is there already
                errors.append(InvalidRequest(f"{error}"))

        store = open_store(str(place))
        publish = on_call(Pause(run), method="put_if_absent", path="_versions/*", nth=moment)
        ours = scene.outcome(FaultyStore(store, publish), OURS)
        result = _judge(scene, store, [OURS, theirs], [ours, *errors], name)
        assert result == "both" or (name in MAY_BE_REFUSED and result == "refused"), name
        found = lance.dataset(str(place))
        found.validate()
        assert sorted(repr(sorted(row.items())) for row in found.to_table().to_pylist()) == _read(store)[0], name


# ------------------------------------------------------------------------------------------------------- a busy table
def _among(rivals: Iterator[Change], merge: Evolving) -> tuple[Store, BaseException | None]:
    """Whenever ours is about to publish, a rival does so first, as long as there are any."""
    scene = small_scene(new_store(), stable=True)
    store, seeds = scene.store, itertools.count(100)

    def run(call: Call) -> None:
        rival = next(rivals, None)
        if rival is not None:
            with within(seeded_world(store, next(seeds))):
                rival.run(tw, tw.dataset(ADDRESS))

    publish = on_call(Pause(run), method="put_if_absent", path="_versions/*")
    return store, scene.outcome(FaultyStore(store, publish), merge)


def test_a_merge_on_a_busy_table_gets_its_columns_first() -> None:
    """Twenty others in turn are faster, more than it has attempts. Their rows are not ours, so they can be passed."""
    others: list[Change] = [_append(200 + 10 * number) for number in range(16)]
    for number, id in enumerate([0, 2, 3, 5]):  # beside rows of ours
        others.insert(4 + 5 * number, Delete(ids_in({id})))
    store, error = _among(iter(others), OURS)
    assert error is None
    scene = small_scene(new_store(), stable=True)
    after = scene.model
    for other in others:
        after = other.after(after, 9)
    assert _read(store) == _found(OURS.after(after, 9)) and not leftovers(store)


@pytest.mark.parametrize("retries", [0, 2, 3])
def test_a_merge_that_gives_up_adds_no_column(retries: int) -> None:
    """Others come first each time: it is a conflict, and the schema is what it was. Running again is safe."""
    rivals = [_append(200 + 10 * number) for number in range(retries + 1)]
    store, error = _among(iter(rivals), replace(OURS, retries=retries))
    assert isinstance(error, CommitConflict) and error.retryable
    assert _types(store) == dict(COLUMNS) and not leftovers(store)
    on_stage(store, lambda: OURS.run(tw, tw.dataset(ADDRESS)), seed=7)
    assert _types(store) == {**COLUMNS, **N}


@pytest.mark.parametrize("last", ["the key renamed", "an append of a new key"])
def test_a_merge_that_is_refused_after_many_adds_no_column(last: str) -> None:
    """Its columns would go past others by now, and not past those who take what it needs."""
    rivals = [_append(200), _append(210), _append(220), OTHERS[last]]
    merge = _evolving({100}, N, matched="fail")
    store, error = _among(iter(rivals), merge)
    assert isinstance(error, TablewrightError) and not isinstance(error, CommitConflict)
    assert "n" not in _types(store) and not leftovers(store)
