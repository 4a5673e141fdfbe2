"""Column files carried past a rewrite: the values of the rows, in their new order and places."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.transaction.crossings import crossed, sixteen_rows

from tablewright.data.read import read_fragment
from tablewright.data.write import write_data_file
from tablewright.format.fragment import DataFile
from tablewright.format.naming import data_path
from tablewright.format.schema import Schema
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.carry import ColumnFiles, carry_columns
from tablewright.transaction.crossing import Crossing, NotFollowed


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def base(request: pytest.FixtureRequest) -> Snapshot:
    return sixteen_rows(stable=request.param)


def column_file(base: Snapshot, schema: Schema, name: str, values: list[Any]) -> DataFile:
    wanted = schema.project_ids(schema.column_ids([name]))
    batch = pa.record_batch([pa.array(values, wanted.to_arrow().field(name).type)], names=[name])
    return write_data_file(base.world, wanted, [batch], "2.2")[0]


def read(crossing: Crossing, schema: Schema, name: str, carried: dict[int, DataFile]) -> dict[int, list[Any]]:
    wanted = schema.project_ids(schema.column_ids([name]))
    found = {}
    for id, file in carried.items():
        fragment = crossing.after.fragments.by_id(id).with_column_file(file)
        batches = read_fragment(crossing.after, fragment, schema, wanted, include_deleted=True)
        found[id] = [value for batch in batches for value in batch.column(0).to_pylist()]
    return found


def data_files(base: Snapshot) -> set[str]:
    return {info.path for info in base.world.store.list("data/")}


def test_values_of_others_come_from_the_new_fragment(base: Snapshot) -> None:
    schema = base.schema
    ours = {1: (column_file(base, schema, "s", ["a", "b", "dead", None]),)}
    crossing = crossed(base, [[0, 1, 2]])
    carried = carry_columns(base.world, crossing, ColumnFiles(ours, schema))
    first, second, third = (id for id in crossing.after.fragments.ids.tolist() if id > 3)
    assert read(crossing, schema, "s", carried) == {
        first: ["s0", "s2", "s3", "a"],
        second: ["b", None, "s8", "s9"],
    }, "the third one has no row of ours"
    assert third not in carried


def test_a_new_column_is_null_where_it_was_not_computed(base: Snapshot) -> None:
    after = Schema.from_arrow(pa.schema([*base.schema.to_arrow(), ("new", pa.int32())]))
    ours = {
        0: (column_file(base, after, "new", [0, -1, 2, 3]),),
        3: (column_file(base, after, "new", [12, 13, None, 15]),),
    }
    crossing = crossed(base, [[0, 2], [3]], rows_per_file=100)
    carried = carry_columns(base.world, crossing, ColumnFiles(ours, after))
    assert list(read(crossing, after, "new", carried).values()) == [
        [0, 2, 3, None, None, None, None],
        [12, 13, None, 15],
    ]


def test_files_of_other_fragments_are_left_alone(base: Snapshot) -> None:
    ours = {2: (column_file(base, base.schema, "s", list("abcd")),)}
    crossing = crossed(base, [[0, 1]])
    known = data_files(base)
    assert carry_columns(base.world, crossing, ColumnFiles(ours, base.schema)) == {}
    assert data_files(base) == known


def test_a_file_that_is_gone_ends_it_and_leaves_nothing(base: Snapshot) -> None:
    ours = {
        0: (column_file(base, base.schema, "s", list("abcd")),),
        3: (column_file(base, base.schema, "s", list("efgh")),),
    }
    crossing = crossed(base, [[0], [3]])
    base.world.store.delete(data_path(ours[3][0].path))
    known = data_files(base)
    with pytest.raises(NotFollowed, match="can't be read"):
        carry_columns(base.world, crossing, ColumnFiles(ours, base.schema))
    assert data_files(base) == known


def test_blobs_are_not_carried(base: Snapshot) -> None:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    after = Schema.from_arrow(pa.schema([*base.schema.to_arrow(), blob]))
    file = column_file(base, base.schema, "s", list("abcd"))
    named = DataFile(**{**{name: getattr(file, name) for name in DataFile.__slots__}, "fields": (2,)})
    with pytest.raises(NotFollowed, match="columns of blobs"):
        carry_columns(base.world, crossed(base, [[0, 1]]), ColumnFiles({0: (named,)}, after))
