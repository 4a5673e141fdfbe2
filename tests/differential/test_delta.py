"""``delta`` equals pylance's, over a history that both libraries made: rows, ids, transactions, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw

LAST = 12


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Twelve versions by turns, one of them restored, one compacted."""
    uri = str(tmp_path_factory.mktemp("delta") / "t.lance")
    rows = pa.table({"id": range(20), "a b": range(20), "st": [{"x": i} for i in range(20)]})
    tw.write_dataset(rows, uri, max_rows_per_file=6, enable_stable_row_ids=True)
    lance.dataset(uri).update({"a b": "`a b` + 100"}, where="id in (1, 7, 13)")
    tw.dataset(uri).delete("id in (2, 7)")
    more = pa.table({"id": [5, 20, 21], "a b": [1, 2, 3], "st": [{"x": 0}] * 3})
    for library in (tw, lance):
        builder = library.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        builder.execute(more)
    tw.dataset(uri).update({"a b": "0"}, where="id < 4", write_mode="rewrite_columns")
    lance.dataset(uri).delete("id in (3, 20)")
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=12)
    tw.dataset(uri, version=6).restore()
    tw.dataset(uri).add_columns({"twice": "id * 2"})
    while lance.dataset(uri).version < LAST:
        lance.dataset(uri).insert(pa.table({"id": [30], "a b": [1], "st": [{"x": 0}], "twice": [60]}))
    assert tw.dataset(uri).version == LAST
    return uri


def _told(delta: Any) -> tuple[list[Any], ...]:
    parts = [delta.get_inserted_rows(), delta.get_updated_rows(), delta.get_deleted_row_ids()]
    tables = [part.read_all() for part in parts]
    schemas = [[(field.name, field.type) for field in table.schema] for table in tables]
    return schemas, *(table.sort_by("_rowid").to_pylist() for table in tables)


@pytest.mark.parametrize("handle", [5, LAST])
def test_every_span_gives_what_pylance_gives(uri: str, handle: int) -> None:
    ours, theirs = tw.dataset(uri, version=handle), lance.dataset(uri, version=handle)
    for begin in range(0 if handle == LAST else 3, LAST + 1):
        if begin <= handle:
            assert _told(ours.delta(begin)) == _told(theirs.delta(begin)), begin
        for end in {max(begin, 1), begin + 1, begin + 4, LAST} & set(range(LAST + 1)):
            span = {"begin_version": begin, "end_version": end}
            assert _told(ours.delta(**span)) == _told(theirs.delta(**span)), span


def test_transactions_are_those_of_pylance(uri: str) -> None:
    ours = tw.dataset(uri).delta(begin_version=2, end_version=9).list_transactions()
    theirs = lance.dataset(uri).delta(begin_version=2, end_version=9).list_transactions()
    assert [each.uuid for each in ours if each] == [each.uuid for each in theirs]
    kinds = zip((type(each.operation).__name__ for each in ours if each), theirs, strict=True)
    assert all(type(each.operation).__name__ in (kind, "BaseOperation") for kind, each in kinds)
    assert tw.dataset(uri).delta(LAST).list_transactions() == lance.dataset(uri).delta(LAST).list_transactions() == []


def test_both_refuse_the_same_calls(uri: str, tmp_path: Path) -> None:
    calls = (
        {},
        {"begin_version": 1},
        {"end_version": 2},
        {"compared_against": "1"},
        {"begin_version": 1.5, "end_version": 2},
    )
    for call in calls:
        for library in (tw, lance):
            with pytest.raises((ValueError, TypeError)):
                library.dataset(uri).delta(**call)
    for library in (tw, lance):
        dataset = library.dataset(uri)
        with pytest.raises(ValueError, match="begin version 4 is newer than end version 2"):
            dataset.delta(begin_version=4, end_version=2).get_deleted_row_ids()
        with pytest.raises(ValueError, match=f"ersion {LAST + 1}"):
            dataset.delta(begin_version=1, end_version=LAST + 1).list_transactions()
