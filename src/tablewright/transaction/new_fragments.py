"""Fragments on their way into a manifest: ids, row lineage, and what no reader could read.

Ids are above the highest ever used; on tables with stable row ids new rows get row ids and versions
(:mod:`.lineage`).

Format: ``docs/format/transactions.md#what-each-operation-does``, ``docs/format/row-ids.md#assignment``.

Tests: ``tests/unit/transaction/test_apply.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tablewright.errors import EmptyFragment, InvalidRequest
from tablewright.format.fragment import TOMBSTONE, Fragment
from tablewright.format.limits import FRAGMENT_ID_MAX, check_limit
from tablewright.format.manifest import Manifest
from tablewright.format.schema import Schema
from tablewright.format.transaction import Operation
from tablewright.transaction.lineage import with_lineage, without_lineage
from tablewright.values import evolve

__all__ = ["check_new", "current", "highest_id", "new_fragments", "without_dead_files"]


def highest_id(manifest: Manifest) -> int:
    """The highest fragment id ever used, -1 for none."""
    return -1 if manifest.max_fragment_id is None else manifest.max_fragment_id


def _numbered(fragments: Sequence[Fragment], first: int) -> tuple[Fragment, ...]:
    return tuple([evolve(fragment, id=first + position) for position, fragment in enumerate(fragments)])


def new_fragments(
    manifest: Manifest, fragments: Sequence[Fragment], sources: Sequence[Fragment] = ()
) -> tuple[Manifest, tuple[Fragment, ...]]:
    """Give new fragments their ids and lineage; the manifest comes back with its high-water marks moved."""
    if not fragments:
        return manifest, ()
    check_new(manifest.schema, fragments)
    first = highest_id(manifest) + 1
    check_limit("fragment id", first + len(fragments) - 1, FRAGMENT_ID_MAX)
    numbered = _numbered(fragments, first)
    next_row_id = manifest.next_row_id
    if manifest.stable_row_ids:
        numbered, next_row_id = with_lineage(numbered, next_row_id, manifest.version + 1, sources)
    else:
        numbered = tuple(map(without_lineage, numbered))
    marked = evolve(manifest, max_fragment_id=first + len(fragments) - 1, next_row_id=next_row_id)
    return marked, numbered


def check_new(schema: Schema, fragments: Sequence[Fragment], *, hidden_rows: bool = False) -> None:
    """Refuse new fragments that no reader could read: without files or rows, with a deletion file, with holes.

    ``hidden_rows`` allows deletion files: those of a rewrite, whose fragment ids were reserved.
    """
    _check_distinct_files(fragments)
    needed = schema.kept(_needed)
    for fragment in fragments:
        held = {id for file in fragment.files for id in file.fields}
        missing = [name for name, ids in needed.items() if not ids & held]
        if not fragment.files or fragment.physical_rows <= 0:
            raise EmptyFragment(f"A new fragment needs data files and rows: {fragment}.")
        if fragment.deletion is not None and not hidden_rows:
            raise InvalidRequest("A new fragment can't have a deletion file: it is named after the id it will get.")
        if missing:
            raise InvalidRequest(f"A new fragment lacks columns {missing}, which may not be null.")


def _needed(schema: Schema) -> dict[str, frozenset[int]]:
    """The fields of each column that may not be null."""
    return {field.name: frozenset(schema.descendants(field.id)) for field in schema.top_level if not field.nullable}


def _check_distinct_files(fragments: Sequence[Fragment]) -> None:
    """Refuse a data file in two new fragments: its rows would come twice."""
    files = [(file.base_id, file.path) for fragment in fragments for file in fragment.files]
    if len(set(files)) < len(files):
        twice = next(path for (_, path), count in Counter(files).items() if count > 1)
        raise InvalidRequest(f"Data file {twice} is in two new fragments, so its rows would come twice.")


def current(manifest: Manifest, ids: Iterable[int], operation: Operation) -> dict[int, Fragment]:
    """The table's own state of these fragments; one that it does not have makes the request invalid."""
    wanted = tuple(ids)
    missing = [id for id in wanted if not manifest.fragments.has(id)]
    if missing:
        raise InvalidRequest(
            f"{type(operation).__name__} names fragments {missing}, which version {manifest.version} does not have."
        )
    return {id: manifest.fragments.by_id(id) for id in wanted}


def without_dead_files(fragment: Fragment, alive: frozenset[int] | None = None) -> Fragment:
    """Drop data files none of whose columns is live; the fragment itself if there are none.

    A fragment keeps at least one file, so that its rows stay countable.
    """
    kept = tuple(
        file
        for file in fragment.files
        if any(field != TOMBSTONE and (alive is None or field in alive) for field in file.fields)
    )
    return fragment if len(kept) in (0, len(fragment.files)) else evolve(fragment, files=kept)
