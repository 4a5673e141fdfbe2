"""What a segment is built from."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pytest
from tests.unit.operations.create_index.tables import snapshot_of, table

from tablewright.format.index_kinds import BTREE
from tablewright.format.schema import Schema
from tablewright.operations.create_index.options import IndexRequest
from tablewright.operations.create_index.plan import plan_index
from tablewright.operations.create_index.segment import IndexPlan, plain_type


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (pa.int8(), pa.int8()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    ],
)
def test_values_are_indexed_in_their_plain_type(given, plain):
    assert plain_type(Schema.from_arrow(pa.schema({"x": given})), 0) == plain


@pytest.mark.parametrize("stable", [False, True])
def test_the_plan_of_a_build_has_all_that_a_kind_needs(stable):
    snapshot = snapshot_of(table(stable=stable))
    (segment,) = plan_index(snapshot, IndexRequest(column="a.b", kind=BTREE, settings={"zone_size": 7})).segments
    plan = segment.build_plan(snapshot, UUID(int=3), ())
    assert (plan.path, plan.field_id, plan.type, plan.stable) == (("a", "b"), segment.field_id, pa.int64(), stable)
    assert plan.directory == "_indices/00000000-0000-0000-0000-000000000003"
    assert (plan.version, plan.settings, len(plan.fragments)) == (1, {"zone_size": 7}, 3)


def test_a_plan_says_what_it_does():
    assert str(IndexPlan()) == "Indices\n  nothing to do"
    assert str(IndexPlan(left_alone={"v_idx": "it is a vector index"})).endswith(
        "left alone: v_idx: it is a vector index"
    )
