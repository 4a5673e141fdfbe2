"""pylance with a stale handle past changes of ours that were rebased past a compaction.

It decides from our transactions alone. So whatever it does, the rows are those of "ours, then pylance's", or it says
that it lost and the table is as ours left it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.depth import deep

from .referee import lance, opened, ours

TABLES = [(False, ours), (True, lance), (False, lance), (True, ours)][: deep(2, 4)]
"""With stable row ids or without, and whose compaction it is that ours passes."""


def _rows(start: int, stop: int, text: str = "row") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(start, stop), pa.int64()),
            "n": pa.array(range(start, stop), pa.int64()),
            "s": [f"{text} {i}" for i in range(start, stop)],
        }
    )


def _upsert(dataset: Any, table: pa.Table) -> Any:
    return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table)


OURS: dict[str, Callable[[Any], Any]] = {
    "delete": lambda ds: ds.delete("id in (1, 13, 28)"),
    "delete a fragment": lambda ds: ds.delete("id < 10"),
    "move rows": lambda ds: ds.update({"n": "n + 100"}, where="id in (1, 13, 28)", write_mode="rewrite_rows"),
    "columns": lambda ds: ds.update({"n": "n + 100"}, where="id in (1, 13, 28)", write_mode="rewrite_columns"),
    "upsert": lambda ds: _upsert(ds, pa.concat_tables([_rows(12, 14, "ours"), _rows(90, 92, "ours")])),
    "add columns": lambda ds: ds.add_columns({"more": "n * 2"}),
}
THEIRS: dict[str, Callable[[Any], Any]] = {
    "delete": lambda ds: ds.delete("id in (2, 13, 27)"),
    "update": lambda ds: ds.update({"s": "'theirs'"}, where="id in (2, 13, 27)"),
    "upsert": lambda ds: _upsert(ds, pa.concat_tables([_rows(13, 15, "theirs"), _rows(90, 93, "theirs")])),
    "compact": lambda ds: ds.optimize.compact_files(target_rows_per_fragment=1000),
    "index": lambda ds: ds.create_scalar_index("n", "BTREE"),
    "add columns": lambda ds: ds.add_columns({"theirs": "id + 1"}),
}


def _base(uri: str, *, stable: bool) -> None:
    dataset = lance.write_dataset(_rows(0, 30), uri, max_rows_per_file=10, enable_stable_row_ids=stable)
    dataset.delete("id in (4, 25)")


def _error_of(action: Callable[[], object]) -> str:
    try:
        action()
    except OSError as error:
        return str(error).lower()
    return ""


def _read(uri: str) -> list[dict[str, Any]]:
    for library in (lance, ours):
        library.dataset(uri).validate()
    found = lance.dataset(uri).to_table().sort_by("id")
    assert ours.dataset(uri).to_table().sort_by("id").equals(found)
    return list(found.to_pylist())


@pytest.mark.parametrize(("stable", "compactor"), TABLES)
@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("mine", OURS)
def test_pylance_past_ours(tmp_path: Path, stable: bool, compactor: Any, mine: str, theirs: str, engine: Any) -> None:
    uri, serial = str(tmp_path / "t.lance"), str(tmp_path / "serial.lance")
    _base(uri, stable=stable)
    stale = opened(ours, uri, engine)
    opened(compactor, uri, engine).optimize.compact_files(
        target_rows_per_fragment=16, materialize_deletions_threshold=0.0
    )
    handle = lance.dataset(uri)
    OURS[mine](stale)
    left = _read(uri)
    error = _error_of(lambda: THEIRS[theirs](handle))
    if error:
        assert "conflict" in error or "concurrent" in error
        assert _read(uri) == left
        return
    _base(serial, stable=stable)
    OURS[mine](ours.dataset(serial))
    THEIRS[theirs](lance.dataset(serial))
    assert _read(uri) == _read(serial)
    for condition in ("n = 27", "n = 113"):
        scanned = lance.dataset(uri).to_table(filter=condition, use_scalar_index=False)
        assert lance.dataset(uri).to_table(filter=condition).equals(scanned)
