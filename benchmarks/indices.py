"""Indices beside pylance: builds, lookups, changes by key, and what compactions and changes cost indices.

``python -m benchmarks indices`` prints, as ratios of medians of five runs in turns:

- builds of a BTREE on 5M integers and on 1M texts of 20 bytes (promised: 1.2 times as fast as pylance), and of a BITMAP
  on 5M rows with 100 values (1.0);
- the lookup of one key in 10M rows by BTREE, *cold* (caches of the process emptied, dataset opened within the time; the
  system's file cache stays) and *warm*, and 20 lookups of other keys in turn; each as rows and as a count (1.0); the
  same for lists of three keys (IN) and for ranges of ten;
- delete and update of one key of these rows, with warm and with emptied caches (1.0), and 20 updates of other keys in
  turn. Cold and warm rows of lookups and changes begin with ten runs of both that are not counted: a function of Python
  that has run a few times is quicker;
- compaction of 1M rows with a BTREE on addresses (1.1); with a BTREE and an IVF_PQ on stable row ids, it writes no byte
  of index files;
- an update and a merge of a tenth of the rows, of another column than the indexed one, on stable row ids: no row is
  unindexed, no byte of index files is written;
- upserts of 10,000 keys by BTREE into 1M and 10M rows, and with ``--large`` 50M: cost grows at most 1.5 times in all.

Tables are in memory where it has room, unless ``TMPDIR`` is set (:func:`benchmarks._memory.memory_directory`).
``--only btree-ints,lookup`` runs these rows only. ``--rows 1000000`` means tables that are smaller by the same factor
as 1M is smaller than 10M.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from benchmarks._beside import open_ours
from benchmarks._index_tables import (
    Both,
    Taken,
    emptied,
    key_table,
    line,
    table_of_texts,
    table_of_vectors,
    turns,
)
from benchmarks._memory import memory_directory

from tablewright.storage.identity import SETTLED_NS

__all__ = ["run"]

RUNS, RUNS_UNTIL_WARM = 5, 10
LOOP = 20
ROWS = 10_000_000
FRAGMENTS = 4
UPSERTED = 10_000
GROWTH_MAX = 1.5


@dataclass(frozen=True)
class _Bench:
    """Where tables are made, and how large: ``rows`` stands for 10M."""

    directory: Path
    rows: int
    large: bool

    def scaled(self, rows: int) -> int:
        return max(1000, rows * self.rows // ROWS)

    def place(self, name: str) -> Path:
        return self.directory / name


def _short(rows: int) -> str:
    return f"{rows // 1_000_000}M" if rows % 1_000_000 == 0 else f"{rows:,}"


# --------------------------------------------------------------------------------------------------------------- builds
def _built(bench: _Bench, name: str, base: Path, column: str, kind: str, promised: float) -> bool:
    def build(dataset: Any) -> int:
        dataset.create_scalar_index(column, kind)
        return len(dataset.list_indices())

    return line(name, turns(base, bench.directory, build, RUNS), promised)


def _btree_ints(bench: _Bench) -> bool:
    rows = bench.scaled(5_000_000)
    base = key_table(bench.place("ints"), rows, FRAGMENTS)
    return _built(bench, f"BTREE of {_short(rows)} integers", base, "key", "BTREE", 1.2)


def _btree_texts(bench: _Bench) -> bool:
    rows = bench.scaled(1_000_000)
    base = table_of_texts(bench.place("texts"), rows, FRAGMENTS)
    return _built(bench, f"BTREE of {_short(rows)} texts", base, "key", "BTREE", 1.2)


def _bitmap(bench: _Bench) -> bool:
    rows = bench.scaled(5_000_000)
    base = key_table(bench.place("few"), rows, FRAGMENTS, values=100)
    return _built(bench, f"BITMAP of {_short(rows)} rows, 100 values", base, "v", "BITMAP", 1.0)


# -------------------------------------------------------------------------------------------------------------- lookups
def _indexed(bench: _Bench) -> Path:
    """The large table with a BTREE, made once."""
    place = bench.place("indexed")
    if not place.exists():
        key_table(place, bench.rows)
        lance.dataset(place).create_scalar_index("key", "BTREE")
        time.sleep(2 * SETTLED_NS / 1e9)  # as in turns(): the table was there before
    return place


def _timed(taken: Taken, act: Callable[[], Any], is_counted: bool) -> Any:
    started = time.perf_counter(), time.process_time()
    answer = act()
    if is_counted:
        taken.add(time.perf_counter() - started[0], time.process_time() - started[1])
    return answer


def _asked(
    open_both: Callable[[], tuple[Any, Any]],
    ask: Callable[[Any, int], Any],
    keys: list[list[int]],
    uncounted: int = 1,
) -> Both:
    """Ask both for the same keys, in turns; datasets are opened within the time where ``open_both`` gives functions."""
    both = Taken(), Taken()
    for number, some in enumerate(keys):
        answers = []
        for taken, source in zip(both, open_both(), strict=True):

            def act(source: Any = source, some: list[int] = some) -> list[Any]:
                dataset = source() if callable(source) else source
                return [ask(dataset, key) for key in some]

            answers.append(_timed(taken, act, number >= uncounted))
        if answers[0] != answers[1]:
            raise AssertionError(f"We found {answers[0]}, pylance {answers[1]}.")
    return both


def _rows_of(dataset: Any, key: int) -> Any:
    return dataset.to_table(filter=f"key = {key}").to_pylist()


def _count_of(dataset: Any, key: int) -> Any:
    return dataset.count_rows(f"key = {key}")


def _rows_of_list(dataset: Any, key: int) -> Any:
    return _in_order(dataset.to_table(filter=f"key IN ({key}, {key + 5}, {key + 77})"))


def _rows_of_range(dataset: Any, key: int) -> Any:
    return _in_order(dataset.to_table(filter=f"key >= {key} AND key < {key + 10}"))


def _count_of_range(dataset: Any, key: int) -> Any:
    return dataset.count_rows(f"key BETWEEN {key} AND {key + 999}")


def _in_order(table: pa.Table) -> Any:
    return table.sort_by("key").to_pylist()


def _lookup(bench: _Bench) -> bool:
    place, many = _indexed(bench), _short(bench.rows)
    chance = np.random.default_rng(1)

    def keys(count: int, uncounted: int = 1) -> list[list[int]]:
        return [[int(key) for key in chance.integers(bench.rows, size=count)] for _ in range(uncounted + RUNS)]

    def cold() -> tuple[Any, Any]:
        emptied()
        return (lambda: open_ours(place)), (lambda: lance.dataset(place))

    opened = open_ours(place), lance.dataset(place)
    kept = []
    for what, ask in (("rows", _rows_of), ("count", _count_of)):
        emptying = _asked(cold, ask, keys(1, RUNS_UNTIL_WARM), RUNS_UNTIL_WARM)
        kept.append(line(f"{what} of one key in {many} rows, cold", emptying, 1.0))
        same = [[5]] * (RUNS_UNTIL_WARM + RUNS)
        warm = _asked(lambda: opened, ask, same, RUNS_UNTIL_WARM)
        kept.append(line(f"{what} of one key in {many} rows, warm", warm, 1.0))
        kept.append(line(f"{what} of 20 keys in turn", _asked(lambda: opened, ask, keys(20)), 1.0))
    for what, ask in (
        ("rows of lists of 3 keys", _rows_of_list),
        ("rows of ranges of 10 keys", _rows_of_range),
        ("count of ranges of 1,000 keys", _count_of_range),
    ):
        line(f"{what}, 20 in turn", _asked(lambda: opened, ask, keys(20)), None)
    return all(kept)


# -------------------------------------------------------------------------------------------------------------- changes
def _change(bench: _Bench) -> bool:
    base, key = _indexed(bench), bench.rows // 3

    def delete(dataset: Any) -> Any:
        dataset.delete(f"key = {key}")
        return dataset.count_rows()

    def update(dataset: Any) -> Any:
        return dataset.update({"v": "-1"}, where=f"key = {key}")["num_rows_updated"]

    def cold(dataset: Any) -> None:
        emptied()

    def warm(dataset: Any) -> None:
        assert dataset.count_rows(f"key = {key + 1}") == 1

    kept = []
    for name, act in (("delete", delete), ("update", update)):
        for how, ready in (("warm", warm), ("cold", cold)):
            both = turns(base, bench.directory, act, RUNS, ready=ready, uncounted=RUNS_UNTIL_WARM)
            kept.append(line(f"{name} by key in {_short(bench.rows)} rows, {how}", both, 1.0))
    keys = np.random.default_rng(3).integers(0, bench.rows, LOOP).tolist()

    def updates(dataset: Any) -> int:
        return sum(dataset.update({"v": "-1"}, where=f"key = {each}")["num_rows_updated"] for each in keys)

    both = turns(base, bench.directory, updates, RUNS, ready=warm, uncounted=2)
    line(f"{LOOP} updates by key in turn", both, None)
    return all(kept)


# ----------------------------------------------------------------------------------------------------------- compaction
def _compacted(dataset: Any) -> int:
    dataset.optimize.compact_files()
    return int(dataset.count_rows())


def _compaction(bench: _Bench) -> bool:
    rows = bench.scaled(1_000_000)
    base = key_table(bench.place("addresses"), rows, 20)
    made = lance.dataset(base)
    made.create_scalar_index("key", "BTREE")
    made.delete("v % 10 = 3")
    both = turns(base, bench.directory, _compacted, RUNS)
    return line(f"compaction of {_short(rows)} rows with a BTREE", both, 1.1)


def _no_index_bytes(name: str, both: Both, unindexed: int = 0) -> bool:
    good = both[0].index_bytes == unindexed == 0
    print(
        f"   {name:<42} index bytes: ours {both[0].index_bytes:,}, pylance {both[1].index_bytes:,}   "
        f"unindexed rows: ours {unindexed:,}{'' if good else '  BROKEN'}",
        flush=True,
    )
    return good


def _unindexed(dataset: Any) -> int:
    return int(dataset.stats.index_stats("key_idx")["num_unindexed_rows"])


def _stable(bench: _Bench) -> bool:
    """With a BTREE and an IVF_PQ on stable row ids."""
    base = table_of_vectors(bench.place("vectors"), bench.scaled(200_000), 20)
    lance.dataset(base).delete("v % 10 = 3")
    left: list[int] = []

    def compacted(dataset: Any) -> int:
        rows = _compacted(dataset)
        if type(dataset).__module__.startswith("tablewright"):
            left.append(_unindexed(dataset))
        return rows

    both = turns(base, bench.directory, compacted, RUNS)
    line("compaction, BTREE and IVF_PQ, stable ids", both, None)
    return _no_index_bytes("compaction, BTREE and IVF_PQ, stable ids", both, max(left))


def _untouched(bench: _Bench) -> bool:
    """A tenth of the rows changes, and no indexed value."""
    rows = bench.scaled(1_000_000)
    base = key_table(bench.place("stable"), rows, FRAGMENTS, enable_stable_row_ids=True)
    open_ours(base).create_scalar_index("key", "BTREE")
    keys = np.arange(0, rows, 10)
    source = pa.table({"key": keys, "v": -keys})
    left: list[int] = []

    def noted(dataset: Any, count: int) -> int:
        if type(dataset).__module__.startswith("tablewright"):
            left.append(_unindexed(dataset))
        return count

    def update(dataset: Any) -> int:
        return noted(dataset, dataset.update({"v": "-v"}, where="key % 10 = 0")["num_rows_updated"])

    def merge(dataset: Any) -> int:
        done = dataset.merge_insert("key").when_matched_update_all().execute(source)
        return noted(dataset, done["num_updated_rows"])

    kept = []
    for name, act in (("update of 10 %, stable ids", update), ("merge of 10 %, stable ids", merge)):
        left.clear()
        both = turns(base, bench.directory, act, RUNS)
        line(name, both, None)
        kept.append(_no_index_bytes(name, both, max(left)))
    return all(kept)


# -------------------------------------------------------------------------------------------------------------- upserts
def _upsert(bench: _Bench) -> bool:
    """The same number of keys into ever larger tables; half of the keys are new.

    What a larger table costs us is measured in turns: a run on each of the tables, then the next on each.
    """
    sizes = [bench.scaled(1_000_000), bench.rows, *([5 * bench.rows] if bench.large else [])]
    work = [_upserts(bench, rows) for rows in sizes]
    for rows, (base, upsert) in zip(sizes[:2], work[:2], strict=True):
        both = turns(base, bench.directory, upsert, RUNS, ready=lambda _: emptied())
        line(f"upsert of {UPSERTED:,} keys into {_short(rows)} rows", both, None)
    ours = [Taken() for _ in sizes]
    for _ in range(RUNS):
        for taken, (base, upsert) in zip(ours, work, strict=True):
            found, _ = turns(base, bench.directory, upsert, 1, ready=lambda _: emptied(), ours_only=True)
            taken.add(found.seconds[0], found.busy[0])
    seconds, busy = ([median(getattr(taken, what)) for taken in ours] for what in ("seconds", "busy"))
    for base, _ in work:
        if base != bench.place("indexed"):
            shutil.rmtree(base)
    growth = seconds[-1] / seconds[0]
    good = growth <= GROWTH_MAX
    shown = ", ".join(f"{_short(rows)} rows {taken * 1e3:.1f} ms" for rows, taken in zip(sizes, seconds, strict=True))
    print(
        f"   upserts in turns: {shown}: cost grows {growth:.2f}x (at most {GROWTH_MAX}){'' if good else '  BROKEN'}, "
        f"that of processors {busy[-1] / busy[0]:.2f}x",
        flush=True,
    )
    return good


def _upserts(bench: _Bench, rows: int) -> tuple[Path, Callable[[Any], Any]]:
    """A table of this many rows with a BTREE, and the upsert into it."""
    base = _indexed(bench) if rows == bench.rows else key_table(bench.place(f"upsert-{rows}"), rows)
    if rows != bench.rows:
        open_ours(base).create_scalar_index("key", "BTREE")
    keys = np.random.default_rng(2).choice(rows, UPSERTED // 2, replace=False)
    source = pa.table({"key": np.concatenate([keys, keys + rows]), "v": np.full(2 * len(keys), -1)})

    def upsert(dataset: Any) -> Any:
        merge = dataset.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        done = merge.execute(source)
        return done["num_updated_rows"], done["num_inserted_rows"]

    return base, upsert


PARTS: dict[str, Callable[[_Bench], bool]] = {
    "btree-ints": _btree_ints,
    "btree-texts": _btree_texts,
    "bitmap": _bitmap,
    "lookup": _lookup,
    "change": _change,
    "compaction": _compaction,
    "stable": _stable,
    "untouched": _untouched,
    "upsert": _upsert,
}


def run(only: str | None = None, rows: int = ROWS, large: bool = False) -> bool:
    """Print the rows of the table, and whether all promises are kept."""
    names = list(PARTS) if only is None else only.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        print(f"   There is no row {', '.join(unknown)}: there are {', '.join(PARTS)}.")
        return False
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-", dir=memory_directory()))
    print(f"   tables in {directory.parent}")
    try:
        bench = _Bench(directory, rows, large)
        kept = [PARTS[name](bench) for name in names]
        return all(kept)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
