"""A rewrite (compaction) that was committed first: where the rows that we touch are after it.

A crossing is the step from the version before a rewrite to the version that the rewrite made. Rows are followed by rank
(:mod:`tablewright.format.address_map`), from the transaction of the rewrite alone:

1. The old fragments count as the transaction lists them, with the deletion files named there; rows that others deleted
   later are hidden in the new fragments. The new fragments count with all their physical rows.
2. The map is used if the counts of both sides agree, in the transaction and in the two manifests, and if each followed
   row is the same row on both sides (:mod:`.trust`).
3. Otherwise, and where a file that is needed for this was cleaned up, :class:`NotFollowed` says why: the operation has
   to run again.

Fragments that the rewrite leaves alone keep their rows and ids.

Format: ``docs/format/transactions.md#row-addresses-after-a-rewrite``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tablewright.errors import CorruptTable
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Rewrite, RewriteGroup
from tablewright.lazy import cached_property
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound
from tablewright.transaction.trust import difference

__all__ = ["Crossing", "Group", "NotFollowed", "missing_files_end_it"]


class NotFollowed(Exception):
    """Rows can't be followed through a rewrite. The commit loop makes a retryable conflict of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def missing_files_end_it() -> Iterator[None]:
    """Files of earlier versions may have been cleaned up: then what is asked of them is not known any more."""
    try:
        yield
    except (CorruptTable, ObjectNotFound) as error:
        if isinstance(error, CorruptTable) and not any(problem.endswith("is missing") for problem in error.problems):
            raise
        raise NotFollowed(f"a file of an earlier version can't be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Group:
    """A group of the rewrite: its map, and the old fragments as they were read."""

    map: AddressMap
    listed: Mapping[int, Fragment]


@dataclass(frozen=True, eq=False)
class Crossing:
    """The step from ``before`` to ``after``, the version that ``rewrite`` made."""

    before: Snapshot
    after: Snapshot
    rewrite: Rewrite
    _groups: dict[int, Group] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _place(self) -> dict[int, int]:
        """The group of each old fragment."""
        return {old.id: place for place, each in enumerate(self.rewrite.groups) for old in each.old_fragments}

    def rewritten(self, ids: Iterable[int]) -> list[int]:
        """Those of the fragments that were rewritten."""
        return [id for id in ids if id in self._place]

    def groups_of(self, ids: Iterable[int]) -> list[Group]:
        """The groups that hold one of these fragments, in order."""
        return [self._group(place) for place in sorted({self._place[id] for id in ids if id in self._place})]

    def live(self, rows: Mapping[int, RowSet]) -> dict[int, RowSet]:
        """Those of the rows that are live in ``before``, if their fragments are rewritten."""
        return {
            id: some - self._deleted(self.before.fragments.by_id(id)) if id in self._place else some
            for id, some in rows.items()
        }

    def forward(self, rows: Mapping[int, RowSet]) -> dict[int, RowSet]:
        """Where live rows of ``before`` are in ``after``, by fragment id. Rows that can't be there are refused."""
        found: dict[int, RowSet] = {}
        for id, some in rows.items():
            places = {id: some}
            if id in self._place:
                group = self._group(self._place[id])
                places = group.map.forward(id, some)
                self._check_live(places)
            for place, offsets in places.items():
                found[place] = found[place] | offsets if place in found else offsets
        return found

    def check(self, rows: Mapping[int, RowSet]) -> None:
        """Compare rows on both sides; :class:`NotFollowed` if one of them is another row in ``after``."""
        with missing_files_end_it():
            for group in self.groups_of(rows):
                some = {each.id: rows[each.id] for each in group.map.old if rows.get(each.id)}
                problem = difference(self.before, self.after, group.map, some) if some else None
                if problem is not None:
                    raise NotFollowed(problem)

    # ---------------------------------------------------------------------------------------------------------- groups
    def _group(self, place: int) -> Group:
        known = self._groups.get(place)
        if known is None:
            with missing_files_end_it():
                known = self._groups[place] = self._load(self.rewrite.groups[place])
        return known

    def _load(self, group: RewriteGroup) -> Group:
        old = tuple(OldRows(each.id, each.physical_rows, self._deleted(each)) for each in group.old_fragments)
        new = tuple(NewRows(each.id, each.physical_rows) for each in group.new_fragments)
        map = AddressMap(old, new)
        problem = map.problem or self._problem(map)
        if problem is not None:
            raise NotFollowed(f"the rewrite of fragments {[each.id for each in old]} can't be followed: {problem}")
        return Group(map, {each.id: each for each in group.old_fragments})

    def _deleted(self, fragment: Fragment) -> RowSet:
        return self.before.deletion_vector(fragment) or RowSet()

    def _problem(self, map: AddressMap) -> str | None:
        """What of the two manifests does not fit the map."""
        was, became = self.before.fragments, self.after.fragments
        if len({each.id for each in map.new}) < len(map.new) or any(was.has(each.id) for each in map.new):
            return "its new fragments have no ids of their own"
        live = 0
        for each in map.old:
            fragment = was.by_id(each.id) if was.has(each.id) else None
            if became.has(each.id):
                return f"fragment {each.id} is still there"
            if fragment is None:
                continue
            live += fragment.live_rows
            if fragment.physical_rows != each.physical_rows or not each.deleted <= self._deleted(fragment):
                return f"fragment {each.id} had other rows when it was read"
        for new in map.new:
            fragment = became.by_id(new.id) if became.has(new.id) else None
            live -= 0 if fragment is None else fragment.live_rows
            if fragment is not None and fragment.physical_rows != new.physical_rows:
                return f"fragment {new.id} has {fragment.physical_rows} rows, not {new.physical_rows}"
        return f"{abs(live)} rows were {'lost' if live > 0 else 'added'}" if live else None

    def _check_live(self, places: Mapping[int, RowSet]) -> None:
        for id, rows in places.items():
            if not self.after.fragments.has(id):
                raise NotFollowed(f"fragment {id} of the rewrite has no rows, and ours should be there")
            deleted = self.after.deletion_vector(self.after.fragments.by_id(id))
            if deleted is not None and not deleted.isdisjoint(rows):
                raise NotFollowed(f"rows of ours are deleted in fragment {id} of the rewrite, and were not before it")
