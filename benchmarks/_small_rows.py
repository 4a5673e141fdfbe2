"""The rows of ``python -m benchmarks small``: what both do, and what is asked.

Changes have numbers: the first is 0, and each one changes other rows, so that a series of them on one table is a series
of real changes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks._small_tables import TABLES, fresh_rows, upsert

__all__ = ["ROWS", "THREADS", "Asked", "Row", "Side", "floor"]

THREADS = 3
BATCH = 8192
NARROW = ["id", "score", "text"]

Work = Callable[[], object]


@dataclass
class Side:
    """One of the two at one table. ``dataset`` is opened once, and shows what was changed through it."""

    module: str
    place: Path
    rows: int
    dataset: Any = field(default=None, repr=False)

    def open(self) -> Any:
        """A dataset, with the durability that pylance has."""
        library = importlib.import_module(self.module)
        options = {"fsync": "false"} if self.module == "tablewright" else None
        return library.dataset(str(self.place), storage_options=options)

    def opened(self) -> Any:
        """The dataset of this side."""
        if self.dataset is None:
            self.dataset = self.open()
        return self.dataset


@dataclass(frozen=True)
class Asked:
    """What a row must keep: warm, how many times as fast as pylance; cold, how many times the codec's floor."""

    warm: float
    cold: float | None = None


@dataclass(frozen=True)
class Row:
    """A line of the table. ``act`` prepares a piece of work, and only the work is timed.

    Each change works on the table as the one before left it, or on a copy of its own (``on_copies``).
    ``columns`` are those that the codec reads for its floor; without them it has none.
    """

    name: str
    title: str
    table: str
    act: Callable[[Side, int], Work]
    asked: Asked
    changes: bool = False
    columns: tuple[str, ...] | None = None
    on_copies: bool = False


def _delete(stride: int, side: Side, number: int) -> Work:
    return partial(side.opened().delete, f"id = {(number * stride + 5) % side.rows}")


def _read(options: dict[str, Any], side: Side, number: int) -> Work:
    return partial(side.opened().to_table, **options)


def _upsert_one(side: Side, number: int) -> Work:
    ids = np.array([(number * 37 + 3) % side.rows])
    return partial(upsert, side.opened(), fresh_rows(ids, NARROW))


def _append(rows: int, columns: list[str] | None, side: Side, number: int) -> Work:
    ids = side.rows + rows * number + np.arange(rows)
    return partial(side.opened().insert, fresh_rows(ids, columns))


def _versions(side: Side, number: int) -> Work:
    return side.opened().versions


def _open(side: Side, number: int) -> Work:
    return lambda: side.open().count_rows()


def _delete_percent(side: Side, number: int) -> Work:
    return partial(side.opened().delete, f"id % 100 = {number + 7}")


def _update_percent(side: Side, number: int) -> Work:
    return partial(side.opened().update, {"score": "score + 1"}, where=f"id % 100 = {number + 7}")


def _indices(rows: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, rows, 10_000)


def _take(side: Side, number: int) -> Work:
    return partial(side.opened().take, _indices(side.rows).tolist(), columns=NARROW)


def _upsert_indexed(side: Side, number: int) -> Work:
    known = np.random.default_rng(number).choice(side.rows, min(2000, side.rows), replace=False)
    return partial(upsert, side.opened(), fresh_rows(known))


ALL = ("id", "score", "text")
ROWS = (
    Row(
        "delete-many", "delete one row, 2,000 × 10 rows", "many", partial(_delete, 397), Asked(2.0, 1.3), True, ("id",)
    ),
    Row("scan-many", "scan of 1,200 one-row fragments", "versions", partial(_read, {}), Asked(1.0, 1.3), columns=ALL),
    Row("upsert-many", "upsert one row into them", "versions", _upsert_one, Asked(2.0, 1.3), True, ("id",)),
    Row("append-new", "append one row, new table", "new", partial(_append, 1, NARROW), Asked(0.7), True),
    Row("append-old", "append one row, 1,200 versions", "versions", partial(_append, 1, NARROW), Asked(0.7), True),
    Row("versions", "versions() of 1,200", "versions", _versions, Asked(1.0)),
    Row("open-new", "open + count, small table", "new", _open, Asked(0.7)),
    Row("open-old", "open + count, 1,200 versions", "versions", _open, Asked(0.7)),
    Row(
        "column",
        "one int column of 500k rows",
        "plain",
        partial(_read, {"columns": ["id"]}),
        Asked(1.0, 1.3),
        columns=("id",),
    ),
    Row(
        "filter",
        "filter on two columns, one returned",
        "plain",
        partial(_read, {"columns": ["score"], "filter": "id % 10 < 3 AND score > 0.5"}),
        Asked(1.0, 1.3),
        columns=("id", "score"),
    ),
    Row("delete-one", "point delete, 500k rows", "plain", partial(_delete, 48_611), Asked(1.0), True, ("id",)),
    Row("delete-1", "delete 1 %", "plain", _delete_percent, Asked(1.0), True, ("id",)),
    Row("update-1", "update 1 %", "plain", _update_percent, Asked(1.0), True),
    Row("append-10k", "append 10k", "plain", partial(_append, 10_000, None), Asked(1.0), True),
    Row("take", "take 10k rows", "plain", _take, Asked(1.0, 1.3), columns=ALL),
    Row(
        "upsert-scattered",
        "upsert 2k, BTREE, scattered ids",
        "scattered",
        _upsert_indexed,
        Asked(4.0),
        True,
        on_copies=True,
    ),
)


def floor(place: Path, columns: tuple[str, ...], threads: int, *, taken: bool = False) -> int:
    """Open and read the data files of a table by the codec alone, in ``threads`` threads."""
    from lance.file import LanceFileReader

    def read(path: Path, part: int, parts: int) -> int:
        reader = LanceFileReader(str(path), columns=list(columns))
        rows = reader.num_rows()
        if taken:
            indices = np.unique(_indices(rows))
            return int(
                reader.take_rows(indices[len(indices) * part // parts : len(indices) * (part + 1) // parts])
                .to_table()
                .num_rows
            )
        start, end = rows * part // parts, rows * (part + 1) // parts
        return int(reader.read_range(start, end - start, batch_size=BATCH).to_table().num_rows)

    files = sorted((place / "data").glob("*.lance"))
    parts = max(1, -(-threads // len(files)))
    work = [(path, part, parts) for path in files for part in range(parts)]
    if threads == 1:
        return sum(read(*one) for one in work)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda one: read(*one), work))


if __name__ == "__main__":
    print(*(f"{row.name:<18}{row.title}" for row in ROWS), sep="\n")
    print(*TABLES)
