"""The conflict table, cell by cell: two changes made from the same version, committed one after the other.

The first is committed by either library; the second, stale, by either library. pylance after pylance tells what has to
come out: fine, retryable or incompatible. Where it is fine, the two tables are the same afterwards.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.depth import deep

from .changes import Base, base_table
from .referee import UNDER_TEST, assert_same_dataset, lance, ours, state_of, tree

NAMES = [
    "Append",
    "Delete rows of 0",
    "Delete rows of 1",
    "Delete fragment 0",
    "Update rows of 0",
    "Update rows of 1",
    "Update columns of 0",
    "Update columns of 1",
    "CreateIndex x",
    "CreateIndex extra",
    "Rewrite 0",
    "Rewrite 1 and 3",
    "Merge",
    "Project drop",
    "Project rename",
    "Project nullability",
    "DataReplacement of 0",
    "DataReplacement of 1",
    "Config a",
    "Config b",
    "Table metadata",
    "Schema metadata",
    "Field metadata 0",
    "Field metadata 1",
    "Overwrite",
    "Restore",
]

# Cells where we differ on purpose; the reason stands beside each.
DELETES = ("Delete rows of 0", "Delete rows of 1", "Delete fragment 0")
PROJECTS = [name for name in NAMES if name.startswith("Project")]
METADATA = ("Schema metadata", "Field metadata 0", "Field metadata 1")
REWRITES, INDICES = ("Rewrite 0", "Rewrite 1 and 3"), ("CreateIndex x", "CreateIndex extra")
DIFFERENT = {
    # pylance lets an index be created on a column that is being dropped, and the index dangles.
    ("CreateIndex extra", "Project drop"): "retryable",
    # Deletions and new columns stand side by side, in both orders; pylance runs the second one again.
    **{(delete, "Merge"): "fine" for delete in DELETES},
    **{("Merge", delete): "fine" for delete in DELETES},
    # A Project carries the whole schema: pylance commits the metadata that it has read, and loses newer ones.
    **{(project, metadata): "retryable" for project in PROJECTS for metadata in METADATA},
    # New columns are carried past a compaction; the coverage of an index follows it, in both orders.
    **{("Merge", rewrite): "fine" for rewrite in REWRITES},
    **{(index, rewrite): "fine" for index in INDICES for rewrite in REWRITES},
    **{(rewrite, index): "fine" for index in INDICES for rewrite in REWRITES},
    # Columns that were rewritten in place join new ones.
    **{(update, "Merge"): "fine" for update in ("Update columns of 0", "Update columns of 1")},
}

# Cells where pylance's own table fails its own validate(); ours has to pass.
INVALID = {("Rewrite 0", "Project drop"), ("Rewrite 1 and 3", "Project drop")} if UNDER_TEST == "tablewright" else set()
if UNDER_TEST != "tablewright":
    NAMES = [name for name in NAMES if name != "Project drop"]


@pytest.fixture(scope="module", params=["addresses", "stable"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Base:
    return base_table(tmp_path_factory.mktemp("base"), stable=request.param == "stable")


def _linked(uri: str, target: Path) -> str:
    """A copy that shares the files: no library ever changes one in place."""
    shutil.copytree(uri, target, copy_function=os.link)
    return str(target)


def _outcome(library: Any, uri: str, operation: Any, version: int, **options: Any) -> str:
    try:
        library.LanceDataset.commit(uri, operation, read_version=version, **options)
    except OSError as error:
        if library is not lance and not isinstance(error, ours.errors.CommitConflict):
            raise
        for word in ("Retryable commit conflict", "Incompatible transaction"):
            if word in str(error):
                return {"R": "retryable", "I": "incompatible"}[word[0]]
        raise
    return "fine"


def _committed(library: Any, base: Base, first: str, folder: Path, name: str) -> str:
    place = _linked(base.uri, folder / f"first-{name}.lance")
    assert _outcome(library, place, base.changes[first](library), base.version) == "fine"
    return place


def _seconds(base: Base, first: str) -> list[str]:
    """All; in CI the cells of the table take turns on both kinds of dataset, but for those that we fill otherwise."""
    if deep(1, 2) > 1:
        return NAMES
    turn = NAMES.index(first) + lance.dataset(base.uri).has_stable_row_ids
    return [name for number, name in enumerate(NAMES) if (number + turn) % 2 == 0 or (name, first) in DIFFERENT]


@pytest.mark.slow
@pytest.mark.parametrize("first", NAMES)
def test_every_second_change_comes_out_as_in_pylance(base: Base, tmp_path: Path, first: str) -> None:
    by_lance = _committed(lance, base, first, tmp_path, "lance")
    by_ours = _committed(ours, base, first, tmp_path, "ours")
    expected, found, reverse = {}, {}, {}
    for second in _seconds(base, first):
        change = base.changes[second]
        truth, mine, theirs = (tmp_path / f"{kind}-{second}" for kind in ("truth", "mine", "theirs"))
        expected[second] = _outcome(lance, _linked(by_lance, truth), change(lance), base.version)
        found[second] = _outcome(ours, _linked(by_lance, mine), change(ours), base.version)
        reverse[second] = _outcome(lance, _linked(by_ours, theirs), change(lance), base.version)
        if UNDER_TEST == "tablewright":
            expected[second] = DIFFERENT.get((second, first), expected[second])
        if found[second] == "fine" and (second, first) not in INVALID and (second, first) not in DIFFERENT:
            assert state_of(mine, names=True) == state_of(truth, names=True), second
        elif found[second] == "fine":
            assert_same_dataset(mine)
        else:
            assert tree(mine) == tree(by_lance), f"{second} left something behind"
    assert found == expected
    for (second, of), _ in DIFFERENT.items():
        if of == first:
            reverse.pop(second), expected.pop(second)
    assert reverse == expected


def test_overwrite_without_retries_is_strict(base: Base, tmp_path: Path) -> None:
    """`max_retries=0` means: only if nothing came in between."""
    for number, library in enumerate((ours, lance)):
        place = _linked(base.uri, tmp_path / f"{number}.lance")
        library.LanceDataset.commit(place, base.changes["Append"](library), read_version=base.version)
        operation = base.changes["Overwrite"](library)
        with pytest.raises(OSError, match="after 0 retries"):
            library.LanceDataset.commit(place, operation, read_version=base.version, max_retries=0)
        assert lance.dataset(place).version == base.version + 1
        operation = base.changes["Overwrite"](library)
        library.LanceDataset.commit(place, operation, read_version=base.version + 1, max_retries=0)
        assert lance.dataset(place).count_rows() == 3


@pytest.mark.parametrize("first", [ours, lance], ids=["after ours", "after pylance"])
@pytest.mark.parametrize("action", ["delete", "update", "merge_insert"])
def test_pylances_own_operations_pass_or_meet_ours(base: Base, tmp_path: Path, first: Any, action: str) -> None:
    """A stale pylance handle goes on by itself past our append, and past our delete in the same fragment."""
    place = _linked(base.uri, tmp_path / "t.lance")
    stale = lance.dataset(place)
    expected = set(stale.to_table(columns=["id"])["id"].to_pylist()) - {1, 2} | set(range(100, 107))
    for name in ("Append", "Delete rows of 0"):
        version = first.dataset(place).version
        first.LanceDataset.commit(place, base.changes[name](first), read_version=min(version, base.version))
    if action == "delete":
        stale.delete("id in (3, 5)")
        expected -= {3, 5}
    elif action == "update":
        stale.update({"x": "-5.0"}, where="id in (3, 5)")
    else:
        row = lance.dataset(place).to_table(filter="id = 3")
        stale.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(row)
    assert set(lance.dataset(place).to_table(columns=["id"])["id"].to_pylist()) == expected
    assert lance.dataset(place).count_rows() == len(expected)
    assert ours.dataset(place).count_rows() == len(expected)


def test_three_versions_in_between(base: Base, tmp_path: Path) -> None:
    """A stale change is checked against each version that came in, oldest first."""
    place = _linked(base.uri, tmp_path / "t.lance")
    for name in ("Append", "Config b", "Delete rows of 1"):
        lance.LanceDataset.commit(place, base.changes[name](lance), read_version=lance.dataset(place).version)
    for second in (
        "Append",
        "Delete rows of 0",
        "Delete rows of 1",
        "Rewrite 0",
        "CreateIndex x",
        "Merge",
        "Project rename",
    ):
        outcomes = []
        for number, library in enumerate((ours, lance)):
            copy = _linked(place, tmp_path / f"{second}-{number}.lance")
            outcome = _outcome(library, copy, base.changes[second](library), base.version)
            outcomes.append((outcome, state_of(copy, names=True)))
        assert outcomes[0] == outcomes[1], second
