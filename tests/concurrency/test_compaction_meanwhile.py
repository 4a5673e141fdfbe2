"""Compactions of ours that others overtake: what was committed meanwhile is in the compacted table.

Sources are read once. Afterwards rows, row ids, versions and index answers are those that the table had before, as both
libraries read them, and no file is left that no version names.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.concurrency.compacting import OPTIONS, assert_sound, expected, made, meanwhile, new_rows
from tests.depth import deep, pairs_first

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.errors import CommitConflict
from tablewright.format.transaction import Rewrite
from tablewright.optimize import Compaction
from tablewright.snapshot.files import read_transaction

Write = Callable[[Any], object]


def upsert(dataset: Any) -> object:
    rows = pa.concat_tables([new_rows(12, 3), new_rows(120, 2), new_rows(1000, 2)])
    rows = rows.set_column(2, "v", pa.array([f"merged {n}" for n in range(rows.num_rows)]))
    return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def patch(dataset: Any, column: str, value: Any) -> object:
    """Some rows of some fragments, in place: ours by update, pylance by a merge of some columns."""
    rows = pa.table({"id": [1, 5, 60, 98, 255], column: pa.array([value] * 5)})
    if isinstance(dataset, tw.LanceDataset):
        literal = f"'{value}'" if isinstance(value, str) else str(value)
        return dataset.update({column: literal}, where="id in (1, 5, 60, 98, 255)", write_mode="rewrite_columns")
    return dataset.merge_insert("id").when_matched_update_all().execute(rows)


def move(dataset: Any) -> object:
    mode = {"write_mode": "rewrite_rows"} if isinstance(dataset, tw.LanceDataset) else {}
    return dataset.update({"v": "'moved'"}, where="id > 90 and id < 110 or id = 0", **mode)


def index(dataset: Any) -> object:
    """An index that covers a group in part: one of two fragments, then an append that it does not cover."""
    theirs = lance.dataset(dataset.uri)
    theirs.create_scalar_index("n", "BTREE")
    return theirs.insert(new_rows(2000, 5))


CHANGES: dict[str, Write] = {
    "delete": lambda ds: ds.delete("id < 25 or id = 50 or id = 299"),
    "delete a fragment": lambda ds: ds.delete("id >= 50 and id < 100"),
    "delete a group": lambda ds: ds.delete("id < 100"),
    "delete all": lambda ds: ds.delete("true"),
    "move rows": move,
    "columns in place": lambda ds: patch(ds, "v", "patched"),
    "the indexed column in place": lambda ds: patch(ds, "key", 5000),
    "upsert": upsert,
    "add columns": lambda ds: ds.add_columns({"w": "id * 2"}),
    "drop a column": lambda ds: ds.drop_columns(["v"]),
    "rename a column": lambda ds: ds.alter_columns({"path": "v", "name": "renamed"}),
    "cast a column": lambda ds: ds.alter_columns({"path": "n", "data_type": pa.int64()}),
    "append": lambda ds: ds.insert(new_rows(1000, 3)),
    "create an index": index,
    "drop and add again": lambda ds: (ds.drop_columns(["v"]), ds.add_columns({"v": "cast(id + 1 as string)"})),
    "much at once": lambda ds: (ds.delete("id = 60"), patch(ds, "v", "p"), move(ds), ds.insert(new_rows(900, 2))),
}


@dataclass(frozen=True)
class Case:
    change: str
    stable: bool
    indexed: bool
    writer: str

    def __str__(self) -> str:
        kind, index = "stable" if self.stable else "addresses", "indexed" if self.indexed else "plain"
        return f"{self.change}, {kind}, {index}, {self.writer}"


EVERY = [Case(*each) for each in itertools.product(CHANGES, (False, True), (False, True), ("ours", "pylance"))]
CASES = pairs_first(
    (case, {"change": case.change, "stable": case.stable, "indexed": case.indexed, "writer": case.writer})
    for case in EVERY
)[: deep(24, len(EVERY))]


@pytest.fixture(scope="module")
def masters(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool, bool], Path]:
    """One table of each kind, to be copied."""
    known: dict[tuple[bool, bool], Path] = {}

    def master(stable: bool, indexed: bool) -> Path:
        if (stable, indexed) not in known:
            known[stable, indexed] = tmp_path_factory.mktemp("compact") / "table"
            made(known[stable, indexed], stable=stable, indexed=indexed)
        return known[stable, indexed]

    return master


Copy = Callable[[bool, bool], Path]


@pytest.fixture
def copy(masters: Copy, tmp_path: Path) -> Copy:
    def copied(stable: bool, indexed: bool = False) -> Path:
        return Path(shutil.copytree(masters(stable, indexed), tmp_path / "table"))

    return copied


def opened(path: Path, writer: str, engine: Any, **version: Any) -> Any:
    return lance.dataset(str(path)) if writer == "pylance" else tw.dataset(str(path), engine=engine, **version)


def rewrite_of(dataset: tw.LanceDataset) -> Rewrite:
    """The transaction of the newest version."""
    snapshot = table_of(dataset).snapshot
    transaction = read_transaction(snapshot.world.store, snapshot.file)
    assert transaction is not None and isinstance(transaction.operation, Rewrite)
    return transaction.operation


@pytest.mark.parametrize("case", CASES, ids=str)
def test_changes_meanwhile_are_taken_over(copy: Copy, case: Case, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stable, state = copy(case.stable, case.indexed), case.stable, []

    def change() -> None:
        CHANGES[case.change](opened(path, case.writer, engine))
        state.append(expected(path, stable=stable))

    ours = opened(path, "ours", engine)
    planned = table_of(ours).snapshot
    with meanwhile(monkeypatch, change):
        metrics = ours.optimize.compact_files(**OPTIONS, num_threads=1)
    assert (metrics.fragments_removed, metrics.groups_dropped) == (6, 0)
    assert_sound(path, state[0], stable=stable)
    assert not {fragment.fragment_id for fragment in ours.get_fragments()} & set(range(6))
    groups = rewrite_of(ours).groups
    assert [old for group in groups for old in group.old_fragments] == list(planned.fragments), "as they were read"
    for group in groups:
        live = sum(fragment.live_rows for fragment in group.old_fragments)
        assert live == sum(fragment.physical_rows for fragment in group.new_fragments)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("writer", ["ours", "pylance"])
@pytest.mark.parametrize("which", ["others", "some", "all"])
def test_compactions_meanwhile(
    copy: Copy, which: str, writer: str, stable: bool, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of other fragments: fine. Of some of ours: those groups are dropped, with their files. All: no error."""
    path = copy(stable, True)
    opened(path, "ours", engine).insert(new_rows(5000, 20))
    lance.dataset(str(path)).insert(new_rows(6000, 20))
    rows, excluded = expected(path, stable=stable), {"others": [0, 1, 2, 3, 4, 5], "some": [0, 3, 4, 5, 6], "all": []}

    def compact() -> None:
        opened(path, writer, engine).optimize.compact_files(**OPTIONS, excluded_fragment_ids=excluded[which])

    with meanwhile(monkeypatch, compact):
        metrics = opened(path, "ours", engine).optimize.compact_files(
            **OPTIONS, num_threads=1, excluded_fragment_ids=[6, 7]
        )
    dropped = {"others": 0, "some": 2, "all": 3}[which]
    assert (metrics.groups_dropped, metrics.fragments_removed) == (dropped, 6 - 2 * dropped)
    assert_sound(path, rows, stable=stable)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("writer", ["ours", "pylance"])
@pytest.mark.parametrize("verb", ["restore", "overwrite"])
def test_a_table_that_was_replaced_meanwhile(
    copy: Copy, verb: str, writer: str, stable: bool, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, library = copy(stable), tw if writer == "ours" else lance

    def replace() -> None:
        if verb == "restore":
            library.dataset(str(path), version=1).restore()
        else:
            library.write_dataset(new_rows(7000, 10), str(path), mode="overwrite")

    with (
        meanwhile(monkeypatch, replace),
        pytest.raises(CommitConflict, match=verb.title()) as caught,
    ):
        opened(path, "ours", engine).optimize.compact_files(**OPTIONS, num_threads=1)
    assert not caught.value.retryable
    assert_sound(path, expected(path, stable=stable), stable=stable)
    assert opened(path, "ours", engine).version == 3, "no fragment ids were reserved"


@pytest.mark.parametrize("when", ["rewritten", "placed"])
@pytest.mark.parametrize("emptied", [False, True])
def test_stable_ids_are_switched_on_meanwhile(
    copy: Copy, emptied: bool, when: str, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 11. A group of which a fragment was emptied has no ids for its rows: it waits for the next compaction."""
    path, state = copy(False, True), []

    def switch() -> None:
        dataset = opened(path, "ours", engine)
        if emptied:
            dataset.delete("id < 50")
        dataset.delete("id = 205")
        dataset.enable_stable_row_ids()
        dataset.update({"v": "'after'"}, where="id = 60", write_mode="rewrite_columns")
        state.append(expected(path, stable=True))

    ours = opened(path, "ours", engine)
    if when == "rewritten":
        with meanwhile(monkeypatch, switch):
            metrics = ours.optimize.compact_files(**OPTIONS, num_threads=1)
    else:
        with after_placing(monkeypatch, switch):
            metrics = ours.optimize.compact_files(**OPTIONS)
    assert metrics.groups_dropped == emptied
    assert_sound(path, state[0], stable=True)


def after_placing(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> Any:
    """`then` runs once, just before the first Rewrite is committed."""
    from tablewright.jobs import compact

    context, done = monkeypatch.context(), []
    plain = compact.compaction_transaction

    def placed(*args: Any, **options: Any) -> Any:
        transaction = plain(*args, **options)
        if not done:
            done.append(True)
            then()
        return transaction

    class Patched:
        def __enter__(self) -> None:
            context.__enter__().setattr(compact, "compaction_transaction", placed)

        def __exit__(self, *error: Any) -> None:
            context.__exit__(*error)

    return Patched()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_changes_just_before_the_commit(
    copy: Copy, change: str, stable: bool, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The groups were placed already: they are placed again, and what was written for the first place goes."""
    path, state = copy(stable, change == "create an index"), []

    def then() -> None:
        CHANGES[change](opened(path, "ours", engine))
        state.append(expected(path, stable=stable))

    ours = opened(path, "ours", engine)
    results = [task.execute(ours) for task in Compaction.plan(ours, OPTIONS).tasks]
    opened(path, "ours", engine).delete("id = 77")  # a deletion file is written for the first place
    patch(opened(path, "ours", engine), "n", 3)  # and columns are carried
    with after_placing(monkeypatch, then):
        metrics = Compaction.commit(ours, results)
    assert (metrics.fragments_removed, metrics.groups_dropped) == (6, 0)
    assert_sound(path, state[0], stable=stable)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("emptied", ["id < 50", "id >= 50 and id < 100", "id < 100", "id >= 86 and id < 172"])
def test_fragments_and_outputs_that_are_emptied(copy: Copy, emptied: str, stable: bool, engine: Any) -> None:
    """Case 3: three fragments, two outputs. What is empty is in the transaction, and not in the manifest."""
    path = copy(stable, True)
    ours = opened(path, "ours", engine)
    options = {"target_rows_per_fragment": 60, "excluded_fragment_ids": [3, 4, 5]}
    (task,) = Compaction.plan(ours, options).tasks
    results = [task.execute(ours)]
    assert [fragment.physical_rows for fragment in results[0].new_fragments] == [65, 64]
    opened(path, "ours", engine).delete(emptied)
    rows = expected(path, stable=stable)
    Compaction.commit(ours, results)
    assert_sound(path, rows, stable=stable)
    stale = opened(path, "ours", engine, version=2)
    stale.delete("id in (1, 40, 60, 130, 140)")
    kept = np.isin(rows["id"].to_numpy(), [1, 40, 60, 130, 140], invert=True)
    assert_sound(path, rows.filter(pa.array(kept)), stable=stable)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_columns_of_one_of_three_members(copy: Copy, stable: bool, engine: Any) -> None:
    """Case 5: in place in one fragment of a group of three; a row of it that was patched is deleted, too."""
    path = copy(stable, True)
    ours = opened(path, "ours", engine)
    (task,) = Compaction.plan(ours, {"target_rows_per_fragment": 60, "excluded_fragment_ids": [3, 4, 5]}).tasks
    results = [task.execute(ours)]
    other = opened(path, "ours", engine)
    other.update({"v": "'in place'", "key": "key + 7"}, where="id in (60, 61, 62)", write_mode="rewrite_columns")
    other.delete("id = 61")
    rows = expected(path, stable=stable)
    metrics = Compaction.commit(ours, results)
    assert metrics.rows_hidden == 1 and metrics.bytes_carried > 0
    assert_sound(path, rows, stable=stable)


STALE: dict[str, Write] = {
    "delete": lambda ds: ds.delete("id in (2, 61)"),
    "update": lambda ds: ds.update({"v": "'stale'"}, where="id in (2, 61)"),
    "merge": upsert,
    "compact": lambda ds: ds.optimize.compact_files(target_rows_per_fragment=150),
    "index": lambda ds: ds.create_scalar_index("n", "BTREE"),
    "add columns": lambda ds: ds.add_columns({"stale": "id + 1"}),
    "append": lambda ds: ds.insert(new_rows(3000, 2)),
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("name", sorted(STALE))
def test_pylance_with_a_stale_handle(copy: Copy, name: str, stable: bool, engine: Any) -> None:
    """Case 16: past a compaction with hidden rows and carried columns it commits what is right, or sees a conflict."""
    path = copy(stable, True)
    ours, theirs = opened(path, "ours", engine), lance.dataset(str(path))
    results = [task.execute(ours) for task in Compaction.plan(ours, OPTIONS).tasks]
    opened(path, "ours", engine).delete("id = 60")
    patch(opened(path, "ours", engine), "v", "patched")
    Compaction.commit(ours, results)
    before = expected(path, stable=stable)
    if name in ("compact", "add columns", "index"):
        with pytest.raises(OSError, match="commit conflict"):
            STALE[name](theirs)
        assert_sound(path, before, stable=stable, tidy=False)
        theirs = lance.dataset(str(path))
    STALE[name](theirs)
    after = expected(path, stable=stable)
    kept = [id for id in before["id"].to_pylist() if name != "delete" or id not in (2, 61)]
    came = {"append": [3000, 3001], "merge": [12, 13, 14, 120, 121, 1000, 1001]}.get(name, [])
    assert after["id"].to_pylist() == sorted({*kept, *came})
    if name == "add columns":
        assert after["stale"].to_pylist() == [id + 1 for id in after["id"].to_pylist()]
