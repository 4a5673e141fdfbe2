"""Clauses as SQL has them beside Delta's merge, and what pylance reads of the result.

Two copies of a table, one of ours and one of Delta's, are merged with the same clauses, which come from the model in
``tests/property``. What the model says, both do. Expressions of the set mean the same in both dialects.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import deep
from tests.property.clause_model import SOURCE, TABLE, Clause, ClauseMerge, merges, source_rows, table_rows
from tests.property.test_merge_clauses import sorted_rows

import tablewright as tw

from .referee import lance


def _update(clause: Clause, columns: list[str]) -> dict[str, str]:
    return {name: f"source.{name}" for name in columns} if clause.values is None else clause.texts


def _by_delta(path: str, merge: ClauseMerge, source: list[Any]) -> dict[str, Any]:
    building: Any = DeltaTable(path).merge(
        pa.Table.from_pylist(source, SOURCE), "target.id = source.id", source_alias="source", target_alias="target"
    )
    for clause in merge.matched:
        if clause.kind == "delete":
            building = building.when_matched_delete(clause.condition_text)
        else:
            building = building.when_matched_update(_update(clause, TABLE.names), clause.condition_text)
    for clause in merge.inserts:
        building = building.when_not_matched_insert(_update(clause, TABLE.names), clause.condition_text)
    for clause in merge.by_source:
        if clause.kind == "delete":
            building = building.when_not_matched_by_source_delete(clause.condition_text)
        else:
            building = building.when_not_matched_by_source_update(clause.texts, clause.condition_text)
    done = building.execute()
    return {
        "num_inserted_rows": done["num_target_rows_inserted"],
        "num_updated_rows": done["num_target_rows_updated"],
        "num_deleted_rows": done["num_target_rows_deleted"],
    }


@settings(max_examples=deep(30, 600))
@given(merge=merges(), rows=table_rows(), source=source_rows(), stable=st.booleans())
def test_delta_does_the_same_and_pylance_reads_it(
    merge: ClauseMerge, rows: list[Any], source: list[Any], stable: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = str(Path(directory) / "ours"), str(Path(directory) / "theirs")
        table = pa.Table.from_pylist(rows, TABLE)
        ds = tw.write_dataset(table, ours, max_rows_per_file=5, enable_stable_row_ids=stable)
        write_deltalake(theirs, table)
        expected = _by_delta(theirs, merge, source)
        result = merge.configure(ds.merge_insert("id")).execute(merge.source(source))
        assert {name: result[name] for name in expected} == expected
        wanted = sorted_rows(DeltaTable(theirs).to_pyarrow_table().to_pylist())
        assert sorted_rows(ds.to_table().to_pylist()) == wanted
        assert sorted_rows(lance.dataset(ours).to_table().to_pylist()) == wanted
