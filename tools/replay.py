"""Replay a fixed, seeded history of every verb, and print a digest of each file that it left on disk.

A refactoring changes no byte. Run this on both revisions and compare the two lists::

    python tools/replay.py prepare /tmp/replay            # once: tables of pylance, whose uuids and times are random
    python tools/replay.py run /tmp/replay > before.txt   # on the old revision
    python tools/replay.py run /tmp/replay > after.txt    # on the new one
    diff before.txt after.txt

Ids and times come from a seed, and one thread does all work, so the order of the calls is the order of the ids.
``--spark`` adds histories that Spark's workers write. Their ids are random: there the lines describe fragments by
rows, columns, sizes and the digests of their files instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import tablewright as tw
from tablewright import world
from tablewright.data import prefetch

VERSIONS = ("2.0", "2.1", "2.2")
START_NS = 1_700_000_000_000_000_000


# ----------------------------------------------------------------------------------------------------------- seeds


class _Seeded:
    """The ids of every world of this process."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def u64(self) -> int:
        return self._random.getrandbits(64)


def seed(number: int) -> None:
    """Start the ids from a seed; the time stands still."""
    seeded = _Seeded(number)
    world.SystemIds.uuid = lambda self: seeded.uuid()
    world.SystemIds.u64 = lambda self: seeded.u64()
    world.SystemClock.now_ns = lambda self: START_NS
    uuid.uuid4 = seeded.uuid  # of transactions that people make themselves


# ------------------------------------------------------------------------------------------------------- histories


def rows(first: int, count: int, draw: random.Random) -> pa.Table:
    """Rows of several types, wide enough that updates choose rows in one place and columns in another."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([draw.randrange(100) if draw.random() < 0.9 else None for _ in ids], pa.int32()),
            "s": pa.array([f"text {id % 13}" for id in ids]),
            "wide": pa.array([bytes([id % 256]) * 300 for id in ids], pa.binary()),
            "m": pa.array([{"x": id, "y": [id, id + 1]} for id in ids]),
        }
    )


def keyed(ids: list[int], draw: random.Random) -> pa.Table:
    """A source of ``merge_insert``."""
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([draw.randrange(100) for _ in ids], pa.int32())})


def _insert(ds: Any, draw: random.Random) -> None:
    table = rows(draw.randrange(10_000), draw.randrange(1, 400), draw)
    names = set(ds.schema.names)
    ds.insert(table.select([name for name in table.column_names if name in names]), mode="append")


def _delete(ds: Any, draw: random.Random) -> None:
    ds.delete(draw.choice([f"id % 7 = {draw.randrange(7)}", f"id = {draw.randrange(900)}", "n > 90", "false"]))


def _update(ds: Any, draw: random.Random) -> None:
    where = draw.choice([None, f"id % 3 = {draw.randrange(3)}", f"id < {draw.randrange(300)}", "n is null"])
    ds.update(draw.choice([{"n": "n + 1"}, {"s": "concat(s, '!')"}, {"n": "id % 50", "s": "'same'"}]), where=where)


def _merge(ds: Any, draw: random.Random) -> None:
    ids = draw.sample(range(2_000), draw.randrange(1, 200))
    merge = ds.merge_insert("id")
    kind = draw.randrange(4)
    if kind != 1:
        merge = merge.when_matched_update_all("source.n > target.n" if kind == 2 else None)
    if kind != 2:
        merge = merge.when_not_matched_insert_all()
    if kind == 3:
        merge = merge.when_not_matched_by_source_delete("id % 11 = 0")
    source = keyed(ids, draw)
    if kind != 2:
        source = rows(ids[0], 60, draw).select(ds.schema.names) if draw.random() < 0.5 and _is_plain(ds) else source
    merge.execute(source)


def _is_plain(ds: Any) -> bool:
    return set(ds.schema.names) <= {"id", "n", "s", "wide", "m"}


def _columns(ds: Any, draw: random.Random) -> None:
    name = f"c{draw.randrange(3)}"
    if name not in ds.schema.names:
        how = draw.choice(["sql", "null", "function"])
        if how == "sql":
            ds.add_columns({name: "id * 3"})
        elif how == "null":
            ds.add_columns(pa.field(name, pa.int64()))
        else:
            ds.add_columns(lambda batch: pa.record_batch({name: batch["id"]}), read_columns=["id"])
    elif draw.random() < 0.4:
        ds.alter_columns({"path": name, "data_type": pa.int32() if draw.random() < 0.5 else pa.float64()})
    else:
        ds.drop_columns([name])


def _settings(ds: Any, draw: random.Random) -> None:
    kind = draw.randrange(4)
    if kind == 0:
        ds.update_config({"k": str(draw.randrange(9))})
    elif kind == 1:
        ds.update_schema_metadata({"k": str(draw.randrange(9))})
    elif kind == 2:
        ds.tags.create(f"t{ds.version}-{draw.randrange(10**6)}", ds.version)
    else:
        ds.restore()


def _stale(ds: Any, draw: random.Random) -> None:
    """Another writer commits between our reading and our commit, so that ours is rebased or runs again."""
    late = tw.dataset(ds.uri, version=ds.version)
    first, second = draw.choice(CHANGES[:4]), draw.choice(CHANGES[:4])
    first(ds, draw)
    second(late, draw)
    ds.checkout_latest()


CHANGES: list[Callable[[Any, random.Random], None]] = [_insert, _delete, _update, _merge, _columns, _settings]


def history(uri: str, number: int, steps: int, *, stable: bool, file_version: str) -> None:
    """Create a table and change it; what is refused is part of the history."""
    draw = random.Random(number)
    ds = tw.write_dataset(
        rows(0, 900, draw), uri, max_rows_per_file=300, data_storage_version=file_version, enable_stable_row_ids=stable
    )
    for step in range(steps):
        attempt(draw.choice([*CHANGES, _stale]), ds, draw)
        if step == steps // 2 and not stable:
            attempt(lambda ds, draw: ds.enable_stable_row_ids(), ds, draw)
    branch = ds.create_branch("side")
    attempt(_update, branch, draw)
    attempt(_delete, branch, draw)
    uncommitted(uri, draw)


def uncommitted(uri: str, draw: random.Random) -> None:
    """The ways to commit what was written before: fragments, prepared changes, several transactions at once."""
    ds = tw.dataset(uri)
    table = rows(50_000, 40, draw).select([name for name in ds.schema.names if name in ("id", "n", "s", "wide", "m")])
    for _ in range(2):
        fragments = tw.fragment.write_fragments(table, uri, mode="append")
        ds = tw.LanceDataset.commit(uri, tw.LanceOperation.Append(fragments), read_version=ds.version)
    change, _ = ds.prepare_delete("id % 5 = 1").execute_uncommitted()
    tw.CommitBuilder(ds).execute(change)


def attempt(change: Callable[[Any, random.Random], None], ds: Any, draw: random.Random) -> None:
    """Run one step. Its error belongs to the history too."""
    try:
        change(ds, draw)
    except tw.errors.TablewrightError as error:
        print(f"refused {type(error).__name__}: {str(error)[:400]}".replace(ds.uri, "TABLE"))
        ds.checkout_latest()


def indexed(prepared: Path, uri: str, number: int) -> None:
    """Changes of a table that pylance wrote and indexed."""
    shutil.copytree(prepared, uri)
    draw, ds = random.Random(number), tw.dataset(uri)
    for _ in range(12):
        attempt(draw.choice([*CHANGES[:4], CHANGES[3], _stale]), ds, draw)


def prepare(place: Path) -> None:
    """Tables of pylance with a BTREE on the key, with and without stable row ids."""
    for stable in (False, True):
        uri = place / f"indexed-{'stable' if stable else 'plain'}"
        table = rows(0, 3_000, random.Random(7))
        ds = lance.write_dataset(table, str(uri), max_rows_per_file=500, enable_stable_row_ids=stable)
        ds.create_scalar_index("id", "BTREE")
        lance.write_dataset(rows(3_000, 300, random.Random(8)), str(uri), mode="append")


# --------------------------------------------------------------------------------------------------------- digests


def digests(root: Path) -> Iterator[str]:
    """Path, size and digest of every file below ``root``."""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            yield f"{path.relative_to(root)} {len(data)} {hashlib.sha256(data).hexdigest()[:16]}"


def described(uri: str) -> Iterator[str]:
    """What every version consists of, without the random names."""
    for version in lance.dataset(uri).versions():
        ds = lance.dataset(uri, version=version["version"])
        for fragment in ds.get_fragments():
            facts = json.loads(json.dumps(fragment.metadata.to_json()))
            for file in facts["files"]:
                data = Path(uri, "data", file.pop("path")).read_bytes()
                file["sha256"] = hashlib.sha256(data).hexdigest()[:16]
            deletions = facts.get("deletion_file") or {}
            deletions.pop("id", None)
            yield f"version {version['version']} {json.dumps(facts, sort_keys=True)}"


def on_spark(place: Path) -> Iterator[str]:
    """The verbs that Spark's workers run."""
    for stable in (False, True):
        uri, draw = str(place / f"spark-{stable}"), random.Random(3)
        ds = tw.write_dataset(rows(0, 900, draw), uri, max_rows_per_file=200, enable_stable_row_ids=stable)
        ds = tw.dataset(uri, engine="spark")
        for change in (_update, _delete, _merge, _columns, _merge, _update, _merge):
            attempt(change, ds, draw)
        yield from described(uri)


def run(prepared: Path, with_spark: bool) -> None:
    """All histories, and what they left."""
    root = prepared / "run"  # one place for all runs: manifests of branches name it
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    number = 0
    for file_version in VERSIONS:
        for stable in (False, True):
            for _ in range(3):
                number += 1
                seed(number)
                history(str(root / f"h{number}"), number, 24, stable=stable, file_version=file_version)
    for name in ("indexed-plain", "indexed-stable"):
        seed(99)
        indexed(prepared / name, str(root / name), 99)
    print("\n".join(digests(root)))
    if with_spark:
        print("\n".join(on_spark(root)))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["prepare", "run"])
    parser.add_argument("place", type=Path)
    parser.add_argument("--spark", action="store_true", help="also the verbs that Spark's workers run")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    prefetch._HELPERS = 0
    prefetch._ahead = lambda function, items, window: map(function, items)
    warnings.simplefilter("ignore")
    if given.action == "prepare":
        prepare(given.place)
    else:
        run(given.place, given.spark)


if __name__ == "__main__":
    sys.exit(main())
