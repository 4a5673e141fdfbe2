"""Tables that Paimon's own writers made: Java 1.4.2 and pypaimon 2.1.0, kept as they were.

`java-pk` is a primary-key table with deletion vectors after two inserts that overlap and a delete, compacted by Java:
real merge-on-write. `java-wide` is an append table with 64-bit vectors, row 1 of each file deleted by Java. Of both,
what the newest snapshot needs was kept. `table` is an append table by pypaimon, in partitions.
"""

from __future__ import annotations

import shutil
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright.paimon as paimon
from tablewright.expressions import compile_filter
from tablewright.format.deletion_vectors.paimon import walk_vector_file
from tablewright.paimon.read import plan_read

GOLDEN = Path(__file__).parents[2] / "golden" / "paimon"
MOMENT = datetime(2023, 11, 14, 22, 13, 20)


def java_row(i: int) -> dict[str, Any]:
    """Row `i` as the Java program wrote it."""
    later = MOMENT + timedelta(milliseconds=i)
    return {
        "id": i,
        "s": None if i % 5 == 2 else f"row {i}",
        "p": i % 3,
        "x": i / 4,
        "dec": Decimal(i).scaleb(0).quantize(Decimal("0.01")),
        "d": date(1970, 1, 1) + timedelta(days=19000 + i),
        "ts": later + timedelta(microseconds=i),
        "ltz": later,
        "l": [i, None],
        "m": [("k", float(i))],
        "r": {"a": i, "b": f"z{i}"},
        "by": bytes([i]),
        "i8": i,
        "i16": i,
        "f": i * 1.5,
        "bo": i % 2 == 0,
        "ns": later,
        "t": (datetime(1970, 1, 1, 1) + timedelta(milliseconds=i)).time(),
    }


@pytest.mark.parametrize(
    ("name", "missing", "widths", "positions"),
    [("java-pk", {3}, [32], [[3, 15, 16, 17, 18, 19]]), ("java-wide", {1, 21}, [64, 64], [[1], [1]])],
)
def test_tables_of_java(name: str, missing: set[int], widths: list[int], positions: list[list[int]]) -> None:
    table = paimon.open(GOLDEN / name)
    rows = table.to_table().sort_by("id")
    assert (
        pa.compute.max(rows["ns"].cast(pa.int64())).as_py() % 1_000_000 == 123
    )  # Python's datetime has no nanoseconds
    expected = pa.Table.from_pylist([java_row(i) for i in range(30) if i not in missing], table.schema)
    nanos = expected.schema.get_field_index("ns")
    late = pa.compute.add(expected["ns"].cast(pa.int64()), 123).cast(pa.timestamp("ns"))
    assert rows.equals(expected.set_column(nanos, expected.schema.field(nanos), late))
    assert table.count_rows() == 30 - len(missing)
    vectors = table.deletion_vectors()
    assert sorted(found.vector.to_numpy().tolist() for found in vectors.values()) == positions
    (path,) = {found.path for found in vectors.values()}
    walked = walk_vector_file(Path(GOLDEN, name, path).read_bytes(), path)
    assert [place.width for place, _ in walked] == widths


@pytest.mark.parametrize("name", ["java-pk", "java-wide"])
def test_filters_on_tables_of_java(name: str) -> None:
    """Java's statistics, of files and of row groups, leave out files, and never a row."""
    table = paimon.open(GOLDEN / name)
    rows = table.to_table().combine_chunks().to_batches()[0]
    for filter, files in [
        ("id >= 20", 1),
        ("i8 < 3", 1),
        ("i16 = 100", 0),
        ("d = date '2022-01-08' and s is not null", 1),
        ("ts > timestamp '2023-11-14 22:13:20.025'", 2),
        ("s = 'row 4' or s > 'row 8'", 2),
        ("ns >= timestamp '2023-11-14 22:13:20.028' and ltz < now()", 2),
        ("x < 1.0 and f > 0", 2),
        ("dec in (3.00, 29)", 2),
        ("r.a > 25 and bo", 2),
    ]:
        expected = compile_filter(filter, table.schema).filter(rows)
        found = table.to_table(filter=filter)
        assert found.equals(pa.Table.from_batches([expected])) and found.num_rows == table.count_rows(filter), filter
        assert (found.num_rows > 0) == (files > 0), filter
        assert len(plan_read(table._state, table._store, None, filter).files) == files, filter


def test_deleting_from_a_table_of_java(tmp_path: Path) -> None:
    """Manifests in Java's own Avro schemas are carried on; both vectors come into the new file, 64 bits wide."""
    path = shutil.copytree(GOLDEN / "java-wide", tmp_path / "wide")
    table = paimon.open(path)
    before = table.snapshot
    assert before is not None and before.document["nextRowId"] == 0
    result = table.delete("id in (0, 1, 2)")
    assert (result.num_deleted_rows, result.snapshot_id) == (2, before.id + 1)
    again = paimon.open(path)
    assert sorted(again.to_table()["id"].to_pylist()) == [i for i in range(30) if i not in (0, 1, 2, 21)]
    widths = [place.width for file in result.files for place, _ in walk_vector_file((path / file).read_bytes(), file)]
    assert widths == [64, 64] and len(again.deletion_vectors()) == 2
    assert again.snapshot is not None and again.snapshot.document["nextRowId"] == 0


def test_a_table_of_pypaimon() -> None:
    table = paimon.open(GOLDEN / "table")
    assert table.partition_keys == ("year",) and table.count_rows() == 12
    assert table.to_table(filter="year = 2024")["id"].to_pylist() == [1, 3, 5, 7]
    assert [file.partition for file in table.files()] == [{"year": 2024}, {"year": 2025}, {"year": 2025}]
