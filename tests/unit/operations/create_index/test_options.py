"""What can be asked of a new index."""

from __future__ import annotations

import pytest

from tablewright.errors import InvalidRequest, WrongType
from tablewright.format.index_kinds import BITMAP, BLOOMFILTER, BTREE, ZONEMAP
from tablewright.operations.create_index.options import IndexRequest


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (ZONEMAP, {"rows_per_zone": 5}),
        (BLOOMFILTER, {"number_of_items": 5, "probability": 0.1}),
        (BTREE, {"zone_size": 100}),
        (BITMAP, {}),
    ],
)
def test_parameters_of_a_kind_are_taken(kind, settings):
    assert IndexRequest(column="id", kind=kind, settings=settings).settings == settings


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (ZONEMAP, {"rows_per_zone": 0}, "at least 1"),
        (ZONEMAP, {"rows_per_zone": 1 << 40}, "at most"),
        (ZONEMAP, {"number_of_items": 5}, "ZONEMAP has no parameter number_of_items. It has rows_per_zone."),
        (BITMAP, {"x": 5}, "It has none."),
        (BLOOMFILTER, {"probability": 1.5}, "between 0 and 1"),
    ],
)
def test_others_are_refused(kind, settings, words):
    with pytest.raises(InvalidRequest, match=words):
        IndexRequest(column="id", kind=kind, settings=settings)


@pytest.mark.parametrize(
    "arguments",
    [
        {"column": 3},
        {"name": 3},
        {"replace": "yes"},
        {"train": 1},
        {"fragment_ids": 3},
        {"fragment_ids": ("a",)},
        {"settings": {"probability": "x"}, "kind": BLOOMFILTER},
        {"settings": {"rows_per_zone": 1.5}, "kind": ZONEMAP},
    ],
)
def test_wrong_types_are_refused(arguments):
    with pytest.raises(WrongType):
        IndexRequest(**{"column": "id", "kind": BTREE} | arguments)


@pytest.mark.parametrize("name", ["", "__lance_mine"])
def test_names_of_the_format_are_refused(name):
    with pytest.raises(InvalidRequest, match=r"(?i)name"):
        IndexRequest(column="id", kind=BTREE, name=name)
