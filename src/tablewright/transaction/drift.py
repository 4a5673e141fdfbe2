"""What happened to a fragment between the version that we read and the newest one.

Two manifests tell it whoever changed the fragment, and whatever their transactions say: a file that another writer's
transaction keeps silent about is seen all the same. What manifests can't tell is told by the transactions, and kept in
:class:`Meanwhile`: which rows of a rewritten column changed, and whether rows that are gone were moved elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyroaring import FrozenBitMap

from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.transaction import Delete, Operation, Update
from tablewright.transaction.touched import changed_fragments, patched_offsets

__all__ = ["Drift", "Meanwhile", "drifts"]


@dataclass(frozen=True, slots=True)
class Drift:
    """One fragment, then and now; ``after`` is ``None`` if it is gone.

    ``known`` are the fields of the table then. Those that a fragment had no file for were null in all its rows: values
    that came since then are written over these.
    """

    before: Fragment
    after: Fragment | None
    known: frozenset[int] = frozenset()

    @property
    def has_new_deletions(self) -> bool:
        """Whether its deletion file is another one."""
        return self.after is not None and self.after.deletion != self.before.deletion

    @property
    def rewritten(self) -> frozenset[int]:
        """Fields whose values come from another file now."""
        then, now = _places(self.before), {} if self.after is None else _places(self.after)
        return frozenset(id for id, file in now.items() if then.get(id) != file and (id in then or id in self.known))

    @property
    def added(self) -> frozenset[int]:
        """Fields that it had no values of, and the table neither."""
        return frozenset() if self.after is None else self.after.live_fields - self.before.live_fields - self.known


def _places(fragment: Fragment) -> dict[int, tuple[int | None, str]]:
    return {id: (file.base_id, file.path) for file in fragment.files for id in file.live_fields}


def drifts(
    ids: Iterable[int], base: FragmentList, newest: FragmentList, known: frozenset[int] = frozenset()
) -> dict[int, Drift]:
    """Those of some fragments that are not what they were; ``known`` are the fields of the table then."""
    changed: dict[int, Drift] = {}
    for id in sorted(ids):
        before, after = base.by_id(id), newest.by_id(id) if newest.has(id) else None
        if after is None or (after.files, after.deletion) != (before.files, before.deletion):
            changed[id] = Drift(before, after, known)
    return changed


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """What the transactions in between say beyond what two manifests show.

    ``patched`` has the rows of each fragment whose columns changed in place (``None``: nobody said which), ``deleted``
    the fragments that rows were deleted from, ``moved`` those that rows may have been moved out of.
    """

    patched: Mapping[int, FrozenBitMap | None] = field(default_factory=dict)
    deleted: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()

    def only_deleted_from(self, fragment_id: int) -> bool:
        """Whether rows that are gone from a fragment live nowhere else. Who keeps silent may have moved them."""
        return fragment_id in self.deleted and fragment_id not in self.moved

    def then(self, operation: Operation) -> Meanwhile:
        """With one more transaction."""
        patched = dict(self.patched)
        for id, offsets in patched_offsets(operation).items():
            known = patched.get(id, FrozenBitMap())
            patched[id] = None if known is None or offsets is None else known | offsets
        changed = changed_fragments(operation)
        deleted = self.deleted | changed if isinstance(operation, Delete) else self.deleted
        moved = self.moved | changed if isinstance(operation, Update) else self.moved
        return Meanwhile(patched, deleted, moved)
