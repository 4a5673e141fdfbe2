"""What has become of a fragment, by two manifests and the transactions between them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.format.samples import DELETION, FILE, fragment

from tablewright.format.fragment import TOMBSTONE, DataFile, Fragment, FragmentList
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Append, DataReplacement, DataReplacementGroup, Delete, Update, UpdateMode
from tablewright.transaction.drift import Drift, Meanwhile, drifts


def file(path: str, *fields: int) -> DataFile:
    return replace(FILE, path=path, fields=fields, column_indices=tuple(range(len(fields))))


BEFORE = fragment(files=(file("a", 0, 1),))
REWRITTEN = fragment(files=(file("a", 0, TOMBSTONE), file("b", 1)))


@pytest.mark.parametrize(
    ("after", "known", "deletions", "rewritten", "added"),
    [
        (BEFORE, set(), False, set(), set()),
        (None, {0, 1}, False, set(), set()),
        (replace(BEFORE, deletion=DELETION), set(), True, set(), set()),
        (REWRITTEN, {0, 1}, False, {1}, set()),
        (fragment(files=(replace(file("a", 0, 1), base_id=4),)), {0, 1}, False, {0, 1}, set()),
        (fragment(files=(*BEFORE.files, file("c", 2))), {0, 1}, False, set(), {2}),
        (fragment(files=(*BEFORE.files, file("c", 2))), {0, 1, 2}, False, {2}, set()),
        (fragment(files=(file("a", 0, TOMBSTONE),)), {0, 1}, False, set(), set()),
    ],
    ids=["nothing", "removed", "deleted", "patched", "moved", "added", "filled", "dropped"],
)
def test_a_fragment_then_and_now(
    after: Fragment | None, known: set[int], deletions: bool, rewritten: set[int], added: set[int]
) -> None:
    drift = Drift(BEFORE, after, frozenset(known))
    assert (drift.has_new_deletions, drift.rewritten, drift.added) == (deletions, rewritten, added)


def test_only_what_changed_has_drifted() -> None:
    base = FragmentList.of([fragment(id) for id in range(4)])
    newest = FragmentList.of([fragment(0), fragment(1, deletion=DELETION), fragment(3), fragment(9)])
    found = drifts([3, 2, 1, 0], base, newest)
    assert list(found) == [1, 2]
    assert found[1].has_new_deletions and found[2].after is None


def columns(id: int, offsets: set[int] | None) -> Update:
    known = {} if offsets is None else {id: RowSet.of(offsets)}
    return Update(
        updated_fragments=(fragment(id),), update_mode=UpdateMode.REWRITE_COLUMNS, updated_fragment_offsets=known
    )


def test_transactions_in_between_add_up() -> None:
    both = Meanwhile().then(columns(1, {1})).then(Append(fragments=())).then(columns(1, {4})).then(columns(2, {7}))
    assert both.patched == {1: RowSet.of([1, 4]), 2: RowSet.of([7])}
    unknown = both.then(columns(1, None)).then(columns(1, {5}))
    assert unknown.patched == {1: None, 2: RowSet.of([7])}
    replaced = DataReplacement(replacements=(DataReplacementGroup(fragment_id=2, new_file=FILE),))
    assert both.then(replaced).patched[2] is None


def test_gone_rows_were_deleted_for_certain_where_none_moved() -> None:
    meanwhile = Meanwhile().then(Delete(updated_fragments=(fragment(1), fragment(2))))
    assert [meanwhile.only_deleted_from(id) for id in (1, 2, 3)] == [True, True, False]
    moved = meanwhile.then(Update(updated_fragments=(fragment(2),)))
    assert [moved.only_deleted_from(id) for id in (1, 2)] == [True, False]
