"""engine/groups.py: messages come before rows, groups open and close, whatever the batches are."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from tablewright.engine.groups import MESSAGE, ROW, add_values, finish_values

SCHEMA = pa.schema(
    [("partition", pa.int32()), ("group", pa.binary()), ("side", pa.int32()), ("position", pa.int32()),
     ("message", pa.binary()), ("name", pa.string())]
)  # fmt: skip
ROWS = [
    (0, b"a", MESSAGE, 0, b"x", None),
    (0, b"a", MESSAGE, 1, b"y", None),
    (0, b"a", ROW, 5, None, "one"),
    (0, b"a", ROW, 5, None, "two"),
    (0, b"b", MESSAGE, 0, b"no rows", None),
    (0, b"c", ROW, 1, None, "three"),
    (1, b"a", ROW, 7, None, "four"),
    (1, b"a", ROW, 9, None, "five"),
    (1, b"z", MESSAGE, 2, b"no rows", None),
]


class Sums:
    """Adds up positions; the messages of the group come first."""

    opened: list[tuple[int, bytes, list[bytes]]]

    def __init__(self, *opened: Any) -> None:
        self.opened = list(opened)
        self.total = 0

    def add(self, positions: pa.Array) -> pa.Array:
        totals = list(itertools.accumulate(positions.to_pylist(), initial=self.total))
        self.total = totals[-1]
        return pa.array(totals[1:], pa.int64())

    def finish(self) -> tuple[Any, int]:
        return self.opened[2], self.total


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:-1]], ids=["a message last", "a row last"])
def test_groups_go_by(rows: list[tuple[Any, ...]], size: int) -> None:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    batches = pa.Table.from_arrays(columns, schema=SCHEMA).to_batches(size)
    given = pa.Table.from_batches(add_values(Sums, iter(batches), "sum", first=5))
    assert given.to_pydict() == {"name": ["one", "two", "three", "four", "five"], "sum": [5, 10, 1, 7, 16]}
    assert finish_values(Sums, iter(batches)) == [
        (0, b"a", ([b"x", b"y"], 10)),
        (0, b"c", ([], 1)),
        (1, b"a", ([], 16)),
    ]


def test_no_rows() -> None:
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in SCHEMA], schema=SCHEMA)
    assert list(add_values(Sums, iter([nothing]), "sum", first=5)) == []
    assert finish_values(Sums, iter([])) == finish_values(Sums, iter([nothing])) == []
