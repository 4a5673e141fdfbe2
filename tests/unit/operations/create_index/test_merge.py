"""How indices catch up: what is read, what is kept, what becomes one segment."""

from __future__ import annotations

import pytest
from tests.unit.operations.create_index.tables import rows, snapshot_of, table

from tablewright.errors import IndexNotFound, InvalidRequest, WrongType
from tablewright.operations.create_index.merge import OptimizeOptions, plan_optimize


def planned(dataset, **options):
    return plan_optimize(snapshot_of(dataset), OptimizeOptions(**options))


def with_segments(dataset, count):
    """An index with this many segments, over one fragment each from the second on."""
    dataset.create_scalar_index("id", "BTREE")
    for number in range(1, count):
        dataset.insert(rows(100 * number, 100 * number + 5))
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    return dataset


def shape(segment):
    """Fragments read, fragments kept by segment, segments removed."""
    kept = [sorted(each.fragment_ids) for each in segment.kept]
    return sorted(segment.read.ids.tolist()), kept, len(segment.removed)


@pytest.mark.parametrize("merges", [None, 0, 1])
def test_nothing_new_is_nothing_to_do(merges):
    assert planned(with_segments(table(), 1), num_indices_to_merge=merges).segments == ()


@pytest.mark.parametrize(
    ("merges", "expected"),
    [
        (None, ([5], [[0, 1, 2], [3], [4]], 3)),
        (0, ([5], [], 0)),
        (1, ([5], [[4]], 1)),
        (2, ([5], [[3], [4]], 2)),
        (9, ([5], [[0, 1, 2], [3], [4]], 3)),
    ],
)
def test_the_newest_segments_are_merged_with_what_is_new(merges, expected):
    dataset = with_segments(table(), 3)
    dataset.insert(rows(900, 905))
    (segment,) = planned(dataset, num_indices_to_merge=merges).segments
    assert shape(segment) == expected


@pytest.mark.parametrize(("merges", "count"), [(None, 3), (2, 2), (1, 0), (0, 0)])
def test_segments_become_one_also_if_nothing_is_new(merges, count):
    plan = planned(with_segments(table(), 3), num_indices_to_merge=merges)
    assert [len(segment.removed) for segment in plan.segments] == [count] * bool(count)


@pytest.mark.parametrize("merges", [None, 0, 1])
def test_row_ids_of_moved_rows_make_all_segments_one(merges):
    """Trap T1."""
    dataset = table(stable=True)
    dataset.create_scalar_index("id", "BTREE")
    dataset.update({"id": "7000"}, where="id = 7", write_mode="rewrite_rows")
    (segment,) = planned(dataset, num_indices_to_merge=merges).segments
    assert shape(segment) == ([3], [[0, 1, 2]], 1)


def test_values_that_were_rewritten_in_place_make_all_segments_one():
    """Trap T16: the fragment left the coverage, and its old values are still in the file."""
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    dataset.update({"id": "id + 7000"}, where="id >= 10 and id < 20", write_mode="rewrite_columns")
    (segment,) = planned(dataset, num_indices_to_merge=0).segments
    assert shape(segment) == ([1], [[0, 2]], 1)


def test_deleted_fragments_and_untrained_segments_go():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE", train=False)
    (segment,) = planned(dataset, num_indices_to_merge=0).segments
    assert shape(segment) == ([0, 1, 2], [], 1)
    dataset.optimize.optimize_indices()
    dataset.delete("id < 10")
    dataset.insert(rows(100, 105))
    (segment,) = planned(dataset).segments
    assert shape(segment) == ([3], [[1, 2]], 1)
    assert sorted(segment.coverage) == [1, 2, 3]


def test_retraining_reads_everything():
    dataset = with_segments(table(), 2)
    (segment,) = planned(dataset, retrain=True, num_indices_to_merge=0).segments
    assert shape(segment) == ([0, 1, 2, 3], [], 2)


def test_some_indices_are_chosen():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("s", "BTREE")
    dataset.insert(rows(100, 105))
    assert [segment.name for segment in planned(dataset, index_names=("s_idx",)).segments] == ["s_idx"]
    assert planned(dataset, index_names=()).segments == ()
    assert len(planned(dataset).segments) == 2
    assert "name=id_idx, type=BTREE, column=id, fragments_read=1, rows_read=5, fragments_kept=3" in str(
        planned(dataset)
    )
    with pytest.raises(IndexNotFound, match="nope"):
        planned(dataset, index_names=("s_idx", "nope"))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"index_names": "id_idx"}, WrongType),
        ({"index_names": (3,)}, WrongType),
        ({"num_indices_to_merge": -1}, InvalidRequest),
        ({"num_indices_to_merge": "a"}, WrongType),
        ({"retrain": 1}, WrongType),
    ],
)
def test_wrong_options(options, error):
    with pytest.raises(error):
        OptimizeOptions(**options)
