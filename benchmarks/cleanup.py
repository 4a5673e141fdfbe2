"""Cleanup of many versions of many fragments, beside pylance, and how its time grows.

A table of 1,000 versions, each with 1,000 fragments of which it shares 999 with its neighbour (manifests are written
directly, data files are a byte each); half of the versions go. Printed: seconds of planning, ours and pylance's; of
the cleanup itself; of planning half as many versions, and of twice as many fragments. Twice the work takes at most 2.6
times as long, and planning at most twice as long as pylance's.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import lance

import tablewright as tw
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.fragment import FragmentList
from tablewright.format.naming import manifest_path

__all__ = ["make_table", "run"]

VERSIONS, FRAGMENTS = 1000, 1000
GROWTH_MAX = 2.6
BESIDE_MAX = 2.0
_RUNS = 3


def make_table(path: Path, versions: int, fragments: int) -> None:
    """A table whose version ``v`` has fragments ``v`` to ``v + fragments``."""
    first = tw.write_dataset({"id": [1]}, path)._snapshot.manifest
    one = first.fragments[0]
    all_of_them = FragmentList.of(
        replace(one, id=number, files=(replace(one.files[0], path=f"{number:050b}.lance"),))
        for number in range(versions + fragments)
    )
    for version in range(2, versions + 1):
        name = f"{version - 1}-{version}.txn"
        manifest = replace(
            first,
            version=version,
            fragments=FragmentList(all_of_them.raw[version : version + fragments]),
            max_fragment_id=versions + fragments,
            transaction_file=name,
        )
        (path / manifest_path(version)).write_bytes(encode_manifest_file(manifest, b""))
        (path / "_transactions" / name).write_bytes(b"")
    for number in range(2, versions + fragments):
        (path / "data" / f"{number:050b}.lance").write_bytes(b"x")


def _seconds(action: Callable[[], object]) -> float:
    times = []
    for _ in range(_RUNS):
        gc.collect()
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return median(times)


def _planned(path: Path, retain: int) -> float:
    return _seconds(lambda: tw.dataset(path).explain_cleanup_old_versions(retain_versions=retain))


def run() -> bool:
    """Measure, print, and say whether the promises hold."""
    with tempfile.TemporaryDirectory() as folder:
        whole, fewer, wider = (Path(folder) / name for name in ("whole", "fewer", "wider"))
        make_table(whole, VERSIONS, FRAGMENTS)
        make_table(fewer, VERSIONS // 2, FRAGMENTS)
        make_table(wider, VERSIONS // 2, FRAGMENTS * 2)
        ours, half, wide = (
            _planned(whole, VERSIONS // 2),
            _planned(fewer, VERSIONS // 4),
            _planned(wider, VERSIONS // 4),
        )
        theirs = _seconds(lambda: lance.dataset(whole).explain_cleanup_old_versions(retain_versions=VERSIONS // 2))
        began = time.perf_counter()
        stats = tw.dataset(whole).cleanup_old_versions(retain_versions=VERSIONS // 2)
        cleaned = time.perf_counter() - began
    print(f"  planning {VERSIONS} versions x {FRAGMENTS} fragments: ours {ours:.2f} s, pylance {theirs:.2f} s")
    print(f"  cleanup: {cleaned:.2f} s for {stats.old_versions} versions and {stats.data_files_removed} data files")
    print(f"  twice the versions: x{ours / half:.2f}; twice the fragments: x{wide / half:.2f}")
    return ours <= BESIDE_MAX * theirs and max(ours, wide) <= GROWTH_MAX * half
