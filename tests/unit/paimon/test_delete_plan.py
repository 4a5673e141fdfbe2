"""What a delete decides, looked at before anything is written: a plan is a value, and its text says what it does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.paimon.tables import append, create, ids_of, new_store, numbers

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.deletion_vectors.paimon import walk_vector_file
from tablewright.format.row_set import RowSet
from tablewright.paimon.delete_plan import Growth, finish_delete, plan_delete
from tablewright.paimon.metadata import TableState, read_state
from tablewright.paimon.opening import open_in
from tablewright.paimon.places import Places
from tablewright.paimon.read import read_vector, stored_vectors
from tablewright.storage import Store
from tablewright.testing import FaultyStore, seeded_world


def staged(*, bucketed: bool) -> Store:
    """Four files of ten rows in two buckets or in none; of the first two a row is deleted."""
    store = new_store()
    create(store, numbers(0, 1).schema, options={"bucket": "2", "bucket-key": "id"} if bucketed else None)
    for number in range(4):
        append(store, numbers(number * 10, number * 10 + 10), bucket=number % 2 if bucketed else 0)
    for seed, id in enumerate((3, 14)):
        open_in(seeded_world(store, seed)).delete(f"id = {id}")
    return store


def grown(state: TableState, number: int, before: list[int], after: list[int]) -> Growth:
    return Growth(file=state.files[number], before=RowSet.of(before), after=RowSet.of(after))


@pytest.mark.parametrize("bucketed", [False, True], ids=["unaware", "bucketed"])
def test_which_index_files_give_way(bucketed: bool) -> None:
    """A bucket's one file is written whole; without buckets only files with vectors that grow are touched."""
    store = staged(bucketed=bucketed)
    state = read_state(store)
    assert state.snapshot is not None
    old = {range.data_file: file.name for file in state.index.files for range in file.ranges}
    first, second, third, _ = (file.name for file in state.files)
    growths = [grown(state, 2, [], [1, 2])]
    if not bucketed:
        growths.append(grown(state, 1, [4], [4, 5]))
    plan = plan_delete(state, Places(state, store), state.snapshot, growths)
    (bucket,) = plan.buckets
    assert plan.num_deleted_rows == (2 if bucketed else 3) and bucket.directory == "index"
    replaced, kept = [file.name for file in bucket.replaced], [name for _, _, name in plan.kept]
    assert (replaced, kept) == (([old[first]], [first]) if bucketed else ([old[second]], []))
    assert {*bucket.changed} == ({third} if bucketed else {third, second})

    vectors = stored_vectors(state, store)
    ending = finish_delete(
        plan,
        state,
        {key: read_vector(store, vectors[key]) for key in plan.kept},
        user="u",
        time_millis=0,
        unique=("x", "y", "z"),
    )
    names = [
        "index/index-x-0",
        "manifest/index-manifest-y-0",
        "manifest/manifest-list-y-0",
        "manifest/manifest-list-y-1",
    ]
    assert [file.path for file in ending.files] == names and ending.index_files == ("index/index-x-0",)
    positions = [vector.to_numpy().tolist() for _, vector in walk_vector_file(ending.files[0].data, "x")]
    assert positions == ([[3], [1, 2]] if bucketed else [[1, 2], [4, 5]])
    left = [range.data_file for file in ending.index.files for range in file.ranges]
    assert sorted(left) == sorted([first, second, third])
    assert (ending.snapshot.id, ending.snapshot.commit_user) == (state.snapshot.id + 1, "u")
    assert ending.snapshot.time_millis == state.snapshot.time_millis  # the clock is behind: time does not go back
    assert ids_of(store) == [i for i in range(40) if i not in (3, 14)]  # nothing of this is there


def test_explaining_a_delete() -> None:
    store = staged(bucketed=False)
    counting = FaultyStore(store)
    table = open_in(seeded_world(counting, 7))
    state = read_state(store)
    assert table.explain_delete("id in (3, 4, 25, 26)").splitlines() == [
        f"Delete: uri={store.location.uri}, snapshot=6",
        "  rows=3 of 2 data files, in 1 partitions or buckets",
        "  index files: replaces 1, carries 0 vectors on as they are",
        f"  {state.files[0].name}: 1 of 9 rows",
        f"  {state.files[2].name}: 2 of 10 rows",
        "  commits snapshot 7",
    ]
    assert table.explain_delete("id = 3").endswith("nothing matches: nothing is committed")
    assert not [call for call in counting.calls if call.method in ("put", "put_if_absent", "delete")]
    result = table.delete("id in (3, 4, 25, 26)")
    assert (result.num_deleted_rows, result.snapshot_id) == (3, 7)
    with pytest.raises(InvalidRequest, match="opened at snapshot 2"):
        open_in(seeded_world(store), 2).explain_delete("true")
    empty = new_store()
    create(empty, numbers(0, 1).schema)
    assert open_in(seeded_world(empty)).explain_delete("true").endswith("no snapshot yet")
    keyed = new_store()
    create(keyed, numbers(0, 1).schema, primary_keys=["id"])
    with pytest.raises(UnsupportedFeature, match="has a primary key"):
        open_in(seeded_world(keyed)).explain_delete("true")


def test_index_files_beside_data_that_lies_elsewhere() -> None:
    """Refused while planning: nothing was written."""
    store = new_store()
    create(store, numbers(0, 1).schema, options={"index-file-in-data-file-dir": "true"})
    append(store, numbers(0, 10), external="memory://plan-elsewhere/data")
    state = read_state(store)
    assert state.snapshot is not None
    with pytest.raises(UnsupportedFeature, match="does not write there"):
        plan_delete(state, Places(state, store), state.snapshot, [grown(state, 0, [], [1])])
    inside = replace(state.files[0], external_path=None)
    growth = Growth(file=inside, before=RowSet(), after=RowSet.of([1]))
    plan = plan_delete(state, Places(state, store), state.snapshot, [growth])
    assert plan.buckets[0].directory == "bucket-0"
