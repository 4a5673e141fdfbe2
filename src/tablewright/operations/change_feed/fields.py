"""Which field of one version is which of another.

A field that was renamed keeps its id. But an id that was dropped may be given again, even under the same name, and a
table that is overwritten numbers its columns from 0 again. That looks alike in two schemas. It is the same field where
a data file of both versions holds its id: an id is given again only when no file has it. Else the versions between are
read: a field is the same as long as every version has its id, and a restored version has the fields of the version
that it restored. A cast puts a field of another id where the old one was, or under its name: from one version to the
next.

So a column that was dropped, and another one that was added under its name, are two. Only where nothing better is known
the name decides: past an overwrite, and past versions that were cleaned up.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from tablewright.format.field import TOP_LEVEL
from tablewright.format.fragment import Fragment
from tablewright.format.schema import Schema
from tablewright.format.transaction import Overwrite, Restore
from tablewright.lazy import cached_property
from tablewright.snapshot.files import read_transaction
from tablewright.snapshot.locate import list_versions
from tablewright.snapshot.snapshot import Snapshot, open_snapshot

__all__ = ["FieldHistory"]

_WITNESSES_MAX = 16


@dataclass(frozen=True, slots=True)
class _Version:
    schema: Schema
    overwrote: bool
    restored: int | None


class FieldHistory:
    """The fields of the versions from ``begin`` on, up to ``end``. The versions are read only if they are needed."""

    def __init__(self, begin: int, end: Snapshot) -> None:
        self._begin, self._end = begin, end

    def different(self, source: Snapshot, ids: frozenset[int]) -> frozenset[int]:
        """Those ids that stand for one field in ``source`` and for another in the last version."""
        ids = ids - _witnessed(source, self._end, ids)
        if not ids:
            return ids
        before, after = self._names[source.version], self._names[self._end.version]
        return frozenset(id for id in ids if before.get(id) != after.get(id))

    def origins(self, source: Snapshot, ids: frozenset[int]) -> dict[int, int]:
        """For ids of the last version the ids that the same fields have in ``source``, where they are there."""
        if not ids:
            return {}
        before = {name: id for id, name in self._names[source.version].items()}
        after = self._names[self._end.version]
        return {id: before[after[id]] for id in ids if after[id] in before}

    @cached_property
    def _names(self) -> dict[int, dict[int, int]]:
        """A number for every field of every version; it stays the same as long as the field does."""
        fresh = count()
        names: dict[int, dict[int, int]] = {}
        history = self._read()
        last: int | None = None
        for number in sorted(history):
            version = history[number]
            origin = last if version.restored is None else version.restored if version.restored in names else last
            known = {} if origin is None else names[origin]
            older = {} if origin is None else _older_ids(history[origin].schema, version, is_next=origin == number - 1)
            ids = {node.id: older.get(node.id) for node in version.schema.fields}
            names[number] = {id: next(fresh) if old is None else known[old] for id, old in ids.items()}
            last = number
        return names

    def _read(self) -> dict[int, _Version]:
        """The versions of the span, and those from the ones on that were restored meanwhile."""
        end = self._end
        there = [entry.version for entry in list_versions(end.world.store) if entry.version <= end.version]
        history: dict[int, _Version] = {}
        lowest, read_from = self._begin, end.version + 1
        while lowest < read_from:
            history.update((each, _look(end, each)) for each in there if lowest <= each < read_from)
            restored = (each.restored for each in history.values() if each.restored is not None)
            lowest, read_from = min([lowest, *restored]), lowest
        return history


def _look(end: Snapshot, version: int) -> _Version:
    snapshot = open_snapshot(end.world, version)
    transaction = read_transaction(end.world.store, snapshot.file)
    operation = None if transaction is None else transaction.operation
    return _Version(
        snapshot.schema,
        isinstance(operation, Overwrite),
        operation.version if isinstance(operation, Restore) else None,
    )


def _witnessed(source: Snapshot, end: Snapshot, wanted: frozenset[int]) -> frozenset[int]:
    """Ids of fields, and of those around them, that a data file of both versions holds: they are the same fields."""
    if not wanted or source.version == end.version:
        return wanted
    found: set[int] = set()
    both = np.intersect1d(source.fragments.ids, end.fragments.ids, assume_unique=True)
    for fragment_id in islice(both.tolist(), _WITNESSES_MAX):
        for held in _held_by_both(source.fragments.by_id(fragment_id), end.fragments.by_id(fragment_id)) & wanted:
            found.update((held, *source.schema.ancestors(held)))
        if found >= wanted:
            break
    return frozenset(found)


def _held_by_both(one: Fragment, other: Fragment) -> set[int]:
    """Field ids of the data files that both states of a fragment have."""
    files = {(file.base_id, file.path): file.fields for file in other.files}
    held = (set(file.fields) & set(files.get((file.base_id, file.path), ())) for file in one.files)
    return set[int]().union(*held)


def _older_ids(before: Schema, version: _Version, *, is_next: bool) -> dict[int, int]:
    """For ids of a version those of the same fields in an earlier one, the one right before it or not."""
    after = version.schema
    if version.overwrote:
        return _same_names(before, after, frozenset())
    same = {id: id for id in after.ids if before.has(id)}
    if version.restored is not None:
        return same
    return (_casts(before, after) if is_next else _same_names(before, after, before.ids & after.ids)) | same


def _same_names(before: Schema, after: Schema, known: frozenset[int]) -> dict[int, int]:
    """Fields of the same path, without those that are ``known`` by their ids."""
    ids = {before.path(node.id): node.id for node in before.fields if node.id not in known}
    return {
        node.id: ids[path] for node in after.fields if node.id not in known and (path := after.path(node.id)) in ids
    }


def _casts(before: Schema, after: Schema) -> dict[int, int]:
    """Ids of fields that have the name or the place of one that the version before had, and the ids of those."""
    casts: dict[int, int] = {}
    twins = {TOP_LEVEL: TOP_LEVEL}
    for parent in (TOP_LEVEL, *(node.id for node in after.fields)):
        if parent not in twins:
            continue
        old, new = before.children(twins[parent]), after.children(parent)
        gone = {node.name: node.id for node in old if not after.has(node.id)}
        for place, node in enumerate(new):
            if before.has(node.id):
                twins[node.id] = node.id
            elif node.name in gone:
                casts[node.id] = twins[node.id] = gone[node.name]
            elif len(old) == len(new) and not after.has(old[place].id):
                casts[node.id] = twins[node.id] = old[place].id
    return casts
