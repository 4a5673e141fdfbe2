"""What the attempts before found and wrote, as far as it holds on a newer version: a conflict repeats only what is new.

- *Matches* of a fragment depend on the fragment and on the source. Its bytes in the manifest say whether it is still
  what it was; only fragments that came or changed meanwhile are matched again.
- *Writes* depend on what went into them: the same rows of the same fragments, changed by the same rows of the source.
  A file with that in it need not be written twice. What becomes another row in the end goes with its own file.

Files that no version needs in the end are removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from tablewright.format.fragment import FragmentList
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.changes import Changes
from tablewright.operations.merge_insert.match.pairs import FragmentMatches
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.write.tasks import (
    HideTask,
    InsertTask,
    MergeColumnsTask,
    MergePart,
    MergeRowsTask,
    MergeWriteTask,
)
from tablewright.operations.rewrite.finish import Rewritten
from tablewright.storage.base import exists
from tablewright.storage.uncommitted import discard_files
from tablewright.world import World

__all__ = ["Reuse"]


class Reuse:
    """Matches and writes of one merge, over its attempts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._matched: tuple[FragmentList, Mapping[int, FragmentMatches]] | None = None
        self._results: dict[Hashable, Rewritten] = {}
        self._paths: set[str] = set()
        self._used: frozenset[str] = frozenset()
        self._table: Schema | None = None
        self.insert_edges: tuple[int, ...] = ()

    def begin(self, plan: MergePlan) -> None:
        """An attempt begins. In a table with other columns, nothing holds that was found or written before."""
        if self._table is not None and self._table != plan.table:
            self._matched, self._results, self.insert_edges = None, {}, ()
        self._table = plan.table

    # -------------------------------------------------------------------------------------------------------- matches
    def matches(self, plan: MergePlan) -> dict[int, FragmentMatches | None]:
        """What is known of the plan's fragments, by id; ``None``: nothing matches."""
        if self._matched is None or plan.looks_at_place:
            return {}
        fragments, matches = self._matched
        known = {raw: matches.get(id) for id, raw in zip(fragments.ids.tolist(), fragments.raw, strict=True)}
        now = zip(plan.fragments.ids.tolist(), plan.fragments.raw, strict=True)
        return {id: known[raw] for id, raw in now if raw in known}

    def keep_matches(self, plan: MergePlan, matches: Mapping[int, FragmentMatches]) -> None:
        """Remember what was found in all of the plan's fragments: nearly always in vain, so nothing is computed."""
        self._matched = plan.fragments, matches

    # --------------------------------------------------------------------------------------------------------- writes
    def written(self, task: MergeWriteTask) -> Rewritten | None:
        """The result of a task that had the same effect, if there was one, and its files are still there."""
        result = self._results.get(_effect(task)) if self._results else None
        if result is None or not all(exists(self._world.store, path) for path in result.paths):
            return None
        return result

    def keep_writes(self, tasks: Sequence[MergeWriteTask], results: Sequence[Rewritten]) -> None:
        """Remember what an attempt has written in vain."""
        self._results |= {_effect(task): result for task, result in zip(tasks, results, strict=True)}
        self._paths |= {path for result in results for path in result.paths}
        self.insert_edges = tuple(int(task.positions[0]) for task in tasks if isinstance(task, InsertTask))

    def uses(self, paths: Iterable[str]) -> None:
        """These files may be in a version by now."""
        self._used = frozenset(paths)

    def close(self) -> None:
        """Remove the files that were written in vain."""
        discard_files(self._world.store, self._paths - self._used)


def _effect(task: MergeWriteTask) -> Hashable:
    """What the result of a task depends on, as far as it differs between attempts."""
    match task:
        case MergeRowsTask():
            looks = _looks_at_place(task.changes)
            return "moved", task.file_version, tuple(_effect_of_part(part, looks) for part in task.parts)
        case MergeColumnsTask():
            return "patched", task.file_version, _effect_of_part(task.part, _looks_at_place(task.changes))
        case InsertTask():
            return "inserted", task.file_version, _digest(task.positions)
        case HideTask():
            return "hidden", task.parts


def _looks_at_place(changes: Changes | None) -> bool:
    """Whether values depend on where in the table a row is, which other fragments decide."""
    return changes is not None and ("_rowoffset",) in changes.target_paths_of(range(len(changes.rows)))


def _effect_of_part(part: MergePart, looks_at_place: bool) -> Hashable:
    place = part.first_row if looks_at_place else None
    return part.fragment, place, part.deleted, _digest(part.pairs.offsets, part.pairs.positions, part.pairs.numbers)


def _digest(*arrays: np.ndarray) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
