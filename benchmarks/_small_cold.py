"""One cold measurement, in a process of its own: ``python -m benchmarks._small_cold WHO ROW PLACE TINY``.

The library is imported, and the same is done to a tiny table first; what that takes is printed beside. ``WHO`` is
``tablewright``, ``lance``, or the codec alone: ``one`` by one thread, ``all`` by as many as we use.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

started = time.perf_counter()

from benchmarks._small_rows import ROWS, THREADS, Side, floor  # noqa: E402
from benchmarks._small_tables import TABLES  # noqa: E402


def _seconds(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


def main(who: str, name: str, place: Path, tiny: Path) -> dict[str, float]:
    """The seconds of the first act, and of all before it."""
    row = next(row for row in ROWS if row.name == name)
    if who in ("one", "all"):
        taken, columns, threads = name == "take", row.columns or (), 1 if who == "one" else THREADS
        floor(tiny, columns, threads, taken=taken)
        return {"act": _seconds(lambda: floor(place, columns, threads, taken=taken))}
    rows = TABLES[row.table].rows
    row.act(Side(who, tiny, min(10, rows)), 0)()
    ready = time.perf_counter() - started
    return {"act": _seconds(row.act(Side(who, place, rows), 0)), "ready": ready}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
