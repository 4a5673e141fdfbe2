"""A writer that adds one row at a time: 10,000 appends and 10,000 upserts, with ``optimize.auto`` after every 500.

The promises: the last hundred take at most twice the time of the first hundred (sums; the runs of ``auto`` are not
counted), and the memory of the process stays flat: from the first 2,000 on it grows by at most 64 MB. Processor time
decides, because another process on the machine makes the clock run on; both are printed.

``auto`` removes all versions but the newest hundred: a service that commits hundreds of times per second sets a number,
not an age. ``--keep 1m`` keeps the versions of one minute instead. Then all 10,000 of them may lie in ``_versions/``,
and every commit lists that directory (the kernel alone takes 3.8 ms for 10,000 names), so that promise is not made.
Tables are in ``TMPDIR``: a disk on which creating a file takes a millisecond hides what we do, so name one in memory.
``--rounds 2000`` makes fewer, ``--only append`` one of the two, ``--fsync`` waits for the disk.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import tablewright

__all__ = ["run"]

BY_DEFAULT = False
ROUNDS, AUTO_EVERY, SOME = 10_000, 500, 100
RATIO_MAX = 2.0
GROWTH_BYTES_MAX = 64 * 1024 * 1024
SETTLED_AFTER = 0.2
KEEP = "100"

Change = Callable[[Any, int], object]


@dataclass(frozen=True)
class Figures:
    """Seconds of each change, and of the processors; seconds of each ``auto``; resident bytes after each hundred."""

    changes: list[float]
    busy: list[float]
    autos: list[float]
    resident: list[int]

    @property
    def ratio(self) -> float:
        """The last hundred beside the first."""
        return sum(self.changes[-SOME:]) / sum(self.changes[:SOME])

    @property
    def busy_ratio(self) -> float:
        """The same by time of the processors, which tells more while the machine is busy."""
        return sum(self.busy[-SOME:]) / sum(self.busy[:SOME])

    @property
    def growth(self) -> int:
        """How much more memory the process has at its end than when it had settled."""
        return self.resident[-1] - self.resident[int(len(self.resident) * SETTLED_AFTER)]


def _row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "text": [f"row {number}"]})


def _append(ds: Any, number: int) -> None:
    ds.insert(_row(number))


def _upsert(ds: Any, number: int) -> None:
    """Every other one updates a row that is there."""
    rows = _row(number if number % 2 else number // 2)
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def _config(keep: str) -> dict[str, str]:
    """How many versions are kept, or for how long."""
    return {f"lance.auto_cleanup.{'retain_versions' if keep.isdecimal() else 'older_than'}": keep}


def loop(place: Path, change: Change, rounds: int, options: dict[str, str], keep: str = KEEP) -> Figures:
    """Change a new table so many times."""
    ds = tablewright.write_dataset(_row(-1), place, storage_options=options)
    ds.update_config(_config(keep))
    found = Figures([], [], [], [])
    for number in range(rounds):
        started, busy = time.perf_counter(), time.process_time()
        change(ds, number)
        found.changes.append(time.perf_counter() - started)
        found.busy.append(time.process_time() - busy)
        if number % AUTO_EVERY == AUTO_EVERY - 1:
            started = time.perf_counter()
            ds.optimize.auto()
            found.autos.append(time.perf_counter() - started)
        if number % SOME == SOME - 1:
            found.resident.append(_resident())
    return found


def _line(name: str, found: Figures) -> bool:
    hundreds = [sum(found.changes[start : start + SOME]) / SOME * 1000 for start in range(0, len(found.changes), SOME)]
    kept = found.busy_ratio <= RATIO_MAX and found.growth <= GROWTH_BYTES_MAX
    print(
        f"   {name:<8} first hundred {hundreds[0]:6.2f} ms each, last {hundreds[-1]:6.2f}, "
        f"slowest {max(hundreds):6.2f}; ratio {found.busy_ratio:4.2f} of processor time (at most {RATIO_MAX}), "
        f"{found.ratio:4.2f} by the clock\n"
        f"            auto {max(found.autos, default=0):5.2f} s at most; memory {found.resident[-1] // 2**20} MB, "
        f"{found.growth / 2**20:+.0f} MB since it settled (at most {GROWTH_BYTES_MAX // 2**20})"
        f"{'' if kept else '  BROKEN'}",
        flush=True,
    )
    return kept


def run(rounds: int | None = None, fsync: bool = False, keep: str | None = None, only: str | None = None) -> bool:
    """Print the figures of both loops; ``True`` if the promises hold."""
    options = {} if fsync else {"fsync": "false"}
    kept = True
    for name, change in (("append", _append), ("upsert", _upsert)):
        if only not in (None, name):
            continue
        directory = Path(tempfile.mkdtemp())
        try:
            kept &= _line(name, loop(directory / "table", change, rounds or ROUNDS, options, keep or KEEP))
        finally:
            shutil.rmtree(directory)
    return kept
