"""Tables that pypaimon wrote are read equal: types, partitions, buckets, several commits, changed schemas, vectors."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.differential.paimon.referee import Pypaimon, same_rows, sorted_rows

import tablewright.paimon as paimon
from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.expressions import compile_filter
from tablewright.format.deletion_vectors.paimon import encode_vector_file
from tablewright.format.row_set import RowSet
from tablewright.paimon.read import plan_read

VECTORS = {"deletion-vectors.enabled": "true"}
PLAIN = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("b", pa.bool_()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("raw", pa.binary()),
        ("d", pa.date32()),
        ("t", pa.time32("ms")),
        ("ms", pa.timestamp("ms")),
        ("us", pa.timestamp("us")),
        ("ns", pa.timestamp("ns")),
        ("utc", pa.timestamp("us", "UTC")),
        ("small", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(30, 10)),
        ("list", pa.list_(pa.int32())),
        ("map", pa.map_(pa.string(), pa.float64())),
        ("row", pa.struct([("a", pa.int32()), ("inner", pa.struct([("z", pa.string())]))])),
        ("rows", pa.list_(pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string()))]))),
    ]
)


def numbers(start: int, stop: int, schema: pa.Schema = PLAIN) -> pa.Table:
    ids = range(start, stop)
    rows = {"id": list(ids), "s": [None if i % 5 == 2 else f"row {i}" for i in ids], "x": [i / 4 for i in ids]}
    return pa.table(rows, schema=schema)


def every_type(start: int, stop: int) -> pa.Table:
    day, midnight = dt.date(1969, 12, 31), dt.datetime(1969, 12, 31, 23, 59, 59)

    def row(i: int) -> dict[str, Any]:
        full = {
            "b": i % 2 == 0,
            "i8": i - 100,
            "i16": -i * 300,
            "i32": i * 10**7,
            "f": float("nan") if i == 3 else i / 8,
            "x": float("inf") if i == 4 else -i / 3,
            "s": "" if i == 5 else f"Grüße {i} 🦆",
            "raw": bytes([i]) * i,
            "d": day + dt.timedelta(days=i * 1000),
            "t": dt.time(i % 24, 59, 7, 123000),
            "ms": midnight + dt.timedelta(milliseconds=i * 1001),
            "us": midnight + dt.timedelta(microseconds=i),
            "ns": midnight + dt.timedelta(microseconds=i),
            "utc": midnight + dt.timedelta(days=i),
            "small": decimal.Decimal(i).scaleb(-2),
            "wide": decimal.Decimal(-i * 10**19 + 1).scaleb(-10),
            "list": [None, i] if i % 3 else [],
            "map": [("k", i / 2), ("n", None)],
            "row": {"a": i, "inner": None if i % 4 == 1 else {"z": f"z{i}"}},
            "rows": [{"a": i, "l": ["x", None]}, None],
        }
        return {"id": i, **(dict.fromkeys(full) if i % 7 == 6 else full)}

    return pa.Table.from_pylist([row(i) for i in range(start, stop)], EVERY_TYPE)


def test_append_tables_of_every_shape(pypaimon: Pypaimon) -> None:
    """Types, partitions (also with names that directories escape), buckets, compressions; each commit by itself."""
    in_partitions = pa.schema(
        [("id", pa.int64()), ("p", pa.string()), ("day", pa.date32()), ("n", pa.int32()), ("flag", pa.bool_())]
    )
    keys = ["Ulm", None, "a b", "x/y=%", ""]
    rows = pa.table(
        {
            "id": range(10),
            "p": [keys[i % 5] for i in range(10)],
            "day": [dt.date(2024, 1, 1 + i % 2) for i in range(10)],
            "n": [i % 2 - 1 for i in range(10)],
            "flag": [i % 2 == 0 for i in range(10)],
        },
        schema=in_partitions,
    )
    compressions = ["zstd", "null", "deflate"]
    tables: dict[str, tuple[pa.Table, pa.Table, dict[str, Any]]] = {
        "types": (every_type(0, 9), every_type(9, 20), {}),
        "partitioned": (rows.slice(0, 7), rows.slice(7), {"partition_keys": ["p", "day", "n", "flag"]}),
        "one_key": (rows.slice(0, 7), rows.slice(7), {"partition_keys": ["n"]}),
        "bucketed": (numbers(0, 50), numbers(50, 60), {"options": {"bucket": "3", "bucket-key": "id"}}),
        **{
            f"manifests_{name}": (numbers(0, 5), numbers(5, 9), {"options": {"manifest.compression": name}})
            for name in compressions
        },
    }
    for name, (first, second, how) in tables.items():
        path = pypaimon.create(name, first.schema, **how)
        assert paimon.open(path).snapshot is None and paimon.open(path).to_table().num_rows == 0, name
        pypaimon.append(name, first)
        pypaimon.append(name, second)
        newest = paimon.open(path)
        same_rows(newest.to_table(), pypaimon.read(name))
        same_rows(newest.to_table(), pa.concat_tables([first, second]))
        same_rows(paimon.open(path, snapshot=1).to_table(), first)
        assert newest.count_rows() == first.num_rows + second.num_rows
        assert newest.count_rows("id >= 3") == newest.count_rows() - 3
        assert sum(file.rows for file in newest.files()) == newest.count_rows()
        assert all(Path(path, file.path).stat().st_size == file.size for file in newest.files())
    assert paimon.open(pypaimon.path("partitioned")).partition_keys == ("p", "day", "n", "flag")
    assert {file.bucket for file in paimon.open(pypaimon.path("bucketed")).files()} == {0, 1, 2}


def test_statistics_of_files(pypaimon: Pypaimon) -> None:
    """What pypaimon notes of its files leaves some of them out of a scan, and never a row."""
    path = pypaimon.create("statistics", EVERY_TYPE, options={"metadata.stats-mode": "full"})
    for start in range(0, 20, 5):
        pypaimon.append("statistics", every_type(start, start + 5))
    table = paimon.open(path)
    rows = table.to_table().combine_chunks().to_batches()[0]
    for filter, files in [
        ("id = 7", 1),
        ("id between 4 and 5", 2),
        ("i8 > -90", 2),
        ("i16 <= -3000 and i32 < 150000000", 1),
        ("d < '1975-01-01'", 1),
        ("d >= date '2010-01-01' or id = 0", 2),
        ("x > 1", 4),
        ("f < 1", 4),
        ("s > 'H'", 4),
        ("us < timestamp '1970-01-01 00:00:00'", 4),
        ("small = 0.07", 4),
        ("b and id > 17", 1),
    ]:
        plan = plan_read(table._state, table._store, None, filter)
        expected = compile_filter(filter, table.schema).filter(rows)
        assert sorted_rows(table.to_table(filter=filter)) == sorted_rows(pa.Table.from_batches([expected])), filter
        assert len(plan.files) == files, filter


def test_columns_and_filters(pypaimon: Pypaimon) -> None:
    path = pypaimon.create("columns", PLAIN)
    pypaimon.append("columns", numbers(0, 30))
    table = paimon.open(path)
    assert table.to_table(columns=["x", "id"]).column_names == ["x", "id"]
    same_rows(table.to_table(columns=["id"]), pypaimon.read("columns", columns=["id"]))
    assert table.to_table(columns=["x"], filter="s IS NULL AND id > 10")["x"].to_pylist() == [3.0, 4.25, 5.5, 6.75]
    assert table.to_table(filter=pc.field("id") < 2)["id"].to_pylist() == [0, 1]
    assert table.to_table(columns=[]).num_rows == 30 and table.count_rows(pc.field("x") > 5) == 9
    batches = list(table.to_batches(["s"], "id % 2 = 0"))
    assert sum(batch.num_rows for batch in batches) == 15 and batches[0].schema.names == ["s"]
    with pytest.raises(InvalidRequest, match="Did you mean 's'"):
        table.to_table(columns=["S"])
    for filter in ("nope > 1", "_rowid = 1"):
        with pytest.raises(InvalidRequest, match="No field named"):
            table.to_table(filter=filter)
    with pytest.raises(InvalidRequest, match="twice"):
        table.to_table(columns=["id", "id"])


def test_changed_schemas(pypaimon: Pypaimon) -> None:
    """Columns are found by id: renamed, added, dropped, widened, moved; in old files and in new ones."""
    start = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("f", pa.float32()), ("gone", pa.string())])
    path = pypaimon.create("evolved", start)
    old = {"id": [1, 2], "n": [10, None], "f": [0.5, 1.5], "gone": ["a", "b"]}
    pypaimon.append("evolved", pa.table(old, schema=start))
    steps: list[list[list[Any]]] = [
        [["rename_column", "n", "m"], ["add_column", "later", "STRING"]],
        [["update_column_type", "m", "BIGINT"], ["update_column_type", "f", "DOUBLE"], ["drop_column", "gone"]],
        [["add_column", "gone", "INT"]],  # the old name again: another column
    ]
    for number, changes in enumerate(steps):
        pypaimon.ask("alter", name="evolved", changes=changes)
        now = paimon.open(path)
        same_rows(now.to_table(), pypaimon.read("evolved"))
        rows = pa.table({"id": [100 + number]}, schema=pa.schema([("id", pa.int64())]))
        for field in list(now.schema)[1:]:
            value = "new" if pa.types.is_string(field.type) else number
            rows = rows.append_column(field.name, pa.array([value], field.type))
        pypaimon.append("evolved", rows.select(now.schema.names).cast(now.schema))
        same_rows(paimon.open(path).to_table(), pypaimon.read("evolved"))
        assert paimon.open(path).count_rows(f"id = {100 + number}") == 1
    same_rows(paimon.open(path, snapshot=1).to_table(), pypaimon.read("evolved", snapshot=1))
    assert paimon.open(path, snapshot=1).schema.names == ["id", "n", "f", "gone"]
    assert paimon.open(path).to_table(filter="id < 3")["gone"].to_pylist() == [None, None]
    pypaimon.ask("alter", name="evolved", changes=[["update_column_type", "m", "STRING"]])
    with pytest.raises(UnsupportedFeature, match="Column m is STRING and was INT in schema 0"):
        paimon.open(path).to_table()
    assert paimon.open(path).to_table(columns=["id"]).num_rows == 5


def foreign_vector(pypaimon: Pypaimon, name: str, data_file: str, positions: list[int], *, bucket: int = 0) -> None:
    """A vector of ours, committed by pypaimon."""
    data, (place,) = encode_vector_file({data_file: RowSet.of(positions)})
    index = Path(pypaimon.path(name), "index")
    index.mkdir(exist_ok=True)
    (index / f"index-foreign-{data_file}").write_bytes(data)
    where = {"file": f"index-foreign-{data_file}", "bucket": bucket, "size": len(data)}
    pypaimon.ask("put_vector", name=name, data_file=data_file, offset=place.offset, length=place.length, **where)


def test_vectors_of_others(pypaimon: Pypaimon) -> None:
    path = pypaimon.create("foreign", PLAIN, options=VECTORS)
    (file,) = pypaimon.append("foreign", numbers(0, 10))
    foreign_vector(pypaimon, "foreign", file, [0, 2, 5, 9])
    table = paimon.open(path)
    assert table.to_table()["id"].to_pylist() == [1, 3, 4, 6, 7, 8]
    same_rows(table.to_table(), pypaimon.read("foreign"))
    assert table.count_rows() == 6  # the cardinality was not noted: the bin is read
    found = table.deletion_vectors()[file]
    assert found.vector.to_numpy().tolist() == [0, 2, 5, 9] and found.path == f"index/index-foreign-{file}"
    assert (found.offset, found.length) == (1, 28)
    assert paimon.open(path, snapshot=1).count_rows() == 10
    pypaimon.ask("alter", name="foreign", changes=[["set_option", "deletion-vectors.modifiable", "true"]])
    pypaimon.ask("alter", name="foreign", changes=[["set_option", "deletion-vectors.enabled", "false"]])
    off = paimon.open(path)
    assert off.count_rows() == 10 and off.deletion_vectors() == {}  # as Paimon: switched off is not applied
    same_rows(off.to_table(), pypaimon.read("foreign"))
    past = paimon.open(path, snapshot=2)  # columns of then, options of now
    assert past.count_rows() == 10
    same_rows(past.to_table(), pypaimon.read("foreign", 2))


def test_rows_with_ids(pypaimon: Pypaimon) -> None:
    """Data evolution: read and deleted from as long as the columns of a row lie in one file."""
    options = {**VECTORS, "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    path = pypaimon.create("evolution", PLAIN, options=options)
    pypaimon.append("evolution", numbers(0, 10))
    pypaimon.append("evolution", numbers(10, 20))
    pypaimon.ask("delete_by_row_id", name="evolution", row_ids=[3, 12])
    table = paimon.open(path)
    same_rows(table.to_table(), pypaimon.read("evolution"))
    assert table.delete("id in (4, 3, 19)").num_deleted_rows == 2
    same_rows(table.to_table(), pypaimon.read("evolution"))
    assert table.snapshot is not None and table.snapshot.document["nextRowId"] == 20
    assert table.count_rows() == 16
    new = pa.table({"_ROW_ID": pa.array([1], pa.int64()), "s": ["changed"]})
    pypaimon.update_column("evolution", new, ["s"])
    for read in (lambda: paimon.open(path).to_table(), lambda: table.delete("true")):
        with pytest.raises(UnsupportedFeature, match=r"data-evolution\.enabled=true"):
            read()


KEYED = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string()), ("x", pa.float64())])


def test_primary_keys(pypaimon: Pypaimon) -> None:
    """What needs merging is refused by name; the rest is read as Paimon reads it."""

    def made(name: str, options: dict[str, str], *levels: int) -> str:
        path = pypaimon.create(name, KEYED, primary_keys=["id"], options=options)
        for number, level in enumerate(levels):
            pypaimon.append(name, numbers(number * 10, number * 10 + 10, KEYED), level=level)
        return path

    one = {"bucket": "1"}
    path = made("pk_vectors", {**one, **VECTORS}, 5, 0, 4)
    assert paimon.open(path).count_rows() == 20  # level 0 is left aside
    same_rows(paimon.open(path).to_table(), pypaimon.read("pk_vectors"))
    file = next(file for file in paimon.open(path).files() if file.level == 5)
    foreign_vector(pypaimon, "pk_vectors", Path(file.path).name, [1, 2])
    table = paimon.open(path)
    same_rows(table.to_table(filter="true"), pypaimon.read("pk_vectors"))
    assert table.count_rows() == 18 and table.primary_keys == ("id",)
    assert table.schema.names == ["id", "s", "x"]
    with pytest.raises(UnsupportedFeature, match="has a primary key"):
        table.delete("id = 1")

    assert paimon.open(made("pk_first", {**one, "merge-engine": "first-row"}, 0, 5)).count_rows() == 10
    same_rows(paimon.open(pypaimon.path("pk_first")).to_table(), pypaimon.read("pk_first"))
    assert paimon.open(made("pk_compacted", one, 5, 5)).count_rows() == 20
    same_rows(paimon.open(pypaimon.path("pk_compacted")).to_table(), pypaimon.read("pk_compacted"))
    refused = {
        "merge-on-read": made("pk_mor", {**one, **VECTORS, "deletion-vectors.merge-on-read": "true"}, 0),
        "no deletion vectors": made("pk_merge", one, 0, 5),
        "several levels": made("pk_levels", one, 4, 5),
        "merge-engine=partial-update": made("pk_partial", {**one, "merge-engine": "partial-update"}, 0),
    }
    for words, path in refused.items():
        table = paimon.open(path)  # it can be looked at
        assert "primary key id" in repr(table) and len(table.files()) > 0
        for read in (table.to_table, table.count_rows, table.to_batches):
            with pytest.raises(UnsupportedFeature, match=words):
                read()


def test_dynamic_buckets(pypaimon: Pypaimon) -> None:
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}
    parts = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("p", pa.string(), nullable=False)])
    whole = pypaimon.create("dynamic", parts, primary_keys=["id"], options=options)
    split = pypaimon.create("dynamic_p", parts, partition_keys=["p"], primary_keys=["id", "p"], options=options)
    for name in ("dynamic", "dynamic_p"):
        for ids in ([1, 2, 3, 4, 5], [5, 6, 7]):
            pypaimon.append(name, pa.table({"id": ids, "p": ["ab"[i % 2] for i in ids]}, schema=parts))
    index = paimon.open(whole).buckets()
    assert {bucket: set(hashes.tolist()) for bucket, hashes in index.partitions[()].items()} == {
        0: {1465514398, 1340390384, -771300025},
        1: {1447522506, 260196596, 842153448},
        2: {-348168691},
    }
    assert index.options.target_rows == 3 and index.schema == parts
    counts = paimon.open(split).buckets().row_counts()
    assert {partition: sum(buckets.values()) for partition, buckets in counts.items()} == {("a",): 3, ("b",): 4}
    with pytest.raises(UnsupportedFeature, match="merged by key"):
        paimon.open(whole).to_table()


def test_random_vectors(pypaimon: Pypaimon) -> None:
    """Larger files, several row groups, any positions: what is left equals what pypaimon leaves."""
    random = np.random.default_rng(7)
    path = pypaimon.create("random", PLAIN, options=VECTORS)
    (file,) = pypaimon.append("random", numbers(0, 150_000))
    gone = np.unique(random.integers(0, 150_000, 40_000))
    foreign_vector(pypaimon, "random", file, gone.tolist())
    table = paimon.open(path)
    kept = table.to_table()["id"].to_numpy()
    assert np.array_equal(kept, np.setdiff1d(np.arange(150_000), gone))
    assert sorted_rows(table.to_table(filter="id < 500")) == sorted_rows(
        pypaimon.read("random").filter(pc.field("id") < 500)
    )
