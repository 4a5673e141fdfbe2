"""Two writers and one new key: whoever comes second finds the row of the first, and there is one row in the end.

300 races, each from a seed, of which CI runs a third: with and without a primary key and a BTREE; single, text,
composite and nullable keys; whole and partial rows; ordered clauses, also on rows that the source lacks; stable ids and
addresses; we or pylance as the other writer. They meet in three ways:

- *switched*: both are ours, and a seed decides at every storage call who goes on;
- *within*: the other one runs as a whole at some storage call of ours;
- *at once*: two threads begin together.

Rows and both reports must be those of one serial order. Where pylance may come second, the table declares its primary
key: without one pylance does not look, and makes two rows.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.caches import budgets_of, cached
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.merging import CLAUSES, KEYS, Merge, Shape, Tables, drawn_merge, sorted_rows
from tests.concurrency.scene import one_thread
from tests.concurrency.stage import ADDRESS, set_up, within
from tests.depth import deep, pairs_first

import tablewright as tw
from tablewright.storage import open_store
from tablewright.testing import Call, Fault, FaultyStore, Pause, interleave, seeded_world

RACES = 300
WAYS = ["switched", "within", "at once"]


@dataclass(frozen=True)
class Race:
    """All that a seed decides."""

    shape: Shape
    way: str
    ours: Merge
    theirs: Merge
    by_pylance: bool
    at: int
    """The storage call of ours that theirs runs before, where it runs within."""

    @classmethod
    def drawn(cls, seed: int) -> Race:
        chance = random.Random(seed)
        way = WAYS[seed % 3]
        by_pylance = way != "switched" and (seed // 3) % 3 > 0
        key = chance.choice(list(KEYS)) if way != "at once" or not by_pylance else chance.choice(list(KEYS)[:3])
        # Nobody knows who comes second of two that begin at once.
        declared = (way == "at once" and by_pylance) or (not key.startswith("nullable") and chance.random() < 0.5)
        shape = Shape(key, declared, indexed=chance.random() < 0.5, stable=chance.random() < 0.5)
        both = {100} | set(chance.sample([0, 3, 5, 9, 101], 2))
        sides = [both | set(chance.sample([1, 2, 4, 10, 102, 103], 2)) for _ in range(2)]
        ours = drawn_merge(chance, shape, "ours", sides[0])
        theirs = drawn_merge(chance, shape, "theirs", sides[1], by_pylance=by_pylance)
        return cls(shape, way, ours, theirs, by_pylance, at=chance.randrange(24))

    @property
    def facts(self) -> dict[str, Any]:
        """What tells one kind of race from another."""
        return {
            "key": self.shape.key,
            "declared": self.shape.declared,
            "indexed": self.shape.indexed,
            "stable": self.shape.stable,
            "way": f"{self.way} {self.by_pylance}",
            "ours": self.ours.kind,
            "theirs": self.theirs.kind,
            "mode": self.ours.mode,
            "partial": "n" not in self.ours.rows[0],
            "their partial": "n" not in self.theirs.rows[0],
        }


SEEDS = pairs_first((seed, Race.drawn(seed).facts) for seed in range(RACES))[: deep(38, RACES)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("merge-races"))


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer is one thread, so that its calls come in one order."""
    set_up(monkeypatch)
    one_thread(monkeypatch)


# --------------------------------------------------------------------------------------------------- three ways to meet
Reports = list[Any]


def _on(store: Any, merge: Merge, seed: int, version: int | None) -> Any:
    with within(seeded_world(store, seed)):
        return merge.run(tw.dataset(ADDRESS, version=version))


def _switched(race: Race, uri: str, seed: int, written: set[str]) -> Reports:
    version = _version(uri) if seed % 2 else None
    writers = [
        lambda store, merge=merge, n=n: (_on(store, merge, 10 * seed + n, version), store.calls)
        for n, merge in enumerate([race.ours, race.theirs])
    ]
    outcomes = interleave(open_store(uri), writers, seed)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        written |= _puts(outcome.result[1])
    return [outcome.result[0] for outcome in outcomes]


def _within(race: Race, uri: str, seed: int, written: set[str]) -> Reports:
    """Theirs runs at some call, at the latest before we publish. Ours keeps the version it began with."""
    theirs: list[Any] = []
    stale = lance.dataset(uri) if race.by_pylance else None

    def run(call: Call) -> None:
        other = race.theirs
        theirs.append(_on(open_store(uri), other, 10 * seed + 1, None) if stale is None else other.run(stale))

    def plan(call: Call) -> Fault | None:
        due = call.index == race.at or (call.method == "put_if_absent" and call.path.startswith("_versions"))
        return Pause(run) if due and not theirs else None

    store = FaultyStore(open_store(uri), plan)
    ours = _on(store, race.ours, 10 * seed, None)
    written |= _puts(store.calls)
    return [ours, *theirs]


def _at_once(race: Race, uri: str, seed: int, written: set[str]) -> Reports:
    stores = [FaultyStore(open_store(uri)), FaultyStore(open_store(uri))]
    version = _version(uri)
    calls = [lambda: _on(stores[0], race.ours, 10 * seed, version)]
    if race.by_pylance:
        handle = lance.dataset(uri)
        calls.append(lambda: race.theirs.run(handle))
    else:
        calls.append(lambda: _on(stores[1], race.theirs, 10 * seed + 1, version))
    reports = _together(calls)
    written |= _puts(stores[0].calls) | _puts(stores[1].calls)
    return reports


def _together(calls: list[Callable[[], Any]]) -> Reports:
    barrier, reports, errors = threading.Barrier(len(calls)), [None] * len(calls), list[BaseException]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            reports[number] = calls[number]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return reports


def _puts(calls: tuple[Call, ...]) -> set[str]:
    return {call.path for call in calls if call.method.startswith("put")}


def _version(uri: str) -> int:
    return int(lance.dataset(uri).version)


# ------------------------------------------------------------------------------------------- what holds
def _read(uri: str) -> tuple[tw.LanceDataset, list[dict[str, Any]]]:
    """The rows, as both libraries read them."""
    with within(seeded_world(open_store(uri))):
        here = tw.dataset(ADDRESS)
    there = lance.dataset(uri)
    here.validate()
    there.validate()
    columns = [*here.schema.names, "_rowid", "_rowaddr"]
    found = here.to_table(columns=columns)
    assert there.to_table(columns=columns).equals(found)
    return here, found.to_pylist()


def _judge(race: Race, uri: str, before: list[dict[str, Any]], reports: Reports, written: set[str]) -> None:
    dataset, found = _read(uri)
    orders = list[tuple[Any, dict[int, Any]]]()
    for first, second in ((0, 1), (1, 0)):
        merges, counts = [race.ours, race.theirs], [None, None]
        rows, counts[first] = merges[first].after(before)
        rows, counts[second] = merges[second].after(rows)
        orders.append(((sorted_rows(rows), counts), _keys_by_id(race, rows)))
    stayed = [ids for order, ids in orders if order == (sorted_rows(found), reports)]
    assert stayed
    keys = Counter(tuple(row[name] for name in race.shape.on) for row in found)
    assert all(count == 1 for key, count in keys.items() if None not in key)
    if race.shape.stable:
        ids = [row["_rowid"] for row in found]
        assert len(set(ids)) == len(ids)
        old = _keys_by_id(race, before)
        assert _keys_by_id(race, [row for row in found if row["_rowid"] in old]) in stayed
        created = dataset.to_table(columns=["_rowid", "_row_created_at_version"]).to_pylist()
        base = dataset.version - 2
        assert all((row["_row_created_at_version"] <= base) == (row["_rowid"] in old) for row in created)
    there = {str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()}
    assert not unreferenced(dataset, there & written)  # pylance leaves files of its own when it has to try again


def _keys_by_id(race: Race, rows: Sequence[Mapping[str, Any]]) -> dict[int, Any]:
    """The keys of rows that have an id: in a model, those that were there in the beginning."""
    return {row["_rowid"]: [row[name] for name in race.shape.on] for row in rows if "_rowid" in row}


RUN = {"switched": _switched, "within": _within, "at once": _at_once}


@pytest.mark.slow
@pytest.mark.parametrize("group", range(10))
def test_a_new_key_of_both_is_one_row(group: int, tables: Tables, tmp_path: Path) -> None:
    for seed, budget in [(each, budget) for each in SEEDS[group::10] for budget in budgets_of(each // 3)]:
        race, uri, written = Race.drawn(seed), str(tmp_path / f"{seed}-{budget}.lance"), set[str]()
        before = tables.copy(race.shape, Path(uri))
        try:
            with cached(budget):
                reports = RUN[race.way](race, uri, seed, written)
                _judge(race, uri, before, reports, written)
        except BaseException as error:
            error.add_note(f"seed {seed}, cache {budget}: {race}")
            raise


@pytest.mark.slow
def test_a_new_column_of_both_is_one_column(tables: Tables, tmp_path: Path) -> None:
    """Both add the same column, and merge the same new key with values in it."""
    for seed in range(12):
        shape = Shape("single", declared=seed % 2 == 0, indexed=seed % 3 == 0, stable=seed % 4 < 2)
        uri = str(tmp_path / f"{seed}.lance")
        before = tables.copy(shape, Path(uri))
        sources = [
            pa.table({"id": pa.array(ids, pa.int64()), "t": [f"{by} {i}" for i in ids]})
            for by, ids in (("ours", [1, 4, 100]), ("theirs", [2, 4, 100, 101]))
        ]

        def merge(store: Any, source: pa.Table, number: int, seed: int = seed) -> Any:
            with within(seeded_world(store, 10 * seed + number)):
                upsert = tw.dataset(ADDRESS).merge_insert("id", schema_evolution=True).when_matched_update_all()
                return upsert.when_not_matched_insert_all().execute(source)

        writers = [lambda store, s=source, n=n: merge(store, s, n) for n, source in enumerate(sources)]
        outcomes = interleave(open_store(uri), writers, seed)
        assert [outcome.error for outcome in outcomes] == [None, None], f"seed {seed}"
        dataset, found = _read(uri)
        assert dataset.schema.names == ["id", "part", "x", "by", "n", "t"]
        values = {row["id"]: row["t"] for row in found}
        assert len(found) == len(values) == len(before) + 2
        last = values[100].split()[0]
        assert values == dict.fromkeys(row["id"] for row in before) | {
            1: "ours 1",
            2: "theirs 2",
            101: "theirs 101",
            **{i: f"{last} {i}" for i in (4, 100)},
        }, f"seed {seed}"
        paths = {str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()}
        assert not unreferenced(dataset, paths), f"seed {seed}"


def test_the_races_are_of_all_kinds() -> None:
    """Every two settings that can meet do so in some race."""
    seen = set()
    values: dict[str, set[Any]] = {}
    for seed in SEEDS:
        facts = Race.drawn(seed).facts
        seen |= set(itertools.combinations(facts.items(), 2))
        for name, value in facts.items():
            values.setdefault(name, set()).add(value)
    assert len(values["way"]) == 5 and values["key"] == KEYS.keys()
    missing = {
        ((one, a), (other, b))
        for one, other in itertools.combinations(values, 2)
        for a, b in itertools.product(values[one], values[other])
        if ((one, a), (other, b)) not in seen
    }
    nullable = {("key", name) for name in KEYS if "nullable" in name}
    assert missing == {
        *((key, ("declared", True)) for key in nullable),
        *((key, ("way", "at once True")) for key in nullable),
        (("declared", False), ("way", "at once True")),
        *((("way", f"{way} True"), ("theirs", kind)) for way in ("within", "at once") for kind in CLAUSES),
    }
