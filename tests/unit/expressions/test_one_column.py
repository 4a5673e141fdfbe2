"""Filters on one column are recognised where they are plain, and mean what the compiler makes of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.expressions.conditions import Leaf, normal_form
from tablewright.expressions.filters import compile_filter
from tablewright.expressions.one_column import OneColumn, recognise, same_query
from tablewright.expressions.queries import Between, IsIn
from tablewright.expressions.sql_conditions import conditions_of

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int8()),
        ("big", pa.uint64()),
        ("name", pa.string()),
        ("long", pa.large_string()),
        ("x", pa.float64()),
        ("at", pa.timestamp("us")),
    ]
)

PLAIN = [
    "id = 7",
    "  id=7\n",
    "id = -7",
    "id=-7",
    "id = 007",
    "id IN (3, 4)",
    "id in(3,-4 , 3)",
    "id In ( 5 )",
    "id < 5",
    "id <= 5",
    "id > 5",
    "id >=-5",
    "id BETWEEN -3 AND 9",
    "id between 9 and 3",
    "id >= 3 AND id < 9",
    "id<9 and id>3",
    "small IN (1, 2, 127)",
    "big > 5",
    "name = 'a b'",
    "name IN ('a', 'b, c', '')",
    "name >= 'a' AND name < 'b'",
    "long BETWEEN 'a' AND 'b'",
    "id IN (" + ", ".join(map(str, range(40))) + ")",
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_filter_means_what_the_compiler_makes_of_it(text: str) -> None:
    leaf = normal_form(conditions_of(compile_filter(text, SCHEMA), SCHEMA))
    assert isinstance(leaf, Leaf) and leaf.exact and not leaf.negated
    found = recognise(text)
    assert found is not None and (found.column,) == leaf.path
    query = found.query(SCHEMA.field(found.column).type)
    assert query is not None and same_query(query, leaf.query)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id = 7 OR id = 8",
        "NOT id = 7",
        "id != 7",
        "id = 7;",
        "id = 7 -- seven",
        "id = 1.5",
        "id = 1e3",
        "id = 0x10",
        "id = 12345678901234567890",
        "id = id2",
        "7 = id",
        "id >-5",
        "id IN ()",
        "id IN (1, NULL)",
        "id IN (1, 'a')",
        "idIN (1)",
        "id NOT IN (1)",
        "id = 1 AND id = 2",
        "id > 1 AND id > 2",
        "id > 1 AND other < 2",
        "id > 1 AND id < 5 AND id < 9",
        "id BETWEEN 1 AND 5 AND id < 3",
        "id BETWEEN 1 AND 'a'",
        "id=1and id=2",
        "name = 'it''s'",
        "name = 'a' 'b'",
        'name = "a"',
        '"id" = 7',
        "s.id = 7",
        "name = 'a\\'",
        "id = 7\u00a0",
    ],
)
def test_all_else_is_left_to_the_parser(text: str) -> None:
    assert recognise(text) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("small = 128", pa.int8()),
        ("small IN (1, 300)", pa.int8()),
        ("small < 300", pa.int8()),
        ("big > -1", pa.uint64()),
        ("x = 5", pa.float64()),
        ("at = 5", pa.timestamp("us")),
        ("at = '2020-01-01'", pa.timestamp("us")),
        ("id = '5'", pa.int64()),
        ("name = 5", pa.string()),
        ("flag = 1", pa.bool_()),
        ("id > 5", pa.null()),
    ],
)
def test_literals_that_do_not_fit_the_column_make_no_query(text: str, kind: pa.DataType) -> None:
    found = recognise(text)
    assert found is not None and found.query(kind) is None


def test_a_shape_does_not_depend_on_literals() -> None:
    shapes = [recognise(text) for text in ("id = 7", "id IN (8, 9)", "id > 7", "id > 8", "id = 'a'", "other = 7")]
    one, several, above, higher, text, other = [None if each is None else each.shape for each in shapes]
    assert one == several and above == higher
    assert len({one, above, text, other}) == 4


def test_queries_are_compared_by_their_values() -> None:
    some, others = OneColumn("id", (1, 2)).query(pa.int64()), OneColumn("id", (1, 3)).query(pa.int64())
    assert some is not None and others is not None
    assert same_query(some, IsIn(pa.array([1, 2], pa.int64()))) and not same_query(some, others)
    assert not same_query(some, IsIn(pa.array([1, 2], pa.int32())))
    low = Between(low=pa.scalar(1))
    assert same_query(low, Between(low=pa.scalar(1))) and not same_query(
        low, Between(low=pa.scalar(1), low_inclusive=False)
    )
    assert not same_query(low, some)
