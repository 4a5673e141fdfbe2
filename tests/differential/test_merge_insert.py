"""Merge insert beside pylance: the same clauses on two copies of a table, by us and by pylance, give the same rows.

Rows are compared without their order (pylance's is that of a hash join), with the versions that made and changed them,
and with their stable ids where these are kept. One combination makes pylance stumble.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.operations.merge_insert.merge_model import CASES, KEYS, Case, builder, source, target

from .referee import lance, ours

COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
VERSIONS = ("_row_created_at_version", "_row_last_updated_at_version")


def _table(path: Path, stable: bool) -> str:
    ds = lance.write_dataset(target(), path, max_rows_per_file=6, enable_stable_row_ids=stable)
    ds.delete("s in ('row 1', 'row 8')")
    return str(path)


def _content(uri: str, old_ids: set[int]) -> list[str]:
    """All rows with their versions, and with their ids where these were there before; as pylance reads them."""
    ds = lance.dataset(uri)
    ds.validate()
    table = ds.to_table(columns=[*ds.schema.names, "_rowid", *VERSIONS])
    rows = table.to_pylist()
    for row in rows:
        row["_rowid"] = row["_rowid"] if row["_rowid"] in old_ids else None
    return sorted(map(repr, rows))


def _stumbles(case: Case) -> bool:
    """Matched and unmatched rows deleted, nothing inserted: pylance 14.0.2 fails with an internal error."""
    return case.matched == "delete" and not case.inserts and case.by_source != "keep"


@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_combination_of_clauses(case: Case, stable: bool, tmp_path: Path) -> None:
    mine, theirs = _table(tmp_path / "mine", stable), _table(tmp_path / "theirs", stable)
    old_ids = set(lance.dataset(mine).to_table(columns=["_rowid"])["_rowid"].to_pylist()) if stable else set()
    referee = case.configure(builder(lance.dataset(theirs), KEYS[case.key]))
    if _stumbles(case):
        with pytest.raises(OSError, match="logical plan pruning bug"):
            referee.execute(source(case))
        return
    refereed = referee.execute(source(case))
    result = case.configure(builder(ours.dataset(mine), KEYS[case.key])).execute(source(case))
    assert {name: result[name] for name in COUNTS} == {name: refereed[name] for name in COUNTS}
    assert _content(mine, old_ids) == _content(theirs, old_ids)
    assert ours.dataset(mine).to_table().equals(lance.dataset(mine).to_table())
