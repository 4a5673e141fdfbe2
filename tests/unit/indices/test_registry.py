"""Kinds by name, and what each offers."""

from __future__ import annotations

import pytest

from tablewright.errors import InvalidRequest
from tablewright.format.index_kinds import INVERTED, SCALAR_KINDS, VECTOR
from tablewright.indices.registry import KindFunctions, by_name, offered


@pytest.mark.parametrize("kind", SCALAR_KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_its_name_and_its_label(kind):
    assert by_name(kind.name) is kind
    assert by_name(kind.name.lower()) is kind
    assert by_name(kind.label) is kind


@pytest.mark.parametrize("name", ["", "HASH", "IVF_PQ", "B-TREE"])
def test_other_names_are_refused_with_those_that_there_are(name):
    with pytest.raises(NotImplementedError, match="BTREE, BITMAP") as caught:
        by_name(name)
    assert isinstance(caught.value, InvalidRequest)


@pytest.mark.parametrize("kind", [INVERTED, VECTOR], ids=lambda kind: kind.name)
def test_kinds_of_other_writers_are_not_built(kind):
    assert offered(kind).build is None
    assert offered(kind).search is None


def test_nothing_is_offered_unless_said():
    assert KindFunctions().remap is None
