"""Merge insert beside pylance: the same clauses on two copies of a table, by us and by pylance, give the same rows.

The table has BTREE indices on its key columns that pylance built, and rows that came after them. We use them where we
can; pylance may not: through an index, pylance 14.0.2 loses source rows whose key is null, or was in a fragment that is
gone. Rows are compared without their order (pylance's is that of a hash join), with the versions that made and changed
them, and with their stable ids where these are kept. One combination makes pylance stumble.
"""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

import pytest
from lance.dataset import LanceDataset
from lance.dataset import MergeInsertBuilder as Referee
from tests.depth import deep
from tests.unit.operations.merge_insert.merge_model import (
    CASES,
    CHEAP_INDEX,
    GONE,
    KEYS,
    Case,
    builder,
    clashing,
    source,
    target,
)

import tablewright
from tablewright.api.merge_insert import MergeInsertBuilder

from .referee import UNDER_TEST, ours
from .referee import lance as theirs

OURS_ALONE = {
    ("execute", "skip_auto_cleanup"),
    ("when_matched_delete", "condition"),
    ("when_not_matched_insert_all", "condition"),
}
COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
VERSIONS = ("_row_created_at_version", "_row_last_updated_at_version")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The model's table by pylance, without and with stable ids: to be copied."""
    tables = {}
    for stable in (False, True):
        tables[stable] = path = tmp_path_factory.mktemp("merge") / f"{stable}.lance"
        ds = theirs.write_dataset(target().slice(0, 18), path, max_rows_per_file=6, enable_stable_row_ids=stable)
        ds.create_scalar_index("a", "BTREE")
        ds.create_scalar_index("b", "BTREE")
        theirs.write_dataset(target().slice(18), path, mode="append").delete(GONE)
    return tables


def _content(uri: str, old_ids: set[int]) -> list[str]:
    """All rows with their versions, and with their ids where these were there before; as pylance reads them."""
    ds = theirs.dataset(uri)
    ds.validate()
    table = ds.to_table(columns=[*ds.schema.names, "_rowid", *VERSIONS])
    rows = table.to_pylist()
    for row in rows:
        row["_rowid"] = row["_rowid"] if row["_rowid"] in old_ids else None
    return sorted(map(repr, rows))


def _stumbles(case: Case) -> bool:
    """Matched and unmatched rows deleted, nothing inserted: pylance 14.0.2 fails with an internal error."""
    return case.matched == "delete" and not case.inserts and case.by_source != "keep"


ON_TABLES = [
    pytest.param(case, stable, id=f"{case}-{'stable' if stable else 'address'}")
    for case in CASES
    for stable in (False, True)
    if deep(1, 2) > 1 or (list(KEYS).index(case.key) + case.partial + stable) % 2 == 0
]
"""Every case on both kinds of table; in CI they take turns: each combination of clauses meets both with each key."""


@pytest.mark.parametrize(("case", "stable"), ON_TABLES)
def test_every_combination_of_clauses(case: Case, stable: bool, written: dict[bool, Path], tmp_path: Path) -> None:
    own, other = (str(shutil.copytree(written[stable], tmp_path / name)) for name in ("own", "other"))
    old_ids = set(theirs.dataset(own).to_table(columns=["_rowid"])["_rowid"].to_pylist()) if stable else set()
    merge = case.configure(builder(ours.dataset(own), KEYS[case.key], CHEAP_INDEX))
    referee = case.configure(builder(theirs.dataset(other), KEYS[case.key])).use_index(False)
    if UNDER_TEST == "tablewright":
        indexed = case.by_source == "keep"
        assert ("strategy: index: " in merge.explain_plan(source(case).schema)) == indexed
    if _stumbles(case):
        with pytest.raises(OSError, match="logical plan pruning bug"):
            referee.execute(source(case))
        return
    if case.matched == "fail":
        for each in (merge, referee):
            with pytest.raises(OSError, match="Merge insert failed: found matching row with key values: "):
                each.execute(clashing(case))
    refereed = referee.execute(source(case))
    result = merge.execute(source(case))
    assert {name: result[name] for name in COUNTS} == {name: refereed[name] for name in COUNTS}
    assert _content(own, old_ids) == _content(other, old_ids)
    assert ours.dataset(own).to_table().equals(theirs.dataset(own).to_table())


def test_the_builder_has_the_arguments_of_pylance() -> None:
    """Names, kinds and defaults; what only pylance has belongs to features that are not here (bases, memory WAL)."""
    missing = set()
    for name, call in inspect.getmembers(Referee, inspect.isfunction):
        if name.startswith("_"):
            continue
        own = getattr(MergeInsertBuilder, name, None)
        if own is None:
            missing.add(name)
            continue
        wanted = [(p.name, p.kind, p.default) for p in inspect.signature(call).parameters.values()]
        alone = OURS_ALONE - {(name, p[0]) for p in wanted}
        found = [p for p in inspect.signature(own).parameters.values() if (name, p.name) not in alone]
        assert [(p.name, p.kind, p.default) for p in found] == wanted, name
    assert missing == {"mark_sstables_as_compacted", "target_all_bases", "target_bases"}
    first = list(inspect.signature(LanceDataset.merge_insert).parameters.values())
    mine = list(inspect.signature(tablewright.LanceDataset.merge_insert).parameters.values())
    assert [(p.name, p.default) for p in mine[: len(first)]] == [(p.name, p.default) for p in first]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in mine[len(first) :])
