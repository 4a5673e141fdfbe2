"""What must hold for a manifest, checked before every write and after every read by the same function.

All fragments are checked through their columns (``FragmentList.facts``); only the new ones are decoded one by one.

Format: ``docs/format/table.md#manifest-fields``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tablewright.errors import CorruptTable
from tablewright.format.flags import MIXED_FILE_VERSIONS, problems_of_flags
from tablewright.format.fragment import Fragment, problems_of_fragment
from tablewright.format.index import problems_of_index
from tablewright.format.manifest import Manifest
from tablewright.format.row_ids import decode_row_ids
from tablewright.format.row_versions import check_versions
from tablewright.format.schema import problems_of_schema

__all__ = ["problems_of_lineage", "problems_of_manifest"]

_U64_MAX = (1 << 64) - 1
_U32_MAX = (1 << 32) - 1
_FILE_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_FIRST_V2_MAJOR = 2
_FEW_BYTES = 1024


def problems_of_manifest(manifest: Manifest) -> tuple[str, ...]:
    """Every rule that this manifest breaks, in words; empty if it is sound.

    Cheap for any number of fragments: those that were read as bytes are judged by their columns here and one by one
    when they are decoded.
    """
    return (
        *problems_of_schema(manifest.schema),
        *_problems_of_numbers(manifest),
        *_problems_of_fragments(manifest),
        *_problems_of_bases(manifest),
        *_problems_of_file_versions(manifest),
        *_problems_of_indices(manifest),
        *problems_of_flags(manifest),
        *problems_of_lineage(manifest),
    )


def problems_of_lineage(manifest: Manifest) -> tuple[str, ...]:
    """What is wrong with row ids and row versions of the fragments that changed; the others keep their bytes."""
    fragments = manifest.fragments
    return tuple(
        problem for position in sorted(fragments.fresh) for problem in _problems_of_sequences(fragments[position])
    )


def _problems_of_numbers(manifest: Manifest) -> Iterator[str]:
    if not 0 < manifest.version <= _U64_MAX:
        yield f"{manifest.version} is no version number"
    if not 0 <= manifest.next_row_id <= _U64_MAX:
        yield f"the next row id {manifest.next_row_id} does not fit 64 bits"
    if manifest.max_fragment_id is not None and not 0 <= manifest.max_fragment_id <= _U32_MAX:
        yield f"the highest fragment id {manifest.max_fragment_id} does not fit 32 bits"
    allocated = manifest.max_allocated_field_id
    if allocated is not None and allocated < manifest.schema.max_field_id:
        yield f"field id {manifest.schema.max_field_id} is above the highest one ever allocated, {allocated}"


def _problems_of_fragments(manifest: Manifest) -> Iterator[str]:
    fragments = manifest.fragments
    facts = fragments.facts
    yield from facts.problems()
    if len(facts):
        highest = int(facts.ids[facts.ids.argmax()])
        if manifest.max_fragment_id is None or manifest.max_fragment_id < highest:
            yield f"fragment {highest} is above the highest fragment id {manifest.max_fragment_id}"
    strays = facts.ids[facts.has_row_ids != manifest.stable_row_ids]
    if len(strays):
        rule = (
            "All fragments must have row ids" if manifest.stable_row_ids else "Without stable row ids none may have any"
        )
        yield f"{rule}: fragment {int(strays[0])} breaks this, and {len(strays) - 1} others"
    for position in sorted(fragments.fresh):
        fragment = fragments[position]
        yield from problems_of_fragment(fragment)


def _problems_of_sequences(fragment: Fragment) -> Iterator[str]:
    """New sequences are decoded once, here: each must have an entry per physical row."""
    if fragment.row_ids is not None:
        yield from _problems_of_row_ids(fragment.row_ids, fragment)
    for data in (fragment.created_at, fragment.last_updated_at):
        if data is not None:
            judge = _problems_of_few_versions if len(data) < _FEW_BYTES else _problems_of_versions
            for problem in judge(data, fragment.physical_rows):
                yield f"fragment {fragment.id}: {problem}"


def _problems_of_row_ids(data: bytes, fragment: Fragment) -> Iterator[str]:
    try:
        decode_row_ids(data, "", fragment.physical_rows)
    except CorruptTable as error:
        for problem in error.problems:
            yield f"fragment {fragment.id}: {problem}"


@lru_cache(maxsize=256)
def _problems_of_few_versions(data: bytes, physical_rows: int) -> tuple[str, ...]:
    """Cached: fragments written together have the same versions. Long sequences would fill the memory."""
    return _problems_of_versions(data, physical_rows)


def _problems_of_versions(data: bytes, physical_rows: int) -> tuple[str, ...]:
    try:
        check_versions(data, "", physical_rows)
    except CorruptTable as error:
        return error.problems
    return ()


def _problems_of_bases(manifest: Manifest) -> Iterator[str]:
    ids = [base.id for base in manifest.base_paths]
    if len(set(ids)) != len(ids):
        yield f"two base paths have the same id: {ids}"
    used = manifest.fragments.facts.base_ids | {
        index.base_id for index in manifest.indices if index.base_id is not None
    }
    missing = sorted(used.difference(ids))
    if missing:
        yield f"files name base paths that do not exist: {missing}"


def _problems_of_file_versions(manifest: Manifest) -> Iterator[str]:
    default = _FILE_VERSION.fullmatch(manifest.data_storage_version)
    if not default or int(default[1]) < _FIRST_V2_MAJOR or manifest.writer_flags & MIXED_FILE_VERSIONS:
        return
    others = sorted(manifest.fragments.facts.file_versions - {(int(default[1]), int(default[2]))})
    if others:
        yield (
            f"data files have version {', '.join(f'{major}.{minor}' for major, minor in others)}, but the manifest "
            f"default is {manifest.data_storage_version} and mixed data-file-version capability is not enabled"
        )


def _problems_of_indices(manifest: Manifest) -> Iterator[str]:
    uuids = [index.uuid for index in manifest.indices]
    if len(set(uuids)) != len(uuids):
        yield "two indices have the same uuid"
    for index in manifest.indices:
        yield from problems_of_index(index)
