"""Writers of ours past compactions that were committed first: nothing runs again, and no row is lost or doubled.

Ours holds a handle on an old version, like a long job. Others write and compact meanwhile: with pylance's compaction,
and with a plain one that can be planned before other writers commit and committed after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.caches import cached
from tests.compactor import plan_compaction
from tests.concurrency.past import WAYS, Attempts, Compact, Planned, Race, counted, newest
from tests.property.merge_change import Merge
from tests.property.row_model import (
    COLUMNS,
    AddColumns,
    Append,
    Change,
    Delete,
    Expression,
    Model,
    Update,
    Widen,
    always,
    assert_reads_as,
    created,
    ids_in,
    literal,
    new_rows,
    plus,
)

import tablewright as tw
from tablewright.errors import CommitConflict
from tablewright.format.naming import manifest_path

ROWS, PER_FILE = 12, 4


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Attempts]:
    with counted(monkeypatch) as found:
        yield found


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def race(request: pytest.FixtureRequest, tmp_path: Path, attempts: Attempts, engine: Any) -> Race:
    """Three fragments of four rows; row 5 was deleted before."""
    uri, stable = str(tmp_path / "t.lance"), request.param
    model = created(tw, uri, ROWS, per_file=PER_FILE, stable=stable)
    before = Delete(ids_in({5}))
    before.run(tw, tw.dataset(uri))
    return Race(uri, before.after(model, 2), stable, attempts, engine)


def upsert(model: Model, *ids: int, mode: str = "auto", **more: Any) -> Merge:
    rows = tuple({**row, "b": f"merged {row['id']}"} for id in ids for row in new_rows(model, id, 1))
    return Merge(rows, model, mode=mode, **more)


def changes(model: Model) -> dict[str, Change]:
    """What ours does: rows of all three fragments, at their edges and inside."""
    some = ids_in({0, 3, 6, 11})
    return {
        "delete": Delete(some),
        "delete a whole fragment": Delete(ids_in({4, 6, 7})),
        "delete all": Delete(always()),
        "update rows": Update({"a": plus("a", 100)}, some, "rewrite_rows"),
        "update columns": Update({"a": plus("a", 100)}, some, "rewrite_columns"),
        "update a member": Update({"st.x": literal(77)}, some, "rewrite_columns"),
        "update all columns": Update({"b": literal("all")}, always(), "rewrite_columns"),
        "upsert rows": upsert(model, 0, 3, 6, 50, mode="rewrite_rows"),
        "upsert columns": upsert(model, 0, 3, 6, 50, mode="rewrite_columns"),
        "delete by source": upsert(model, 0, 3, 60, by_source=ids_in({1, 7, 11})),
        "add column": AddColumns("new", pa.int64(), plus("id", 1)),
        "widen": Widen("a"),
    }


NAMES = list(changes(Model(COLUMNS)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_past_one_compaction(race: Race, name: str, way: str) -> None:
    race.others(Compact(way, rows_per_file=7))
    race.ours(changes(race.model)[name])


@pytest.mark.parametrize("name", NAMES)
def test_past_a_compaction_that_was_planned_before_a_delete(race: Race, name: str) -> None:
    """Case 1: its ranks are those of the rows that it read; the deleted ones are hidden in what it wrote."""
    race.others(Planned(Delete(ids_in({2, 9})), rows_per_file=7))
    same_rows = name in ("delete all", "update all columns")  # a conflict without any compaction
    race.ours(changes(race.model)[name], attempts=2 if same_rows else 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_row_that_was_moved_before_the_compaction_is_not_gone(race: Race, way: str) -> None:
    """Case 2: the delete has to find it where it is."""
    race.others(Update({"a": literal(5)}, ids_in({3}), "rewrite_rows"), Compact(way))
    race.ours(Delete(ids_in({3, 6})), attempts=2)
    assert "both modified 1 rows" in race.attempts.conflicts[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_row_that_was_deleted_before_the_compaction_is_gone(race: Race, way: str) -> None:
    race.others(Delete(ids_in({3})), Compact(way))
    assert race.ours(Delete(ids_in({3, 6}))) == 1


@pytest.mark.parametrize("way", ["ours", "plain"])
@pytest.mark.parametrize("emptied", [{0, 1, 2, 3}, {4, 6, 7}, {8, 9, 10, 11}, {0, 1, 2, 3, 4}])
@pytest.mark.parametrize("name", ["delete", "update rows", "update columns", "add column"])
def test_a_fragment_or_an_output_is_emptied_meanwhile(race: Race, name: str, emptied: set[int], way: str) -> None:
    """Case 3: an output without live rows is not in the manifest, and counts for the ranks of the others."""
    race.others(Planned(Delete(ids_in(emptied)), rows_per_file=5 if way == "ours" else 3, way=way))
    kept = ids_in({0, 3, 6, 9, 11} - emptied)
    ours = {
        "delete": Delete(kept),
        "update rows": Update({"a": literal(9)}, kept, "rewrite_rows"),
        "update columns": Update({"a": literal(9)}, kept, "rewrite_columns"),
        "add column": AddColumns("new", pa.int64(), plus("id", 1)),
    }
    race.ours(ours[name])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_a_chain_of_compactions_with_writers_between(race: Race, name: str, way: str) -> None:
    """Case 4: F → G → H."""
    race.others(
        Update({"b": literal("first")}, ids_in({1, 8}), "rewrite_rows"),
        Compact(way, rows_per_file=8),
        Delete(ids_in({2})),
        Compact(way, rows_per_file=1000),
        Update({"b": literal("second")}, ids_in({9}), "rewrite_rows"),
        Compact(way, rows_per_file=6),
    )
    hits = {"delete all", "delete by source", "update all columns", "add column", "widen"}
    race.ours(changes(race.model)[name], attempts=2 if name in hits else 1)


@pytest.mark.parametrize("way", WAYS)
def test_columns_of_one_of_three_members(race: Race, way: str) -> None:
    """Case 5: one row of it was deleted. The values of the others come from the new fragment."""
    race.others(Compact(way))
    race.ours(Update({"a": plus("a", 100), "b": literal("ours")}, ids_in({4, 7}), "rewrite_columns"))


@pytest.mark.parametrize("way", WAYS)
def test_columns_after_columns(race: Race, way: str) -> None:
    """Theirs rewrote another column of the same rows before the compaction, and yet another one after it."""
    race.others(
        Update({"b": literal("theirs")}, ids_in({4, 7, 8}), "rewrite_columns"),
        Compact(way, rows_per_file=7),
        Update({"st.x": literal(3)}, ids_in({0, 4}), "rewrite_columns"),
    )
    race.ours(Update({"a": literal(5)}, ids_in({4, 7, 9}), "rewrite_columns"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_a_key_that_came_and_was_compacted(race: Race, way: str, mode: str) -> None:
    """Case 6: one row of each key; the upsert looks again only where one of its keys came."""
    race.others(Append(new_rows(race.model, 40, 3), race.model), Compact(way))
    race.ours(upsert(race.model, 0, 6, 50, mode=mode))
    race.stale = race.opened(2)
    race.ours(upsert(race.model, 1, 41, 51, mode=mode), attempts=2)


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_was_found_and_compacted(race: Race, way: str) -> None:
    """Case 7: nothing was inserted for it; it has to be there still when the merge is committed."""
    found = upsert(race.model, 3, 70, matched="nothing")
    race.others(Compact(way))
    race.ours(found)
    race.stale = race.opened(2)
    race.others(Delete(ids_in({6})))
    race.ours(upsert(race.model, 6, 71, matched="nothing"), attempts=2)


@pytest.mark.parametrize("way", WAYS)
def test_serializable_passes_a_compaction_and_nothing_else(race: Race, way: str) -> None:
    race.others(Compact(way))
    race.attempts.forget()
    assert race.stale.delete("id = 0", isolation="serializable") == {"num_deleted_rows": 1}
    assert race.attempts.commits == [0]
    race.stale = race.opened(2)
    race.attempts.forget()
    assert race.stale.update({"a": "1"}, where="id = 1", isolation="serializable") == {"num_rows_updated": 1}
    assert len(race.attempts.commits) == 2


def test_what_it_cost_is_reported(race: Race) -> None:
    race.others(Compact("ours"), Delete(ids_in({2})), Compact("pylance"))
    report = race.stale.prepare_update({"a": "5"}, where="id in (0, 6)", write_mode="rewrite_columns").analyze_plan()
    (line,) = [line for line in report.splitlines() if "rebased past" in line]
    assert re.fullmatch(
        r"  rebased past 2 compactions: rows=4, bytes_carried=\d+, seconds=\d+\.\d{3}; nothing ran again", line
    )
    assert "rebased past" not in race.opened().prepare_delete("id = 1").analyze_plan()


def test_a_prepared_transaction_passes_a_compaction(race: Race) -> None:
    """One that somebody commits later, with the rows that it touches; without them it has to be made again."""
    transaction, _ = race.stale.prepare_delete("id in (0, 6)").execute_uncommitted()
    race.others(Compact("pylance"))
    tw.LanceDataset.commit(race.uri, transaction)
    race.model = Delete(ids_in({0, 6})).after(race.model, 5)
    race.check()
    bare, _ = race.opened(2).prepare_delete("id = 1").execute_uncommitted()
    bare.affected_rows = None
    with pytest.raises(CommitConflict, match="does not say which rows it touches"):
        tw.LanceDataset.commit(race.uri, bare)


# --------------------------------------------------------------------------------------------- no value is made twice
@dataclass
class Counting:
    """A column that a function computes, which remembers the rows that it was asked for."""

    seen: list[int] = field(default_factory=list)

    def change(self) -> AddColumns:
        def value(row: Any) -> int:
            self.seen.append(row["id"])
            return int(row["id"]) * 2

        return AddColumns("doubled", pa.int64(), Expression("id * 2", value, frozenset({"id"})), "udf")


def counted_rows(race: Race, attempts: int) -> list[int]:
    """Add a column by a function; returns the rows that it was called for, as often as it was."""
    counting = Counting()
    race.attempts.forget()
    counting.change().run(tw, race.stale)
    assert max(race.attempts.commits) + 1 == attempts, race.attempts.conflicts
    seen = sorted(counting.seen)
    race.model = counting.change().after(race.model, tw.dataset(race.uri).version)
    race.check()
    return seen


@pytest.mark.parametrize("way", WAYS)
def test_no_function_runs_again_past_compactions(race: Race, way: str) -> None:
    known = sorted(race.model.rows)
    race.others(Compact(way, 7), Delete(ids_in({4})), Compact(way))
    assert counted_rows(race, 1) == known


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_came_and_were_compacted_are_computed_once(race: Race, way: str) -> None:
    """They are in one fragment now with rows that were computed before."""
    race.others(
        Append(new_rows(race.model, 40, 3), race.model),
        Compact(way),
        Delete(ids_in({4, 41})),
        Append(new_rows(race.model, 50, 3), race.model),
        Compact(way),
        Append(new_rows(race.model, 60, 2), race.model),
    )
    expected = [*range(5), *range(6, 12), 40, 41, 42, 50, 51, 52, 60, 61]
    assert counted_rows(race, 2) == expected


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_were_moved_and_compacted_are_computed_again(race: Race, way: str) -> None:
    """They are others by their values; those that stayed where they were are not."""
    race.others(Update({"a": literal(1)}, ids_in({3, 8}), "rewrite_rows"), Compact(way))
    assert counted_rows(race, 2) == sorted([*race.model.rows, 3, 8])


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_of_values_passes_compactions(race: Race, way: str) -> None:
    race.others(Compact(way, 7), Delete(ids_in({4})))
    race.ours(AddColumns("new", pa.int64(), plus("id", 1), "stream"))


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_of_values_passes_rows_that_came(race: Race, way: str) -> None:
    """They have no value in it, and get null."""
    race.others(Append(new_rows(race.model, 40, 3), race.model), Compact(way))
    nulls = Expression("", lambda row: None if row["id"] >= 40 else row["id"] + 1)
    race.ours(AddColumns("new", pa.int64(), nulls, "stream"), attempts=2)


def test_a_checkpoint_passes_compactions(race: Race, tmp_path: Path) -> None:
    seen: list[int] = []

    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.extend(batch["id"].to_pylist())
        return pa.record_batch([pa.array([2 * id for id in batch["id"].to_pylist()], pa.int64())], names=["doubled"])

    race.others(Append(new_rows(race.model, 40, 3), race.model), Compact("ours"))
    function = tw.batch_udf(output_schema=pa.schema({"doubled": pa.int64()}), checkpoint_file=tmp_path / "c.sqlite")
    race.stale.add_columns(function(double), read_columns=["id"])
    assert sorted(seen) == sorted(race.model.rows)
    race.others()
    race.model = Counting().change().after(race.model, tw.dataset(race.uri).version)
    race.check()


# ----------------------------------------------------------------------------------------------- what is not trusted
@pytest.mark.parametrize("name", ["delete", "update rows", "update columns", "add column", "upsert rows"])
def test_a_rewrite_that_reordered_rows_is_recognised(race: Race, name: str) -> None:
    """Case 17: counts agree and `validate` is clean, so only values or row ids can tell."""
    plan_compaction(newest(race.uri), reorder=True).commit()
    race.ours(changes(race.model)[name], attempts=2)
    assert "after the rewrite" in race.attempts.conflicts[0]


def test_a_rewrite_of_pylance_that_reordered_rows_is_recognised(
    tmp_path: Path, attempts: Attempts, engine: Any
) -> None:
    uri = str(tmp_path / "t.lance")
    race = Race(uri, created(tw, uri, ROWS, per_file=PER_FILE, stable=False), False, attempts, engine)
    dataset = lance.dataset(uri)
    old = [fragment.metadata for fragment in dataset.get_fragments()]
    reversed_rows = dataset.to_table().take(list(range(ROWS))[::-1])
    (new,) = lance.fragment.write_fragments(reversed_rows, uri, mode="append")
    new.id = 7
    group = lance.LanceOperation.RewriteGroup(old_fragments=old, new_fragments=[new])
    rewrite = lance.LanceOperation.Rewrite(groups=[group], rewritten_indices=[])
    lance.LanceDataset.commit(uri, rewrite, read_version=dataset.version)
    race.ours(Delete(ids_in({0, 1})), attempts=2)
    assert "their order was changed" in race.attempts.conflicts[0]


@pytest.mark.parametrize("kind", ["data", "_deletions"])
@pytest.mark.parametrize("name", ["delete", "update rows", "update columns", "upsert rows", "add column"])
def test_old_files_that_were_cleaned_up(race: Race, kind: str, name: str) -> None:
    """Case 12: without them the map can't be made, or rows not compared, and the operation runs again.

    They go after ours has read them.
    """
    with cached("off"):
        race.others(Delete(ids_in({9})))
        race.stale = race.opened()
        old = list((Path(race.uri) / kind).iterdir())

        def compact_and_clean() -> None:
            Compact("ours").run(tw, race.opened())
            for path in old:
                path.unlink()

        race.attempts.forget()
        race.attempts.meanwhile = compact_and_clean
        changes(race.model)[name].run(tw, race.stale)
        by_ids = race.stable and kind == "data"  # row ids are in the manifest, and columns of ours in files of ours
        assert race.attempts.commits == ([0] if by_ids else [0, 1]), race.attempts.conflicts
        assert by_ids or "can't be read" in race.attempts.conflicts[0]
        race.model = changes(race.model)[name].after(race.model, tw.dataset(race.uri).version)
        for library in (tw, lance):
            assert_reads_as(library.dataset(race.uri), race.model, stable=race.stable)


def test_versions_in_between_that_were_cleaned_up(race: Race) -> None:
    race.others(Compact("ours"), Delete(ids_in({9})))
    for version in (3, 4):
        path = Path(race.uri) / manifest_path(version)
        path.unlink()
    race.attempts.forget()
    race.stale.delete("id = 3")
    assert race.attempts.commits == [0, 1]
    race.model = Delete(ids_in({3})).after(race.model, tw.dataset(race.uri).version)
    for library in (tw, lance):
        assert_reads_as(library.dataset(race.uri), race.model, stable=race.stable)
