"""Deletes that we committed are seen by pypaimon, in every snapshot, whoever wrote what in between."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.differential.paimon.referee import Pypaimon, same_rows
from tests.differential.paimon.test_reading import PLAIN, VECTORS, numbers
from tests.unit.paimon import tables

import tablewright.paimon as paimon
from tablewright.errors import InvalidRequest
from tablewright.format.deletion_vectors.paimon import walk_vector_file
from tablewright.storage import open_store


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def both_see(pypaimon: Pypaimon, name: str, expected: list[int], snapshot: int | None = None) -> None:
    assert ids(pypaimon.read(name, snapshot)) == expected
    table = paimon.open(pypaimon.path(name), snapshot=snapshot)
    assert ids(table.to_table()) == expected and table.count_rows() == len(expected)


def test_deletes_one_after_the_other(pypaimon: Pypaimon) -> None:
    """On files of several commits, beside appends by pypaimon; each snapshot stays what it was."""
    path = pypaimon.create("deletes", PLAIN, options=VECTORS)
    pypaimon.append("deletes", numbers(0, 20))
    pypaimon.append("deletes", numbers(20, 30))
    stale = paimon.open(path)
    table = paimon.open(path)
    result = table.delete("id % 10 = 3 OR s IS NULL")
    gone = {i for i in range(30) if i % 10 == 3 or i % 5 == 2}
    assert (result.num_deleted_rows, result.snapshot_id, result.num_attempts) == (len(gone), 3, 1)
    both_see(pypaimon, "deletes", sorted(set(range(30)) - gone))
    pypaimon.append("deletes", numbers(30, 40))  # carries our index manifest on
    both_see(pypaimon, "deletes", sorted(set(range(40)) - gone))
    assert stale.delete(pc.field("id") >= 38).snapshot_id == 5  # a stale handle works on the newest
    gone |= {38, 39}
    both_see(pypaimon, "deletes", sorted(set(range(40)) - gone))
    assert table.delete("id in (0, 3, 38)").num_deleted_rows == 1
    gone |= {0}
    both_see(pypaimon, "deletes", sorted(set(range(40)) - gone))
    nothing = table.delete("id > 1000")
    assert (nothing.num_deleted_rows, nothing.snapshot_id, nothing.files) == (0, 6, ())
    both_see(pypaimon, "deletes", list(range(30)), snapshot=2)
    both_see(pypaimon, "deletes", sorted(set(range(40)) - gone | {0, 38, 39}), snapshot=4)
    assert table.delete("true").num_deleted_rows == 40 - len(gone)
    both_see(pypaimon, "deletes", [])
    assert table.snapshot is not None
    document = json.loads(Path(path, "snapshot/snapshot-7").read_text())
    assert document == table.snapshot.document
    assert (document["commitKind"], document["deltaRecordCount"], document["totalRecordCount"]) == ("OVERWRITE", 0, 40)
    assert Path(path, "snapshot/LATEST").read_text() == "7"
    pypaimon.append("deletes", numbers(50, 52))  # and pypaimon goes on
    both_see(pypaimon, "deletes", [50, 51])


def test_partitions_and_buckets(pypaimon: Pypaimon) -> None:
    """Vectors belong to a partition and a bucket; a bucket has one index file, written whole."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("day", pa.date32())])
    shapes: dict[str, dict[str, Any]] = {
        "parts": {"partition_keys": ["p", "day"], "options": VECTORS},
        "buckets": {"options": {**VECTORS, "bucket": "2", "bucket-key": "id"}},
        "parts_buckets": {"partition_keys": ["p"], "options": {**VECTORS, "bucket": "2", "bucket-key": "id"}},
        "beside_data": {"partition_keys": ["p"], "options": {**VECTORS, "index-file-in-data-file-dir": "true"}},
    }
    for name, how in shapes.items():
        path = pypaimon.create(name, schema, **how)
        for start in (0, 20):
            rows = {
                "id": range(start, start + 20),
                # pypaimon can't write a second time into a bucketed table with a null partition
                "p": [["x", "y z", "none" if name == "parts_buckets" else None, "a/b"][i % 4] for i in range(20)],
                "day": [None if i % 3 else i for i in range(20)],
            }
            pypaimon.append(name, pa.table(rows, schema=schema))
        table = paimon.open(path)
        left = set(range(40))
        for predicate, gone in [
            ("p = 'x' AND id < 10", {0, 4, 8}),
            ("id in (1, 3, 22, 23)", {1, 3, 22, 23}),
            ("p is null or p = 'none'", {i for i in left if i % 20 % 4 == 2}),
            ("id = 39 or day is not null", {39} | {i for i in left if i % 20 % 3 == 0}),
        ]:
            assert table.delete(predicate).num_deleted_rows == len(gone & left), (name, predicate)
            left -= gone
            both_see(pypaimon, name, sorted(left))
        index = table._state.index
        if "buckets" in name:
            assert len({(file.partition, file.bucket) for file in index.files}) == len(index.files)
        assert all(
            file.path.startswith("index/") == (name != "beside_data") for file in table.deletion_vectors().values()
        )


def test_rolling_and_rewriting(pypaimon: Pypaimon) -> None:
    """A small target size: several index files; those that hold touched vectors are replaced, others stay."""
    options = {**VECTORS, "deletion-vector.index-file.target-size": "50 b"}
    path = pypaimon.create("rolling", PLAIN, options=options)
    for start in range(0, 50, 10):
        pypaimon.append("rolling", numbers(start, start + 10))
    table = paimon.open(path)
    first = table.delete("id % 10 = 1")
    assert [len(walk_vector_file(Path(path, file).read_bytes(), file)) for file in first.files] == [2, 2, 1]
    second = table.delete("id = 12")
    named = {vector.path for vector in table.deletion_vectors().values()}
    assert len(second.files) == 2 and named == {*first.files[1:], *second.files}
    both_see(pypaimon, "rolling", [i for i in range(50) if i % 10 != 1 and i != 12])


def test_64_bit_vectors(pypaimon: Pypaimon) -> None:
    """pypaimon does not read them, so it may only say so; we do, and vectors of both widths become one."""
    path = pypaimon.create("wide", PLAIN, options={**VECTORS, "deletion-vectors.bitmap64": "true"})
    pypaimon.append("wide", numbers(0, 10))
    table = paimon.open(path)
    (file,) = table.delete("id in (1, 2)").files
    assert [place.width for place, _ in walk_vector_file(Path(path, file).read_bytes(), file)] == [64]
    assert ids(paimon.open(path).to_table()) == [0, *range(3, 10)]
    pypaimon.ask("alter", name="wide", changes=[["set_option", "deletion-vectors.bitmap64", "false"]])
    assert paimon.open(path).delete("id = 9").num_deleted_rows == 1
    both_see(pypaimon, "wide", [0, *range(3, 9)])


def test_histories(pypaimon: Pypaimon) -> None:
    """Random appends by pypaimon and deletes by us in turns: every snapshot equals the model, for both readers."""
    for seed in range(3):
        draw = random.Random(seed)
        name, schema = f"history_{seed}", pa.schema([("id", pa.int64()), ("p", pa.int32()), ("x", pa.float64())])
        buckets = {"bucket": "2", "bucket-key": "id"} if seed == 1 else {}
        keys = ["p"] if seed == 2 else []
        path = pypaimon.create(name, schema, partition_keys=keys, options={**VECTORS, **buckets})
        model: dict[int, tuple[int, float]] = {}
        snapshots = [dict(model)]
        while len(snapshots) < 12:
            if len(snapshots) < 3 or draw.random() < 0.3:
                new = {
                    1000 * len(snapshots) + i: (draw.randrange(3), draw.random()) for i in range(draw.randrange(1, 40))
                }
                columns = {"id": list(new), "p": [p for p, _ in new.values()], "x": [x for _, x in new.values()]}
                pypaimon.append(name, pa.table(columns, schema=schema))
                model |= new
            else:
                limit, part = draw.random(), draw.randrange(3)
                text, test = draw.choice(
                    [
                        (f"x < {limit / 3}", lambda p, x, limit=limit: x < limit / 3),
                        (f"p = {part} AND x > {limit}", lambda p, x, part=part, limit=limit: p == part and x > limit),
                    ]
                )
                doomed = [id for id, (p, x) in model.items() if test(p, x)]
                assert paimon.open(path).delete(text).num_deleted_rows == len(doomed)
                if not doomed:
                    continue
                model = {id: row for id, row in model.items() if id not in doomed}
            snapshots.append(dict(model))
        for number, rows in enumerate(snapshots[1:], 1):
            ours = paimon.open(path, snapshot=number).to_table()
            assert {row["id"]: (row["p"], row["x"]) for row in ours.to_pylist()} == rows, (seed, number)
            same_rows(ours, pypaimon.read(name, number))


def test_what_can_not_be_deleted_from(pypaimon: Pypaimon) -> None:
    path = pypaimon.create("without", PLAIN)
    pypaimon.append("without", numbers(0, 3))
    with pytest.raises(InvalidRequest, match=r"deletion-vectors\.enabled"):
        paimon.open(path).delete("id = 1")
    with pytest.raises(InvalidRequest, match="opened at snapshot 1"):
        paimon.open(path, snapshot=1).delete("id = 1")
    path = pypaimon.create("empty", PLAIN, options=VECTORS)
    assert paimon.open(path).delete("id = 1").snapshot_id is None
    for wrong in ("nope = 1", "id +", "id + 1"):
        with pytest.raises(InvalidRequest):
            paimon.open(path).delete(wrong)
    assert not list(Path(path, "snapshot").glob("*")) if Path(path, "snapshot").exists() else True


def test_tables_of_our_own_tests(pypaimon: Pypaimon) -> None:
    """The small writer that other tests use makes tables that pypaimon reads, before and after deletes of ours."""
    store = open_store(pypaimon.path("homemade"))
    tables.create(store, tables.numbers(0, 1).schema)
    tables.append(store, tables.numbers(0, 10))
    tables.append(store, tables.numbers(10, 20))
    both_see(pypaimon, "homemade", list(range(20)))
    paimon.open(pypaimon.path("homemade")).delete("id > 14 or id = 0")
    both_see(pypaimon, "homemade", list(range(1, 15)))
    tables.compact(store)
    both_see(pypaimon, "homemade", list(range(1, 15)))
