"""Writers switched at every storage call, in an order drawn from a seed: what comes out is some serial order.

Each writer is an ordinary call of the public face. Those that returned took effect, one after the other in some order;
those that raised a conflict had none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.depth import deep

import tablewright as tw
from tablewright.errors import CommitConflict, TableExists
from tablewright.storage import Store
from tablewright.testing import LoseReply, Plan, interleave, on_call, seeded_world

from .stage import ADDRESS, copied, history, listing, new_store, numbers, on_stage, set_up, within

Rows = tuple[int, ...] | None
"""The ids of a table in order, or None where there is no table."""


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)


@dataclass(frozen=True)
class Writer:
    """A call, and what it does to the rows of a table: `None` if it can't happen there."""

    call: Callable[[], Any]
    effect: Callable[[Rows], Rows]


def append(start: int, stop: int) -> Writer:
    return Writer(
        lambda: tw.write_dataset(numbers(start, stop), ADDRESS, mode="append"),
        lambda rows: (*(rows or ()), *range(start, stop)),
    )


def stale_append(start: int, stop: int) -> Writer:
    """Appends through a handle that was opened before the race."""

    def call() -> None:
        tw.dataset(ADDRESS, version=1).insert(numbers(start, stop))

    return Writer(call, lambda rows: (*(rows or ()), *range(start, stop)))


def overwrite(start: int, stop: int) -> Writer:
    return Writer(
        lambda: tw.write_dataset(numbers(start, stop), ADDRESS, mode="overwrite"),
        lambda rows: tuple(range(start, stop)),
    )


def create(start: int, stop: int) -> Writer:
    return Writer(
        lambda: tw.write_dataset(numbers(start, stop), ADDRESS),
        lambda rows: tuple(range(start, stop)) if rows is None else None,
    )


def delete(id: int) -> Writer:
    def call() -> None:
        dataset = tw.dataset(ADDRESS, version=1)
        metadata = dataset.get_fragment(0).delete(f"id = {id}")
        operation = tw.LanceOperation.Delete([metadata], [], f"id = {id}")
        tw.LanceDataset.commit(dataset, operation, read_version=1, affected_rows=[id])

    return Writer(call, lambda rows: tuple(row for row in rows or () if row != id))


def restore() -> Writer:
    return Writer(lambda: tw.dataset(ADDRESS, version=1).restore(), lambda rows: (0, 1, 2))


RACES: dict[str, tuple[bool, list[Writer]]] = {
    "append, append": (True, [append(10, 12), append(20, 23)]),
    "append, append, append": (True, [append(10, 11), append(20, 22), append(30, 33)]),
    "stale appends": (True, [stale_append(10, 11), stale_append(20, 22)]),
    "append, overwrite": (True, [append(10, 12), overwrite(50, 52)]),
    "overwrite, overwrite": (True, [overwrite(40, 42), overwrite(50, 53)]),
    "append, delete": (True, [append(10, 12), delete(1)]),
    "delete, delete": (True, [delete(0), delete(2)]),
    "append, delete, overwrite": (True, [append(10, 12), delete(1), overwrite(50, 52)]),
    "append, restore": (True, [append(10, 12), restore()]),
    "create, create": (False, [create(0, 2), create(5, 8)]),
    "create, append": (False, [create(0, 2), append(5, 8)]),
    "append, append, no table": (False, [append(0, 2), append(5, 8)]),
    "create, create, create": (False, [create(0, 1), create(5, 6), create(8, 9)]),
}
SEEDS = deep(6, 15)


def _start(there: bool) -> Store:
    store = new_store()
    if there:
        on_stage(store, lambda: tw.write_dataset(numbers(0, 3), ADDRESS, enable_stable_row_ids=True), seed=500)
    return store


def _race(store: Store, writers: list[Writer], seed: int, plans: list[Plan | None] | None = None) -> list[Any]:
    def run(number: int, writer: Writer, own: Store) -> None:
        with within(seeded_world(own, 1000 * seed + number)):
            writer.call()

    tasks = [lambda own, n=n, writer=writer: run(n, writer, own) for n, writer in enumerate(writers)]
    return interleave(store, tasks, seed, plans or ())


def _serial_results(start: Rows, winners: list[Writer]) -> set[Rows]:
    results: set[Rows] = set()
    for order in itertools.permutations(winners):
        rows, possible = start, True
        for writer in order:
            rows = writer.effect(rows)
            possible = possible and rows is not None
        if possible:
            results.add(rows)
    return results


def _check(store: Store, there: bool, writers: list[Writer], outcomes: list[Any], where: str) -> int:
    for outcome in outcomes:
        assert outcome.error is None or isinstance(outcome.error, CommitConflict | TableExists), (
            f"{where}: {outcome.error!r}"
        )
    winners = [writer for writer, outcome in zip(writers, outcomes, strict=True) if outcome.error is None]
    assert winners, f"{where}: everybody lost"
    versions = history(store)
    assert len(versions) == there + len(winners), where
    found = versions[-1]
    assert tuple(found) in _serial_results((0, 1, 2) if there else None, winners), where
    ids = on_stage(store, lambda: tw.dataset(ADDRESS).to_table(columns=["_rowid"])["_rowid"].to_pylist())
    assert len(set(ids)) == len(found)
    return len(winners)


QUICK = ("append, append", "append, overwrite", "create, create")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in RACES])
def test_every_race_is_some_serial_order(name: str) -> None:
    there, writers = RACES[name]
    start = _start(there)
    won = set()
    for seed in range(SEEDS):
        store = copied(start)
        won.add(_check(store, there, writers, _race(store, writers, seed), f"seed {seed}"))
    if name in ("append, append", "stale appends", "append, delete", "delete, delete"):
        assert won == {len(writers)}, "writers that can pass each other were turned away"
    if name.startswith("create, create"):
        assert won == {1}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["append, append", "create, create", "append, overwrite"])
def test_races_with_lost_replies(name: str) -> None:
    """The first commit of each writer gets no answer: both have to look who holds the name."""
    there, writers = RACES[name]
    start = _start(there)
    for seed in range(SEEDS):
        store = copied(start)
        plans: list[Plan | None] = [
            on_call(LoseReply(), method="put_if_absent", path="_versions/*", nth=seed % 2) for _ in writers
        ]
        _check(store, there, writers, _race(store, writers, seed, plans), f"seed {seed}")


def test_losers_leave_nothing_behind() -> None:
    there, writers = RACES["create, create"]
    start = _start(there)
    for seed in range(SEEDS):
        store = copied(start)
        outcomes = _race(store, writers, seed)
        (winner,) = [writer for writer, outcome in zip(writers, outcomes, strict=True) if outcome.error is None]
        alone = copied(start)
        on_stage(alone, winner.call)
        assert len(listing(store)) == len(listing(alone)), f"seed {seed}: {sorted(listing(store))}"


def test_the_same_seed_is_the_same_history() -> None:
    there, writers = RACES["append, append, append"]
    start = _start(there)
    histories = []
    for _ in range(2):
        store = copied(start)
        _race(store, writers, 11)
        histories.append((history(store), sorted(listing(store))))
    assert histories[0] == histories[1]
