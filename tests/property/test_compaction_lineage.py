"""Any history, then a compaction: each row keeps its id and its versions, and sequences are stored compactly.

Others may write between the rewriting of the groups and their commit.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.depth import deep
from tests.property.row_model import (
    Append,
    Change,
    Delete,
    Model,
    Update,
    assert_reads_as,
    created,
    ids_in,
    new_rows,
    plus,
)

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.optimize import Compaction

_names = itertools.count()


@st.composite
def changes(draw: Any, model: Model, start: int) -> Change:
    some = ids_in(draw(st.sets(st.sampled_from(sorted(model.rows) or [0]), max_size=6)))
    kind = draw(st.sampled_from(["append", "delete", "rows", "columns"]))
    if kind == "append":
        return Append(new_rows(model, start, draw(st.integers(1, 5))), model)
    if kind == "delete":
        return Delete(some)
    return Update({"a": plus("a", 1)}, some, f"rewrite_{kind}")


def take(uri: str, model: Model, change: Change) -> Model:
    """Make the change; one that touches no row makes no version."""
    dataset = tw.dataset(uri)
    before = dataset.version
    change.run(tw, dataset)
    after = tw.dataset(uri).version
    return model if after == before else change.after(model, after)


@settings(max_examples=deep(12, 300), deadline=None)
@given(data=st.data(), stable=st.booleans(), rows=st.integers(2, 20), target=st.integers(3, 30))
def test_rows_keep_their_ids_and_versions(data: st.DataObject, stable: bool, rows: int, target: int) -> None:
    uri = f"memory://compaction-lineage-{next(_names)}"
    model = created(tw, uri, rows, per_file=3, stable=stable)
    for number in range(data.draw(st.integers(0, 4))):
        model = take(uri, model, data.draw(changes(model, 100 * (number + 1))))
    stale = tw.dataset(uri)
    options = {"target_rows_per_fragment": target, "materialize_deletions_threshold": 0}
    results = [task.execute(stale) for task in Compaction.plan(stale, options).tasks]
    for number in range(data.draw(st.integers(0, 2))):
        model = take(uri, model, data.draw(changes(model, 1000 * (number + 1))))
    metrics = Compaction.commit(stale, results)
    event(f"{metrics.fragments_removed > 0} hidden={metrics.rows_hidden > 0} carried={metrics.bytes_carried > 0}")
    assert metrics.groups_dropped == 0
    fresh = tw.dataset(uri)
    fresh.validate()
    assert_reads_as(fresh, model, stable=stable)
    for fragment in table_of(fresh).snapshot.fragments if stable else ():
        assert fragment.row_ids is not None
        ids = decode_row_ids(fragment.row_ids, "row ids", fragment.physical_rows)
        plain = RowIdSequence.from_values(np.asarray(ids.to_numpy(), np.uint64))
        assert len(fragment.row_ids) <= len(encode_row_ids(plain))


@settings(max_examples=deep(6, 100), deadline=None)
@given(rows=st.integers(10, 200), per_file=st.integers(3, 20), gone=st.sets(st.integers(0, 199), max_size=3))
def test_ids_that_come_together_are_ranges_again(rows: int, per_file: int, gone: set[int]) -> None:
    """As long as one range with a few holes would be, whatever number of fragments there was."""
    uri = f"memory://compaction-ranges-{next(_names)}"
    created(tw, uri, rows, per_file=per_file, stable=True)
    dataset = tw.dataset(uri)
    dataset.delete(ids_in(gone).sql)
    dataset.optimize.compact_files(materialize_deletions_threshold=0)
    live = np.array(sorted(set(range(rows)) - gone), np.uint64)
    fragments = list(table_of(dataset).snapshot.fragments)
    assert sum(fragment.physical_rows for fragment in fragments) == len(live)
    (fragment,) = fragments
    assert fragment.row_ids is not None and fragment.created_at is not None and fragment.last_updated_at is not None
    assert len(fragment.row_ids) <= len(encode_row_ids(RowIdSequence.from_values(live)))
    assert max(len(fragment.created_at), len(fragment.last_updated_at)) <= 24, "one run of one version"
