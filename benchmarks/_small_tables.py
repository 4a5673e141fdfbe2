"""The tables of ``python -m benchmarks small``, made by pylance, and the changes that both make to them.

Neither library is imported before a table is made: processes that measure something cold import this module, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["TABLES", "Small", "fresh_rows", "make_table", "upsert"]

DIMENSIONS = 128
FRAGMENTS_MANY, ROWS_EACH = 2_000, 10
VERSIONS = 1_200
PLAIN = 500_000
SCATTERED = 400_000


@dataclass(frozen=True)
class Small:
    """A table: how many rows it begins with, and how it is made. ``tiny`` ones have its columns and ten rows."""

    rows: int
    make: Callable[[Path, int], None]


def fresh_rows(ids: np.ndarray, columns: list[str] | None = None) -> pa.Table:
    """New values for some ids."""
    chance = np.random.default_rng(int(ids[0]))
    vectors = pa.FixedSizeListArray.from_arrays(chance.random(len(ids) * DIMENSIONS, np.float32), DIMENSIONS)
    text = pa.array(np.char.add("a new text of ", ids.astype(str)))
    rows = pa.table({"id": ids, "score": chance.random(len(ids)), "text": text, "vector": vectors})
    return rows if columns is None else rows.select(columns)


def upsert(dataset: Any, rows: pa.Table) -> None:
    """Update the rows whose id is known, insert the others."""
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _narrow(rows: int) -> pa.Table:
    return pa.table({"id": np.arange(rows), "score": np.arange(rows) / 7, "text": [f"text {n}" for n in range(rows)]})


def _wide(rows: int) -> pa.Table:
    chance = np.random.default_rng(0)
    text = pa.array(np.char.add("document number ", np.arange(rows).astype(str)))
    vectors = pa.FixedSizeListArray.from_arrays(chance.random(rows * DIMENSIONS, np.float32), DIMENSIONS)
    return pa.table({"id": np.arange(rows), "score": chance.random(rows), "text": text, "vector": vectors})


def _many(place: Path, rows: int) -> None:
    import lance

    lance.write_dataset(_narrow(rows), place, max_rows_per_file=ROWS_EACH, max_rows_per_group=ROWS_EACH)


def _versions(place: Path, rows: int) -> None:
    import lance

    whole = _narrow(rows)
    for number in range(rows):
        lance.write_dataset(whole.slice(number, 1), place, mode="append" if number else "create")


def _plain(place: Path, rows: int) -> None:
    import lance

    lance.write_dataset(_wide(rows), place)


def _scattered(place: Path, rows: int) -> None:
    """Stable row ids that an upsert of 20 % has scattered, and a BTREE."""
    import lance

    lance.write_dataset(_wide(rows), place, max_rows_per_file=max(1, rows // 4), enable_stable_row_ids=True)
    dataset = lance.dataset(place)
    upsert(dataset, fresh_rows(np.random.default_rng(5).choice(rows, max(1, rows // 5), replace=False)))
    dataset.create_scalar_index("id", "BTREE")


TABLES = {
    "many": Small(FRAGMENTS_MANY * ROWS_EACH, _many),
    "versions": Small(VERSIONS, _versions),
    "new": Small(1, _versions),
    "plain": Small(PLAIN, _plain),
    "scattered": Small(SCATTERED, _scattered),
}


def make_table(name: str, directory: Path) -> Path:
    """Make a table and its tiny twin, unless they are there."""
    place = directory / name
    if not place.exists():
        TABLES[name].make(place, TABLES[name].rows)
        TABLES[name].make(directory / f"tiny-{name}", min(10, TABLES[name].rows))
    return place
