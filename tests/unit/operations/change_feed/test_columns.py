"""Fields of an earlier version under the names and types of a later one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.format.schema import Schema
from tablewright.operations.change_feed.columns import fit_rows, nullable_schema, shared_ids, side_schema

OLD = Schema.from_arrow(
    pa.schema(
        {"id": pa.int64(), "n": pa.int32(), "st": pa.struct({"x": pa.int64(), "y": pa.string()}), "gone": pa.date32()}
    )
)


def _with(
    *changes: tuple[int, dict[str, object]], schema: Schema = OLD, dropped: frozenset[int] = frozenset()
) -> Schema:
    """A schema with some nodes changed, by id."""
    by_id = dict(changes)
    nodes = (replace(node, **by_id.get(node.id, {})) for node in schema.fields if node.id not in dropped)  # type: ignore[arg-type]
    return Schema(fields=tuple(nodes))


def _sides(
    feed: Schema, others: frozenset[int] = frozenset(), origins: dict[int, int] | None = None
) -> list[tuple[str, str, int | None]]:
    found = side_schema(OLD, feed, others, origins or {})
    return [(node.name, node.logical_type, node.id if OLD.has(node.id) else None) for node in found.fields]


def test_renamed_fields_keep_their_id_and_dropped_ones_are_not_there() -> None:
    feed = _with((1, {"name": "m"}), (3, {"name": "z"}), dropped=frozenset({5}))
    assert _sides(feed) == [
        ("id", "int64", 0),
        ("m", "int32", 1),
        ("st", "struct", 2),
        ("z", "int64", 3),
        ("y", "string", 4),
    ]
    assert shared_ids(OLD, feed) == {0, 1, 2, 3, 4}
    # the id was given to another field meanwhile
    assert _sides(feed, frozenset({1}))[1] == ("m", "int32", None)


def test_cast_fields_come_as_they_were() -> None:
    feed = _with((1, {"id": 8, "logical_type": "int64"}), (4, {"id": 9, "logical_type": "large_string"}))
    assert _sides(feed, origins={8: 1, 9: 4})[1] == ("n", "int32", 1)
    assert _sides(feed, origins={8: 1, 9: 4})[4] == ("y", "string", 4)
    # a type that nothing can be cast to is another column
    boolean = _with((5, {"id": 8, "logical_type": "bool"}))
    assert _sides(boolean, origins={8: 5})[5] == ("gone", "bool", None)


def test_a_name_alone_is_no_counterpart() -> None:
    feed = _with((1, {"id": 8}), (4, {"id": 9}))
    assert _sides(feed)[1] == ("n", "int32", None)
    assert _sides(feed)[4] == ("y", "string", None)


def test_a_name_that_moved_to_another_field_is_not_followed() -> None:
    feed = _with((1, {"name": "m"}))
    feed = Schema(fields=(*feed.fields, replace(OLD.by_id(1), id=7)))  # a new `n` beside the old one, now `m`
    assert _sides(feed)[1] == ("m", "int32", 1)
    assert _sides(feed)[-1] == ("n", "int32", None)


def test_columns_and_members_may_be_null_and_items_stay() -> None:
    item = pa.field("item", pa.int64(), nullable=False)
    strict = pa.schema([pa.field("a", pa.struct([pa.field("b", pa.int64(), nullable=False)]), nullable=False)])
    relaxed = nullable_schema(
        Schema.from_arrow(strict.append(pa.field("l", pa.list_(item), nullable=False)))
    ).to_arrow()
    assert relaxed.field("a").nullable
    assert relaxed.field("a").type.field("b").nullable
    assert relaxed.field("l").nullable
    assert not relaxed.field("l").type.value_field.nullable


def test_values_are_cast_or_the_column_is_named() -> None:
    wide = pa.schema({"n": pa.int64()})
    assert fit_rows(pa.record_batch({"n": pa.array([1], pa.int8())}), wide, 3).to_pylist() == [{"n": 1}]
    with pytest.raises(InvalidRequest, match=r'"n".*version 3.*columns='):
        fit_rows(pa.record_batch({"n": [300]}), pa.schema({"n": pa.int8()}), 3)
