"""The difference of a fragment between the version that we read and the newest one.

It is computed from the two manifests, so a change counts even if the other writer's transaction does not mention it.
What manifests don't show comes from the transactions in between, and is kept in :class:`Meanwhile`: which rows of a
rewritten column changed, and whether rows that are gone were deleted or moved elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Delete, Operation, Update
from tablewright.transaction.touched import changed_fragments, patched_offsets

__all__ = ["Drift", "Meanwhile", "drifts"]


@dataclass(frozen=True, slots=True)
class Drift:
    """One fragment in the version that we read and in the newest one; ``after`` is ``None`` if it was removed.

    ``known`` are the fields that the table had in the version we read. Of these, a field without a data file in the
    fragment was null in all its rows, so values that it has now count as rewritten, not as added.
    """

    before: Fragment
    after: Fragment | None
    known: frozenset[int] = frozenset()

    @property
    def has_new_deletions(self) -> bool:
        """Whether its deletion file changed."""
        return self.after is not None and self.after.deletion != self.before.deletion

    @property
    def rewritten(self) -> frozenset[int]:
        """Fields of the table we read whose values come from another data file now."""
        then, now = _places(self.before), {} if self.after is None else _places(self.after)
        return frozenset(id for id, file in now.items() if then.get(id) != file and (id in then or id in self.known))

    @property
    def added(self) -> frozenset[int]:
        """Fields that came with a later version of the schema, and have a data file in this fragment now."""
        return frozenset() if self.after is None else self.after.live_fields - self.before.live_fields - self.known


def _places(fragment: Fragment) -> dict[int, tuple[int | None, str]]:
    return {id: (file.base_id, file.path) for file in fragment.files for id in file.live_fields}


def drifts(
    ids: Iterable[int], base: FragmentList, newest: FragmentList, known: frozenset[int] = frozenset()
) -> dict[int, Drift]:
    """The fragments among ``ids`` that changed; ``known`` are the fields of the table in ``base``."""
    changed: dict[int, Drift] = {}
    for id in sorted(ids):
        before, after = base.by_id(id), newest.by_id(id) if newest.has(id) else None
        if after is None or (after.files, after.deletion) != (before.files, before.deletion):
            changed[id] = Drift(before, after, known)
    return changed


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """What the transactions in between say beyond what two manifests show.

    ``patched`` has the rows of each fragment whose columns changed in place (``None``: not recorded), ``deleted`` the
    fragments that rows were deleted from, ``moved`` those that rows may have been moved out of.
    """

    patched: Mapping[int, RowSet | None] = field(default_factory=dict)
    deleted: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()

    def only_deleted_from(self, fragment_id: int) -> bool:
        """Whether rows that are gone from a fragment were deleted for certain, and not moved to another fragment."""
        return fragment_id in self.deleted and fragment_id not in self.moved

    def then(self, operation: Operation) -> Meanwhile:
        """With one more transaction."""
        patched = dict(self.patched)
        for id, offsets in patched_offsets(operation).items():
            known = patched.get(id, RowSet())
            patched[id] = None if known is None or offsets is None else known | offsets
        changed = changed_fragments(operation)
        deleted = self.deleted | changed if isinstance(operation, Delete) else self.deleted
        moved = self.moved | changed if isinstance(operation, Update) else self.moved
        return Meanwhile(patched, deleted, moved)
