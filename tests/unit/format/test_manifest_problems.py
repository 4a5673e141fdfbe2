from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from tests.unit.format.samples import FILE, SCHEMA, fragment, index, manifest, stable_fragment

from tablewright.format.fragment import FragmentList
from tablewright.format.manifest import BasePath, Manifest
from tablewright.format.manifest_problems import problems_of_manifest
from tablewright.format.row_ids import RowIdSequence, VersionSequence, encode_row_ids, encode_versions
from tablewright.format.schema import Schema

OTHER_VERSION = replace(FILE, file_minor_version=1)
ON_BASE = replace(FILE, base_id=4)
NINE_IDS = encode_row_ids(RowIdSequence.from_range(0, 9))
NINE_VERSIONS = encode_versions(VersionSequence.constant(9, 1))


@pytest.mark.parametrize(
    "sound",
    [
        manifest(),
        manifest(fragments=FragmentList(), max_fragment_id=None),
        manifest(fragments=FragmentList(), max_fragment_id=7),
        manifest(fragment(5), fragment(2)),
        manifest(stable_fragment(0), stable_fragment(1), stable_row_ids=True, next_row_id=20),
        manifest(fragment(files=(ON_BASE,)), base_paths=(BasePath(id=4, path="x"),)),
        manifest(fragment(0), fragment(1, files=(OTHER_VERSION,)), reader_flags=256, writer_flags=256),
        manifest(fragment(files=(replace(FILE, file_major_version=0),)), data_storage_version="0.1"),
        manifest(indices=(index(), index(uuid=UUID(int=8)))),
        manifest(indices=(index(fields=(77,)),)),  # pylance may leave an index on a column that is gone
        manifest(version=(1 << 63) + 1),
    ],
)
def test_sound_ones_have_no_problems(sound: Manifest) -> None:
    assert problems_of_manifest(sound) == ()


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (manifest(version=0), "0 is no version number"),
        (manifest(version=-3), "-3 is no version number"),
        (manifest(next_row_id=-1), "next row id -1"),
        (manifest(max_fragment_id=0), "fragment 1 is above the highest fragment id 0"),
        (manifest(max_fragment_id=None), "fragment 1 is above the highest fragment id None"),
        (manifest(max_fragment_id=1 << 32), "highest fragment id 4294967296 does not fit 32 bits"),
        (manifest(fragment(1), fragment(1)), "fragment ids are used twice: 1"),
        (manifest(stable_fragment(0), fragment(1), stable_row_ids=True), "All fragments must have row ids: fragment 1"),
        (manifest(stable_fragment(0)), "Without stable row ids none may have any: fragment 0"),
        (manifest(stable_fragment(row_ids=NINE_IDS), stable_row_ids=True), "there are 9 row ids for 10 rows"),
        (manifest(stable_fragment(created_at=NINE_VERSIONS), stable_row_ids=True), "fragment 0: "),
        (manifest(stable_fragment(row_ids=b"\xff"), stable_row_ids=True), "fragment 0: the row ids"),
        (manifest(fragment(files=(ON_BASE,))), r"base paths that do not exist: \[4\]"),
        (manifest(indices=(index(base_id=3),)), r"base paths that do not exist: \[3\]"),
        (manifest(base_paths=(BasePath(id=4, path="x"),) * 2), "two base paths have the same id"),
        (manifest(fragment(files=(OTHER_VERSION,))), "data files have version 2.1, but the manifest default is 2.2"),
        (manifest(indices=(index(), index())), "two indices have the same uuid"),
        (manifest(indices=(index(fragment_bitmap=b"x"),)), "fragment bitmap is broken"),
        (manifest(schema=Schema(fields=(SCHEMA.fields[0],) * 2)), "field id 0 is used twice"),
        (manifest(fragment(files=(replace(FILE, fields=(0, -1)),))), "reserved field ids"),
        (manifest(fragment(physical_rows=(1 << 32) + 1)), "more rows than 32 bits of offsets"),
        (manifest(max_allocated_field_id=0), "field id 1 is above the highest one ever allocated, 0"),
        (manifest(reader_flags=256), "only one of the mixed data-file-version"),
    ],
)
def test_problems(broken: Manifest, problem: str) -> None:
    found = problems_of_manifest(broken)
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError("; ".join(found))


def test_all_problems_are_reported_at_once() -> None:
    broken = manifest(stable_fragment(3), version=0, max_fragment_id=1, indices=(index(base_id=3),))
    assert len(problems_of_manifest(broken)) == 4


def test_long_lists_of_fragments_are_cut_in_messages() -> None:
    many = FragmentList([b"\x08\x01"] * 10 + [b"\x08\x02\x20" + b"\xff" * 4 + b"\x7f"] * 10)
    assert problems_of_manifest(manifest(fragments=many, max_fragment_id=9))[:2] == (
        "fragment ids are used twice: 1, 2",
        "fragments 2, 2, 2, 2, 2, ... (10 in all) have more rows than 32 bits of offsets",
    )
