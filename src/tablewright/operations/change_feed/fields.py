"""Which field of one version is which of another.

A field that was renamed keeps its id. But an id that was dropped may be given again, to another column, and a table
that is overwritten numbers its columns again. Both look alike in two schemas, so the versions between are read: a field
is the same as long as every version has its id, none of them is an overwrite, and a restored version has the fields of
the version that it restored. A cast puts a field of another id where the old one was, maybe under another name: from
one version to the next, with as many fields beside it. Versions that were cleaned up are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from tablewright.format.field import TOP_LEVEL
from tablewright.format.schema import Schema
from tablewright.format.transaction import Overwrite, Restore
from tablewright.lazy import cached_property
from tablewright.snapshot.files import read_transaction
from tablewright.snapshot.locate import list_versions
from tablewright.snapshot.snapshot import Snapshot, open_snapshot

__all__ = ["FieldHistory"]


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
        if not ids:
            return ids
        before, after = self._names[source.version], self._names[self._end.version]
        return frozenset(id for id in ids if before.get(id) != after.get(id))

    def origins(self, source: Snapshot, ids: frozenset[int]) -> dict[int, int]:
        """For ids of the last version the other ids that the same fields have in ``source``."""
        if not ids:
            return {}
        before = {name: id for id, name in self._names[source.version].items()}
        after = self._names[self._end.version]
        return {id: before[after[id]] for id in ids if before.get(after[id], id) != id}

    @cached_property
    def _names(self) -> dict[int, dict[int, int]]:
        """A number for every field of every version; it stays the same as long as the field does."""
        fresh = count()
        names: dict[int, dict[int, int]] = {}
        previous: dict[int, int] = {}
        history = self._read()
        for number in sorted(history):
            version = history[number]
            known = {} if version.overwrote else names.get(version.restored or 0, previous)
            before = history.get(number - 1) if version.restored is None else None
            casts = {} if before is None else _casts(before.schema, version.schema)
            ids = {node.id: casts.get(node.id, node.id) for node in version.schema.fields}
            previous = names[number] = {id: known[old] if old in known else next(fresh) for id, old in ids.items()}
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


def _casts(before: Schema, after: Schema) -> dict[int, int]:
    """Ids of fields that stand where another one stood in the version before, and the ids of those."""
    casts: dict[int, int] = {}
    twins = {TOP_LEVEL: TOP_LEVEL}
    for parent in (TOP_LEVEL, *(node.id for node in after.fields)):
        if parent not in twins:
            continue
        old, new = before.children(twins[parent]), after.children(parent)
        for place, node in enumerate(new):
            if before.has(node.id):
                twins[node.id] = node.id
            elif len(old) == len(new) and not after.has(old[place].id):
                casts[node.id] = twins[node.id] = old[place].id
    return casts
