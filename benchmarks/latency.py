"""Small operations on S3 where each request takes 30 ms: a moto server behind a proxy that waits.

The proxy stands between every client and the server, so the codec's own requests are slowed as well. The promises: an
append takes at most 0.4 s, a one-row upsert into 500 fragments 2 s (nothing of the table was read before), a delete of
one row by a key with a BTREE 1 s. pylance stands beside, without a promise. Server and proxy are processes of their
own; both are written in Python, and answer some hundred requests a second: the line of bare requests, one for each data
file, is what the first upsert can't be faster than.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from typing import Any

import lance
import pyarrow as pa
from tests.s3 import new_bucket, options_for, s3_server

import tablewright
from tablewright.storage import open_store

__all__ = ["run"]

BY_DEFAULT = False
SECONDS, FRAGMENTS, RUNS = 0.03, 500, 5
AT_ONCE = 64


def _rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "text": [f"row {n}" for n in range(start, stop)]})


@contextmanager
def _proxy(server: str) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.slow_proxy", server, str(SECONDS)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdin is not None and running.stdout is not None
    try:
        yield running.stdout.readline().strip()
    finally:
        running.stdin.close()
        running.wait(timeout=30)


def _upsert(ds: Any, number: int) -> None:
    rows = _rows(number, number + 1)
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _bare_requests(ds: Any, uri: str, far: dict[str, str]) -> float:
    """The seconds of reading every data file of a table once, and nothing else."""
    store = open_store(uri, far)
    paths = [file.path for fragment in ds.get_fragments() for file in fragment.data_files()][:FRAGMENTS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return _seconds(lambda: list(pool.map(lambda path: store.get(f"data/{path}"), paths)))


def _line(name: str, ours: list[float], theirs: list[float], most: float | None) -> bool:
    kept = most is None or median(ours) <= most
    asked = "" if most is None else f" (at most {most})"
    beside = f"   pylance {median(theirs):5.2f} s" if theirs else ""
    print(f"   {name:<42} ours {median(ours):5.2f} s{asked}{beside}{'' if kept else '  BROKEN'}", flush=True)
    return kept


def run() -> bool:
    """Print the times; ``True`` if the promises hold."""
    for name in [name for name in os.environ if name.upper().startswith("AWS_")]:
        del os.environ[name]
    with s3_server() as server, _proxy(server) as proxy:
        near, far, bucket = options_for(server), options_for(proxy), new_bucket(server)

        def place(name: str) -> str:
            uri = f"s3://{bucket}/{name}"
            tablewright.write_dataset(_rows(0, FRAGMENTS), uri, max_rows_per_file=1, storage_options=near)
            return uri

        return _measured(place, near, far)


def _measured(place: Callable[[str], str], near: dict[str, str], far: dict[str, str]) -> bool:
    uris = {"ours": place("ours"), "theirs": place("theirs")}
    ours = tablewright.dataset(uris["ours"], storage_options=far)
    theirs = lance.dataset(uris["theirs"], storage_options=far)
    both: list[Any] = [ours, theirs]
    cold = [[_seconds(lambda ds=ds: _upsert(ds, 7))] for ds in both]
    kept = _line(f"upsert of one row, {FRAGMENTS} fragments, cold", *cold, 2.0)
    _line(f"{FRAGMENTS} bare requests, {AT_ONCE} at a time", [_bare_requests(ours, uris["ours"], far)], [], None)
    warm = [[_seconds(lambda ds=ds, n=n: _upsert(ds, n)) for n in range(20, 20 + RUNS)] for ds in both]
    kept &= _line("upsert of one row, warm", *warm, 2.0)
    appends = [[_seconds(lambda ds=ds: ds.insert(_rows(-1, 0))) for _ in range(RUNS)] for ds in both]
    kept &= _line("append of one row", *appends, 0.4)
    for uri in uris.values():
        lance.dataset(uri, storage_options=near).create_scalar_index("id", "BTREE")
    indexed = [
        tablewright.dataset(uris["ours"], storage_options=far),
        lance.dataset(uris["theirs"], storage_options=far),
    ]
    deletes = [[_seconds(lambda ds=ds, n=n: ds.delete(f"id = {n}")) for n in range(100, 100 + RUNS)] for ds in indexed]
    kept &= _line("delete of one row by a key with a BTREE", *deletes, 1.0)
    opens = [
        [_seconds(lambda: tablewright.dataset(uris["ours"], storage_options=far).count_rows()) for _ in range(RUNS)],
        [_seconds(lambda: lance.dataset(uris["theirs"], storage_options=far).count_rows()) for _ in range(RUNS)],
    ]
    return _line("open and count", *opens, None) and kept
