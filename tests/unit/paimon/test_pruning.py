"""Filters leave out partitions, files and row groups, but no row: a filtered scan is the scan, filtered afterwards.

The tables of the property have partitions, nulls, NaN and both zeros, deletion vectors, and two schemas: a column was
renamed, one widened, one added, one dropped. Row groups have three to eight rows, so that there is much to leave out,
and batches have seven.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.depth import deep
from tests.unit.paimon.tables import append, copied, create, new_store

from tablewright.expressions import compile_filter
from tablewright.paimon import PaimonTable, parquet
from tablewright.paimon.opening import open_in
from tablewright.paimon.pruning import Bound, may_match
from tablewright.storage import Store
from tablewright.testing import FaultyStore, seeded_world

OLD = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("n", pa.int32()),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("at", pa.timestamp("ms")),
        ("gone", pa.int32()),
        ("p", pa.string()),
    ]
)
NEW = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("n", pa.int64()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("at", pa.timestamp("ms")),
        ("late", pa.int32()),
        ("p", pa.string()),
    ]
)
FIELD_IDS = [0, 1, 2, 3, 4, 5, 6, 9, 8]
PARTITIONS = ["a", "b", None]
FLOATS = [math.nan, 0.0, -0.0, math.inf, -math.inf, 1.5, 2.0, 3.0, -7.25, None]
START = dt.datetime(2024, 1, 1)


def some_rows(schema: pa.Schema, start: int, stop: int, partition: str | None, seed: int) -> pa.Table:
    """Rows in which most columns grow with the id, as they do in life."""
    random, ids = np.random.default_rng(seed), range(start, stop)

    def often(value: Any) -> Any:
        return None if random.random() < 0.15 else value

    texts = [often(f"{'zz' if i % 17 == 0 else 'n'}{i:03}ä") for i in ids]
    columns: dict[str, list[Any]] = {
        "id": list(ids),
        "day": [often((START + dt.timedelta(days=i // 7)).date()) for i in ids],
        "n": [often(i // 3 - 10) for i in ids],
        "s": texts,
        "name": texts,
        "x": [FLOATS[random.integers(len(FLOATS))] if i // 10 % 2 else i / 4 for i in ids],
        "f": [FLOATS[random.integers(4)] if i // 5 % 3 == 0 else i / 4 for i in ids],
        "at": [often(START + dt.timedelta(minutes=i)) for i in ids],
        "gone": [0 for _ in ids],
        "late": [None if i // 5 % 2 else i % 7 for i in ids],
        "p": [partition for _ in ids],
    }
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


@cache
def evolved_table() -> Store:
    """Six files of forty rows, three of each schema; every seventh row is deleted."""
    store = new_store()
    create(store, OLD, partition_keys=["p"], options={"partition.default-name": "None"})
    for number, partition in enumerate(PARTITIONS):
        rows = some_rows(OLD, number * 40, number * 40 + 40, partition, number)
        append(store, rows, partition=(partition,), group_rows=(5, 3, 8), stats=["n", "id", "s", "x"] if number else ())
    document = json.loads(store.get("schema/schema-0"))
    types = {each["name"]: each["type"] for each in document["fields"]} | {
        "n": "BIGINT",
        "name": "STRING",
        "late": "INT",
    }
    fields = [{"id": id, "name": name, "type": types[name]} for id, name in zip(FIELD_IDS, NEW.names, strict=True)]
    store.put("schema/schema-1", json.dumps({**document, "id": 1, "fields": fields}).encode())
    for number, partition in enumerate(PARTITIONS, 3):
        rows = some_rows(NEW, number * 40, number * 40 + 40, partition, number)
        append(store, rows, partition=(partition,), group_rows=(5, 3, 8), schema_id=1, stats=["late", "id", "day"])
    open_in(seeded_world(store, 1)).delete("id % 7 = 3")
    return store


def opened(store: Store, seed: int = 0) -> PaimonTable:
    return open_in(seeded_world(store, seed))


@cache
def all_rows() -> pa.RecordBatch:
    rows = opened(evolved_table()).to_table()
    assert rows.num_rows == 240 - 34
    return rows.combine_chunks().to_batches()[0]


def spelled(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return f"timestamp '{value}'"
    return f"'{value}'" if isinstance(value, str | dt.date) else str(value)


def random_literal(column: str, random: Random) -> str:
    minutes = random.randint(-3, 245)
    value: Any = {
        "id": minutes,
        "n": random.choice([minutes // 3 - 10, 2**40, 0.5, 20.0]),
        "late": random.randint(-1, 8),
        "day": (START + dt.timedelta(days=minutes // 7)).date(),
        "at": START + dt.timedelta(minutes=minutes),
        "name": random.choice([f"n{minutes:03}ä", "", "n1", "zz", "ö", "zz999"]),
        "x": random.choice([0, 0.0, -0.0, 1.5, 2, 9.75, 30.25, 59, -8, 1e300]),
        "f": random.choice([0.0, 1.5, 2, 9.75, 30.25, 59, -8, 0.1]),
        "p": random.choice(["a", "b", "c", ""]),
    }[column]
    return spelled(value)


OTHERS = [
    "id % 3 = 1",
    "lower(name) > 'n100'",
    "x = cast('NaN' as double)",
    "x >= cast('NaN' as double)",
    "f < cast('NaN' as float)",
    "n > late",
    "id + 1 < n * 3",
    "upper(p) = 'A'",
    "coalesce(p, 'b') = 'b'",
    "at < cast('2024-01-01 01:00:00' as timestamp)",
    "n = null",
    "true",
    "1 = 0",
]


def random_condition(random: Random) -> str:
    column = random.choice(NEW.names)
    one, other = random_literal(column, random), random_literal(column, random)
    compared, negated = random.choice(["=", "<", "<=", ">", ">=", "<>"]), random.choice(["", "", "not "])
    return random.choice(
        [
            f"{column} {compared} {one}",
            f"{column} {compared} {one}",
            f"{one} {compared} {column}",
            f"{column} {negated}in ({one}, {other})",
            f"{column} {negated}between {one} and {other}",
            f"{column} is null",
            f"{column} is not null",
            random.choice(OTHERS),
        ]
    )


def random_filter(random: Random) -> str:
    """One to four conditions, joined in any way; a part of them may be negated."""
    text = random_condition(random)
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        text = f"{text} {random.choice(['and', 'or'])} {random_condition(random)}"
        text = random.choice([text, f"({text})", f"not ({text})"])
    return text


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_BATCH_ROWS_MAX", 7)


@pytest.mark.slow
def test_a_filtered_scan_is_the_scan_filtered(small_batches: None) -> None:
    table, rows = opened(evolved_table()), all_rows()
    found = 0
    for seed in range(deep(60, 1500)):
        filter = random_filter(Random(seed))
        expected = compile_filter(filter, table.schema).filter(rows)
        assert str(table.to_table(filter=filter).to_pylist()) == str(expected.to_pylist()), filter
        found += 0 < expected.num_rows < 100
    assert found > seed / 3


def test_a_delete_finds_the_same_rows(small_batches: None) -> None:
    """Positions count all rows of a file, also those of the row groups that are left out."""
    for seed in range(deep(15, 300)):
        filter, store = random_filter(Random(-seed)), copied(evolved_table())
        gone = {*compile_filter(filter, NEW).filter(all_rows())["id"].to_pylist()}
        assert opened(store, 7).delete(filter).num_deleted_rows == len(gone), filter
        left = opened(store).to_table(["id"])["id"].to_pylist()
        assert left == [id for id in all_rows()["id"].to_pylist() if id not in gone], filter


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ("x < 0.0", True),  # a writer may note 0.0 where there is -0.0, which comes before it
        ("x <= -0.0", True),
        ("x = -0.0", True),
        ("0 > x", True),
        ("x < -1", False),
        ("x = 2.5", False),
        ("x in (-3, 2)", False),
        ("x between -2 and -1", False),
        ("x > 5", True),  # NaN is greater, and no writer notes it
        ("x >= 5", True),
        ("x = cast('NaN' as double)", True),
        ("x < 1e300 * 1e300", True),
        ("x <> 0", True),
        ("x + 1 < 0", True),
        ("x < y and x < -1", False),
        ("x < y or x < -1", True),
        ("x < -1 or not x < -1", True),
    ],
)
def test_floats_are_uncertain(filter: str, expected: bool) -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    zero = pa.array([0.0])
    bounds = {"x": Bound(low=zero, high=zero, only_nulls=np.zeros(1, np.bool_))}
    assert may_match(compile_filter(filter, schema), schema, bounds, 1).tolist() == [expected]


def test_bounds_with_names_of_columns() -> None:
    """No name is free that a column has already."""
    schema = pa.schema([("x", pa.int64()), ("x low", pa.int64()), ("x  high", pa.int64())])
    bounds = {"x": Bound(low=pa.array([5]), high=pa.array([9]), only_nulls=np.zeros(1, np.bool_))}
    for filter, expected in [("x < `x low`", True), ("x > `x  high`", True), ("x < 5", False), ("x > 8", True)]:
        assert may_match(compile_filter(filter, schema), schema, bounds, 1).tolist() == [expected], filter


P, ID, X, N = (pc.field(name) for name in ("p", "id", "x", "n"))


@pytest.mark.parametrize(
    ("filter", "files"),
    [
        ((P == "a") & (ID > 20), 2),
        ((P == "a") | (ID > 20), 6),
        (P.is_null() & (X > 1), 2),
        (~(P == "a") & (N < 30), 2),
        (P.isin(["a", "b"]) & (ID > 20), 4),
        ((P != "b") & P.is_valid(), 2),
        (pc.is_nan(X), 6),
        (X > 3, 6),
        (~(X <= 3), 6),
        (pc.scalar(False) & (P == "a"), 0),
    ],
    ids=str,
)
def test_expressions_of_arrow_leave_out_partitions(filter: pc.Expression, files: int) -> None:
    counting = FaultyStore(evolved_table())
    table = opened(counting)
    found = table.to_table(filter=filter)
    expected = compile_filter(filter, table.schema).filter(all_rows())
    assert str(found.to_pylist()) == str(expected.to_pylist())
    assert len({call.path for call in counting.calls if call.path.endswith(".parquet")}) == files


def read_of(store: Store, filter: str | None, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """How many data files and row groups a scan reads, and how many bytes of data files."""
    groups, sizes = list[int](), list[int]()
    inner, iterate = FaultyStore.get_range, pq.ParquetFile.iter_batches

    def counted(self: FaultyStore, path: str, start: int, end: int) -> bytes:
        data = inner(self, path, start, end)
        sizes.append(len(data) if path.endswith(".parquet") else 0)
        return data

    def noted(self: pq.ParquetFile, size: int, row_groups: list[int], *rest: Any, **named: Any) -> Any:
        groups.extend(row_groups)
        return iterate(self, size, row_groups, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(FaultyStore, "get_range", counted)
        patch.setattr(pq.ParquetFile, "iter_batches", noted)
        counting = FaultyStore(store)
        opened(counting).to_table(filter=filter)
    return len({call.path for call in counting.calls if call.path.endswith(".parquet")}), len(groups), sum(sizes)


def test_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, before and after: a table of ten files of ten row groups, of which five have statistics."""
    store = new_store()
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64()), ("late", pa.int32())])
    create(store, schema)
    for number in range(10):
        ids = range(number * 1000, number * 1000 + 1000)
        rows = [ids, [f"{i:06}" for i in ids], [float(i) for i in ids], [None if i % 1000 < 500 else 1 for i in ids]]
        append(store, pa.table(rows, schema=schema), stats=["id"] if number % 2 else ())
    files, groups, size = read_of(store, None, monkeypatch)
    assert (files, groups) == (10, 100)
    for filter, expected in [
        ("id = 3333", (6, 1)),
        ("id between 2950 and 3050", (6, 2)),
        ("id in (1, 9999) and x < 100", (6, 1)),
        ("s >= '009900'", (10, 1)),
        ("'000100' > s", (10, 1)),
        ("x < 100", (10, 1)),
        ("x > 9900", (10, 100)),  # a NaN would match, and statistics do not tell of any
        ("id >= 9900 or s < '000100'", (10, 2)),
        ("late = 1", (10, 50)),
        ("late is not null and id < 2000", (6, 10)),
        ("late is null", (10, 100)),
        ("id % 2 = 0", (10, 100)),
        ("id < 0", (5, 0)),
        ("id > 100 and 1 = 0", (10, 99)),
    ]:
        found = read_of(store, filter, monkeypatch)
        assert found[:2] == expected, filter
        assert found[2] <= size * (1 if expected[1] > 10 else 0.6), filter
    assert opened(store).count_rows("id between 2950 and 3050") == 101
