"""Index coverage after a change: which fragments an index still covers.

An index entry is changed in its fragment bitmap only; its files stay. Coverage may name fragments that
are gone: what counts is its intersection with the live ones.

Format: ``docs/format/indices.md#coverage-after-a-change``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from pyroaring import FrozenBitMap

from tablewright.format.fragment import Fragment
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import stores_row_ids
from tablewright.format.schema import Schema
from tablewright.format.transaction import Rewrite, RewrittenIndex

__all__ = [
    "extended_to_moved_rows",
    "new_index_past_rewrite",
    "of_schema",
    "past_rewrite",
    "without_rewritten_columns",
]

Indices = tuple[IndexMetadata, ...]


def of_schema(indices: Indices, schema: Schema) -> Indices:
    """Without the indices on fields that the schema no longer has."""
    alive = schema.ids
    return tuple(index for index in indices if alive.issuperset(index.fields))


def _mapped(indices: Indices, change: Callable[[IndexMetadata, FrozenBitMap], FrozenBitMap]) -> Indices:
    return tuple([_with_changed_coverage(index, change) for index in indices])


def _with_changed_coverage(
    index: IndexMetadata, change: Callable[[IndexMetadata, FrozenBitMap], FrozenBitMap]
) -> IndexMetadata:
    before = index.coverage
    after = None if before is None else change(index, before)
    return index if after is None or after is before else index.with_coverage(after)


def without_rewritten_columns(indices: Indices, fields: Collection[int], fragments: Iterable[int]) -> Indices:
    """Column values changed in place: indices on those fields no longer cover the fragments."""
    changed, touched = frozenset(fields), FrozenBitMap(fragments)

    def shrink(index: IndexMetadata, coverage: FrozenBitMap) -> FrozenBitMap:
        return coverage - touched if changed.intersection(index.fields) else coverage

    return _mapped(indices, shrink)


def extended_to_moved_rows(
    indices: Indices, changed_fields: Collection[int], touched: Iterable[int], moved: Iterable[Fragment]
) -> Indices:
    """Rows of a stable table moved to new fragments: indices on unchanged columns cover these too.

    ``moved`` are those new fragments that hold moved rows only.
    """
    changed, old, new = frozenset(changed_fields), FrozenBitMap(touched), FrozenBitMap(f.id for f in moved)

    def extend(index: IndexMetadata, coverage: FrozenBitMap) -> FrozenBitMap:
        keeps = stores_row_ids(index) and not changed.intersection(index.fields) and old <= coverage
        return coverage | new if keeps else coverage

    return _mapped(indices, extend)


def _renamed(index: IndexMetadata, rewritten: RewrittenIndex, version: int) -> IndexMetadata:
    return replace(
        index,
        uuid=rewritten.new_id,
        dataset_version=version,
        base_id=None,
        details_type_url=rewritten.details_type_url or index.details_type_url,
        details_value=rewritten.details_value or index.details_value,
        index_version=rewritten.new_index_version,
        files=rewritten.new_index_files,
    )


def past_rewrite(indices: Indices, rewrite: Rewrite, *, stable_row_ids: bool, version: int = 0) -> Indices:
    """Fragments of ``version`` were rewritten: rewritten indices take their new files, the others their new coverage.

    A rewritten index counts as built from ``version``: its files hold no address of an earlier one.
    A group that an index covers in part leaves its coverage: which of the new rows it has can't be said by fragment.
    """
    by_old_id = {rewritten.old_id: rewritten for rewritten in rewrite.rewritten_indices}
    groups = [
        (FrozenBitMap(f.id for f in group.old_fragments), FrozenBitMap(f.id for f in group.new_fragments))
        for group in rewrite.groups
    ]

    def follow(index: IndexMetadata, coverage: FrozenBitMap) -> FrozenBitMap:
        keeps = index.uuid in by_old_id or (stable_row_ids and stores_row_ids(index))
        for old, new in groups:
            if not keeps:
                coverage = coverage - old if stable_row_ids else coverage
            elif old & coverage:
                coverage = (coverage - old) | new if old <= coverage else coverage - old
        return coverage

    followed = _mapped(indices, follow)
    return tuple(
        _renamed(index, by_old_id[index.uuid], version) if index.uuid in by_old_id else index for index in followed
    )


def new_index_past_rewrite(
    indices: Indices, rewrite: Rewrite, *, stable_row_ids: bool, recorded: Collection[int] = ()
) -> Indices:
    """An index was built on fragments that were rewritten before it was committed.

    Where it names rows by id its coverage follows them. Where it names them by address, they leave its coverage: the
    fragments that it knows are gone. Fragments whose new addresses are ``recorded`` stay: readers translate them.
    """
    if stable_row_ids:
        return past_rewrite(indices, replace(rewrite, rewritten_indices=()), stable_row_ids=True)
    old = FrozenBitMap(fragment.id for group in rewrite.groups for fragment in group.old_fragments)
    gone = old - FrozenBitMap(recorded)
    return _mapped(indices, lambda _, coverage: coverage - gone)
