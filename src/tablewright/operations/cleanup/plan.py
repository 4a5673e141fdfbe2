"""The decision which files go, from what all manifests name and from a listing. Pure.

A file stays if a kept manifest of the table, or any manifest of one of its branches, names it. Otherwise:

- *verified*: a removed manifest names it, or one that an interrupted cleanup removed
  (:mod:`tablewright.format.cleanup_journal`). So no writer is about to commit it: it goes.
- *unverified*: no manifest names it. It may belong to a writer that has not committed yet, so it stays until it is
  seven days old, unless the caller asks for ``delete_unverified``. The files that tasks of an index build write on the
  way are such files too, also in the directory of an index that is kept: a task that Spark ran twice may have written
  them after the build was done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from tablewright.format.naming import is_index_part
from tablewright.operations.cleanup.files import CleanupFile
from tablewright.operations.cleanup.kinds import MANIFEST, classify
from tablewright.operations.cleanup.options import UNVERIFIED_AGE, CleanupOptions
from tablewright.operations.cleanup.read import ManifestEntry, NameIndex
from tablewright.storage.base import ObjectInfo

__all__ = ["CleanupPlan", "Reach", "plan_files", "reach_of", "without"]

_AGE_NS = int(UNVERIFIED_AGE.total_seconds()) * 1_000_000_000
_DAY_NS = 86_400 * 1_000_000_000
_VERIFIED = "only versions that are removed name it"
_INTERRUPTED = "only versions that an interrupted cleanup removed named it"
_ASKED_FOR = "no version names it, and delete_unverified was asked for"


@dataclass(frozen=True, slots=True)
class Reach:
    """Numbers of names: what stays, what removed manifests named, what an interrupted cleanup meant to remove."""

    kept: BitMap
    dead: BitMap
    interrupted: BitMap


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPlan:
    """Manifests and files that go, the files with the name that manifests know them by; and what has to wait."""

    manifests: tuple[CleanupFile, ...]
    files: tuple[tuple[CleanupFile, str], ...]
    waiting_files: int = 0
    waiting_bytes: int = 0

    @property
    def all_files(self) -> list[CleanupFile]:
        """All that goes, manifests first."""
        return [*self.manifests, *(file for file, _ in self.files)]


def reach_of(names: NameIndex, removed: Collection[ManifestEntry], interrupted: Iterable[str]) -> Reach:
    """Which names stay if these manifests of the table go. Raises the problem of a manifest that stays unread."""
    gone = {entry.key for entry in removed}
    kept, dead = BitMap(), BitMap()
    for key, manifest in names.manifests.items():
        if key in gone:
            dead |= manifest.own
            continue
        if manifest.problem is not None:
            raise manifest.problem
        kept |= manifest.shared
        if not manifest.entry.line:
            kept |= manifest.own
    return Reach(kept, dead - kept, names.numbers_of(interrupted) - kept)


def plan_files(
    names: NameIndex,
    reach: Reach,
    removed: Sequence[ManifestEntry],
    listing: Iterable[ObjectInfo],
    options: CleanupOptions,
    *,
    now_ns: int,
    nested: Sequence[str] = (),
) -> CleanupPlan:
    """Judge each file of a listing. ``nested`` are directories of branches below the table's own: never touched."""
    numbers, inside = names.numbers, tuple(f"{directory}/" for directory in nested)
    files: list[tuple[CleanupFile, str]] = []
    waiting_files = waiting_bytes = 0
    for info in listing:
        found = classify(info.path)
        if found is None or info.path.startswith(inside):
            continue
        kind, name = found
        number = numbers.get(name)
        if number is not None and number in reach.kept:
            if not is_index_part(info.path):
                continue
            number = None  # the index is kept, and this is no part of it
        reason = _reason(number, reach, now_ns - info.modified_ns, options)
        if reason is None:
            waiting_files, waiting_bytes = waiting_files + 1, waiting_bytes + info.size
            continue
        unverified = reason not in (_VERIFIED, _INTERRUPTED)
        file = CleanupFile(path=info.path, kind=kind, size_bytes=info.size, reason=reason, unverified=unverified)
        files.append((file, name))
    return CleanupPlan(
        manifests=tuple(_manifest_file(entry) for entry in removed),
        files=tuple(files),
        waiting_files=waiting_files,
        waiting_bytes=waiting_bytes,
    )


def without(plan: CleanupPlan, names: NameIndex, kept: BitMap) -> list[CleanupFile]:
    """The files of a plan that are not named by these manifests, which were read after the plan was made."""
    return [file for file, name in plan.files if names.numbers.get(name, -1) < 0 or names.numbers[name] not in kept]


def _reason(number: int | None, reach: Reach, age_ns: int, options: CleanupOptions) -> str | None:
    """Why a file that no kept manifest names goes; ``None`` if it has to wait."""
    if number is not None and number in reach.dead:
        return _VERIFIED
    if number is not None and number in reach.interrupted:
        return _INTERRUPTED
    if age_ns >= _AGE_NS:
        return f"no version names it, and it is {age_ns // _DAY_NS} days old"
    return _ASKED_FOR if options.delete_unverified else None


def _manifest_file(entry: ManifestEntry) -> CleanupFile:
    return CleanupFile(
        path=entry.path, kind=MANIFEST, size_bytes=entry.size, reason=f"version {entry.version} is removed"
    )
