"""Which fragments two versions do not share: told by bytes, and without decoding what is the same."""

from __future__ import annotations

from dataclasses import replace

from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.operations.change_feed.touched import different, touched

SHARED = frozenset({0, 7})


def _fragment(id: int, *, path: str = "a.lance", updated: bytes = b"", deleted: int = 0) -> Fragment:
    deletion = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=1, id=deleted, num_deleted_rows=deleted)
    return Fragment(
        id=id,
        files=(DataFile(path=path, fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=1),),
        physical_rows=10,
        deletion=deletion if deleted else None,
        row_ids=b"\n\x04\n\x02\x10\n",
        last_updated_at=updated,
    )


def test_what_is_the_same_is_not_even_decoded() -> None:
    raw = FragmentList.of(_fragment(id) for id in range(1000)).raw
    before, after = FragmentList(raw), FragmentList([*raw[:500], *raw[501:], raw[0][:0] + raw[500]])
    assert [len(each) for each in different(before, after)] == [0, 0]
    after = FragmentList(raw).replaced({7: _fragment(7, deleted=1)}, [8]).appended([_fragment(1000)])
    gone, came = different(before, after)
    assert ([before.ids[at] for at in gone], [after.ids[at] for at in came]) == ([7, 8], [7, 1000])
    found = touched(before, after, SHARED)
    assert (found.before.tolist(), found.after.tolist()) == ([7, 8], [7, 999])
    assert not found.silent
    assert sorted(before._known) == [7]


def test_files_that_changed_without_a_word_are_silent() -> None:
    before = FragmentList.of([_fragment(0), _fragment(1), _fragment(2)])
    spoken, quiet = _fragment(0, path="b.lance", updated=b"\n\x00"), _fragment(1, path="b.lance")
    found = touched(before, FragmentList.of([spoken, quiet, _fragment(2)]), SHARED)
    assert found.after.tolist() == [0, 1]
    assert found.silent == {1}


def test_a_file_for_a_column_of_nulls_is_silent_and_one_of_a_column_that_came_back_is_not() -> None:
    before = FragmentList.of([_fragment(0), _fragment(1)])
    more = [
        fragment.with_column_file(replace(fragment.files[0], path="n.lance", fields=(field,)))
        for fragment, field in ((before[0], 7), (before[1], 8))
    ]
    found = touched(before, FragmentList.of(more), SHARED)
    assert (found.silent, found.after.tolist()) == ({0}, [0])


def test_metadata_that_say_nothing_about_rows_are_left_out() -> None:
    before = FragmentList.of([_fragment(0)])
    renamed = replace(_fragment(0), clustering_id=4)
    assert touched(before, FragmentList.of([renamed]), SHARED).before.tolist() == []
