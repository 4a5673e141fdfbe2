"""An index is built, optimised or dropped while others commit, before and after: both land, and answers are right."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.index_check import check_indices
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.scene import one_thread, outcome_of
from tests.concurrency.stage import ADDRESS, copied, listing, new_store, on_stage, set_up, within
from tests.depth import deep, stride

import tablewright as tw
from tablewright.errors import ColumnNotFound, CommitConflict, IndexExists, IndexNotFound
from tablewright.storage import Store
from tablewright.testing import Call, FaultyStore, Pause, at_call, interleave, seeded_world

KINDS = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
LIBRARY = pytest.mark.parametrize("library", [tw, lance], ids=["ours", "pylance"])


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": ids, "a": [None if i % 5 == 2 else i % 4 for i in ids], "b": [i % 3 for i in ids]})


def table(uri: Any, stable: bool) -> Any:
    dataset = tw.write_dataset(rows(0, 60), uri, max_rows_per_file=10, enable_stable_row_ids=stable)
    dataset.delete("id % 10 = 4")
    return dataset


CHANGES: dict[str, Callable[[Any], Any]] = {
    "append": lambda ds: ds.insert(rows(100, 120)),
    "delete": lambda ds: ds.delete("id % 7 = 0"),
    "delete a fragment": lambda ds: ds.delete("id < 10"),
    "update the column": lambda ds: ds.update({"a": "77"}, where="id % 6 = 1"),
    "update another": lambda ds: ds.update({"b": "77"}, where="id % 6 = 1"),
    "compact": lambda ds: ds.optimize.compact_files(target_rows_per_fragment=25),
    "compact, deferred": lambda ds: ds.optimize.compact_files(
        target_rows_per_fragment=25, defer_index_remap=not ds.has_stable_row_ids
    ),
    "drop another column": lambda ds: ds.drop_columns(["b"]),
    "index another column": lambda ds: ds.create_scalar_index("b", "BTREE"),
}
CHAINS = [
    ("append", "compact"),
    ("update the column", "compact"),
    ("compact", "delete", "compact"),
    ("compact", "update the column", "compact"),
    ("delete a fragment", "compact, deferred", "append"),
    ("update another", "compact", "delete"),
]


def cases() -> list[Any]:
    """Every change and chain by either library on either kind of table; a part of them where time is short."""
    names = [*((each,) for each in CHANGES), *CHAINS]
    every = [
        pytest.param(
            *case, id=f"{case[0]}-{'+'.join(case[1])}-{case[2].__name__}-{'stable' if case[3] else 'addresses'}"
        )
        for case in itertools.product(["build", "optimize"], names, [tw, lance], [False, True])
    ]
    return every[:: stride(4)]


@pytest.mark.parametrize(("verb", "names", "library", "stable"), cases())
def test_others_commit_before_a_stale_handle_does(
    tmp_path: Path, verb: str, names: tuple[str, ...], library: Any, stable: bool
) -> None:
    """The handle shows a version from before their commits; what is committed through it follows them."""
    uri = str(tmp_path)
    stale = table(uri, stable)
    if verb == "optimize":
        stale.create_scalar_index("a", "BTREE")
        stale.insert(rows(200, 220))
    for name in names:
        CHANGES[name](library.dataset(uri))
    if verb == "build":
        stale.create_scalar_index("a", "BTREE")
    else:
        stale.optimize.optimize_indices()
    dataset = tw.dataset(uri)
    assert stale.version == dataset.version
    covered = check_indices(dataset)
    changed = "update the column" in names or "append" in names or (stable and "update another" in names)
    assert covered or changed  # a compaction may put rows that are new to the index into every fragment
    if not changed and verb == "build" and "index another column" not in names:
        stats = dataset.stats.index_stats("a_idx")
        moved = "update another" in names and not stable
        assert stats["num_unindexed_rows"] == 0 or moved, f"coverage was lost: {stats}"
    there = lance.dataset(uri)
    for value in (0, 1, 2, 3, 77):
        flat = there.scanner(filter=f"a = {value}", use_scalar_index=False).count_rows()
        assert there.count_rows(f"a = {value}") == flat, value
        assert dataset.count_rows(f"a = {value}") == flat, value
    assert not unreferenced(dataset, [str(p.relative_to(uri)) for p in Path(uri).rglob("*.lance")])


@KINDS
@LIBRARY
@pytest.mark.parametrize("kind", ["ZONEMAP", "BITMAP", "BLOOMFILTER"][: deep(2, 3)])
@pytest.mark.parametrize(
    "names", [("compact",), ("compact", "delete", "compact"), ("delete a fragment", "compact")], ids="+".join
)
def test_other_kinds_follow_a_compaction(
    tmp_path: Path, names: tuple[str, ...], kind: str, library: Any, stable: bool
) -> None:
    uri = str(tmp_path)
    stale = table(uri, stable)
    for name in names:
        CHANGES[name](library.dataset(uri))
    stale.create_scalar_index("a", kind)
    assert check_indices(tw.dataset(uri))
    there = lance.dataset(uri)
    assert there.stats.index_stats("a_idx")["num_unindexed_rows"] == 0
    for value in (0, 1, 2, 3, 77):
        flat = there.scanner(filter=f"a = {value}", use_scalar_index=False).count_rows()
        assert there.count_rows(f"a = {value}") == flat, value
    assert len(list((tmp_path / "_indices").iterdir())) == 1


@KINDS
def test_a_compaction_comes_after(tmp_path: Path, stable: bool) -> None:
    """A compaction through a handle from before the index: ours follows it, pylance's fails and is to be run again."""
    uri = str(tmp_path)
    stale = table(uri, stable)
    tw.dataset(uri).create_scalar_index("a", "BTREE")
    stale.optimize.compact_files(target_rows_per_fragment=25)
    check_indices(tw.dataset(uri))
    for value in (0, 1, 2, 3):
        there = lance.dataset(uri)
        flat = there.scanner(filter=f"a = {value}", use_scalar_index=False).count_rows()
        assert there.count_rows(f"a = {value}") == flat


@LIBRARY
def test_two_builders_of_one_name_leave_one_index(tmp_path: Path, library: Any) -> None:
    uri = str(tmp_path)
    stale, strict = table(uri, stable=False), tw.dataset(uri)
    library.dataset(uri).create_scalar_index("a", "BTREE")
    (first,) = tw.dataset(uri).list_indices()
    stale.create_scalar_index("a", "BTREE")
    (second,) = tw.dataset(uri).list_indices()
    assert first["uuid"] != second["uuid"] and stale.version == tw.dataset(uri).version
    with pytest.raises(IndexExists, match="replace=True"):
        strict.create_scalar_index("a", "BTREE", replace=False)
    assert len(list((tmp_path / "_indices").iterdir())) == 2, "the files of the loser went"
    check_indices(tw.dataset(uri))


def test_the_column_is_dropped_meanwhile(tmp_path: Path) -> None:
    uri = str(tmp_path)
    stale = table(uri, stable=False)
    tw.dataset(uri).drop_columns(["a"])
    with pytest.raises(ColumnNotFound, match="a not found in schema"):
        stale.create_scalar_index("a", "BTREE")
    assert not list((tmp_path / "_indices").glob("*"))


def test_the_column_is_cast_meanwhile(tmp_path: Path) -> None:
    uri = str(tmp_path)
    stale = table(uri, stable=False)
    tw.dataset(uri).alter_columns({"path": "a", "data_type": pa.int16()})
    stale.create_scalar_index("a", "BTREE")
    assert check_indices(tw.dataset(uri)) == 54
    assert len(list((tmp_path / "_indices").glob("*"))) == 1


@pytest.mark.parametrize("verb", ["overwrite", "restore"])
def test_the_table_is_replaced_meanwhile(tmp_path: Path, verb: str) -> None:
    uri = str(tmp_path)
    stale = table(uri, stable=False)
    if verb == "overwrite":
        tw.write_dataset(rows(0, 5), uri, mode="overwrite")
    else:
        tw.dataset(uri, version=1).restore()
    with pytest.raises(CommitConflict):
        stale.create_scalar_index("a", "BTREE")
    assert not tw.dataset(uri).list_indices()
    assert not list((tmp_path / "_indices").glob("*"))


def test_an_index_that_was_dropped_meanwhile(tmp_path: Path) -> None:
    uri = str(tmp_path)
    dataset = table(uri, stable=False)
    dataset.create_scalar_index("a", "BTREE")
    dataset.insert(rows(100, 120))
    for act in (lambda ds: ds.optimize.optimize_indices(index_names=["a_idx"]), lambda ds: ds.drop_index("a_idx")):
        if not tw.dataset(uri).list_indices():
            tw.dataset(uri).create_scalar_index("a", "BTREE", fragment_ids=[0])
        stale = tw.dataset(uri)
        tw.dataset(uri).drop_index("a_idx")
        with pytest.raises(IndexNotFound, match="a_idx"):
            act(stale)
        assert not tw.dataset(uri).list_indices(), "a dropped index came back"
    stale = tw.dataset(uri, version=dataset.version)
    stale.create_scalar_index("a", "BTREE")
    check_indices(tw.dataset(uri))


def test_row_ids_are_switched_on_meanwhile(tmp_path: Path) -> None:
    uri = str(tmp_path)
    stale = table(uri, stable=False)
    tw.dataset(uri).optimize.compact_files(target_rows_per_fragment=25)
    tw.dataset(uri).enable_stable_row_ids()
    tw.dataset(uri).optimize.compact_files()
    stale.create_scalar_index("a", "BTREE")
    assert check_indices(tw.dataset(uri)) == 54


# ------------------------------------------------------------------------------------------------ at every storage call
@pytest.fixture
def _on_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)
    one_thread(monkeypatch)
    monkeypatch.setattr("tablewright.jobs.compact.spread", lambda function, items: [function(item) for item in items])


def _scene(stable: bool) -> Store:
    store = new_store()
    on_stage(store, lambda: table(ADDRESS, stable), seed=99)
    return store


def _build() -> Any:
    return tw.dataset(ADDRESS).create_scalar_index("a", "BTREE")


@pytest.mark.slow
@pytest.mark.usefixtures("_on_stage")
@KINDS
@pytest.mark.parametrize(
    "name", ["compact", "update the column", "compact, deferred", "append", "delete a fragment"][: deep(2, 5)]
)
def test_another_commits_at_every_call_of_a_build(name: str, stable: bool) -> None:
    base = _scene(stable)
    recording = FaultyStore(copied(base))
    assert outcome_of(recording, _build) is None
    for index in range(int(stable), len(recording.calls), stride(8)):
        store = copied(base)

        def commit(call: Call, store: Store = store) -> None:
            on_stage(store, lambda: CHANGES[name](tw.dataset(ADDRESS)), seed=50)

        error = outcome_of(FaultyStore(store, at_call(index, Pause(commit))), _build)
        assert error is None, f"at call {index}: {error!r}"
        assert on_stage(store, lambda: check_indices(tw.dataset(ADDRESS)))
        assert not on_stage(store, lambda s=store: unreferenced(tw.dataset(ADDRESS), listing(s))), f"at call {index}"


@pytest.mark.slow
@pytest.mark.usefixtures("_on_stage")
@KINDS
def test_races_of_builders_and_writers(stable: bool) -> None:
    """Switched at every call by a seed: all commit, one index is left, and it is right."""
    for seed in range(deep(2, 40)):
        store = _scene(stable)
        acts = [
            lambda ds: ds.create_scalar_index("a", "BTREE"),
            lambda ds: ds.create_scalar_index("a", "BTREE"),
            CHANGES["update the column"],
            CHANGES["compact"],
        ]

        def run(act: Callable[[Any], Any], number: int, own: Store, seed: int = seed) -> Any:
            with within(seeded_world(own, 1000 * seed + number)):
                return act(tw.dataset(ADDRESS))

        tasks = [lambda own, n=n, act=act: run(act, n, own) for n, act in enumerate(acts)]
        outcomes = interleave(store, tasks, seed)
        assert [outcome.error for outcome in outcomes] == [None] * len(acts), f"seed {seed}"
        assert len(on_stage(store, lambda: tw.dataset(ADDRESS).list_indices())) == 1, f"seed {seed}"
        on_stage(store, lambda: check_indices(tw.dataset(ADDRESS)))
        assert not on_stage(store, lambda s=store: unreferenced(tw.dataset(ADDRESS), listing(s))), f"seed {seed}"
