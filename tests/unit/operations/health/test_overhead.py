"""The measured scan: which rows, which column, and that it stays in its bounds."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.format.schema import Schema
from tablewright.operations.health.options import HealthOptions
from tablewright.operations.health.overhead import measure_overhead, narrowest_column
from tablewright.testing.worlds import SeededClock

SECOND_NS = 1_000_000_000


def _name(schema: pa.Schema) -> str | None:
    column = narrowest_column(Schema.from_arrow(schema))
    return None if column is None else column.name


def test_the_narrowest_column_is_read() -> None:
    assert _name(pa.schema([("s", pa.string()), ("a", pa.int64()), ("b", pa.int16()), ("c", pa.int16())])) == "b"
    assert _name(pa.schema([("s", pa.string()), ("l", pa.list_(pa.int8()))])) == "s"
    assert _name(pa.schema([])) is None
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    assert _name(pa.schema([blob])) is None


def test_rows_are_counted_with_and_without_deleted_ones() -> None:
    ds = tw.write_dataset({"id": range(1000)}, "memory://overhead", mode="overwrite", max_rows_per_file=100)
    ds.delete("id % 10 = 0 and id < 500")
    found = measure_overhead(table_of(ds).snapshot, HealthOptions())
    assert found is not None
    assert (found.column, found.fragments, found.rows, found.deleted_rows) == ("id", 5, 500, 50)
    assert found.ratio > 0


def test_it_stays_in_its_bounds() -> None:
    ds = tw.write_dataset({"id": range(1000)}, "memory://overhead-bounds", mode="overwrite", max_rows_per_file=100)
    ds.delete("id % 10 = 0")
    snapshot = table_of(ds).snapshot
    found = measure_overhead(snapshot, HealthOptions(sample_rows=130))
    assert found is not None
    assert (found.fragments, found.rows, found.deleted_rows) == (2, 130, 13)
    clock = SeededClock(step_ns=SECOND_NS)
    slow = replace(snapshot, world=replace(snapshot.world, clock=clock))
    begin = clock.monotonic()
    found = measure_overhead(slow, HealthOptions(sample_seconds=2))
    assert found is not None
    assert (found.plain_seconds, found.applied_seconds, found.load_seconds) == (1.0, 1.0, 1.0)
    assert clock.monotonic() - begin < 10


def test_nothing_to_measure() -> None:
    ds = tw.write_dataset({"id": range(10)}, "memory://overhead-none", mode="overwrite")
    assert measure_overhead(table_of(ds).snapshot, HealthOptions()) is None
    assert ds.health(sample=False).read_overhead is None


def test_a_missing_file_is_not_measured() -> None:
    ds = tw.write_dataset({"id": range(10)}, "memory://overhead-missing", mode="overwrite")
    ds.delete("id < 3")
    snapshot = table_of(ds).snapshot
    for info in list(snapshot.world.store.list("data")):
        snapshot.world.store.delete(info.path)
    assert measure_overhead(snapshot, HealthOptions()) is None
    assert ds.health().bytes.missing_files == 1
