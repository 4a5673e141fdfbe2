"""Reading what manifests refer to: tasks over chunks of manifests, and the index of names that is folded from them.

Consecutive versions share nearly all of their fragments. So names get numbers, a manifest is a set of numbers (a
roaring bitmap, in which a run of numbers costs a few bytes), and each distinct serialised fragment is decoded once per
task. 1,000 versions of 1,000 fragments are a million lookups of bytes and a thousand small bitmaps.

Tests: ``tests/unit/operations/cleanup/test_read.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

from tablewright.errors import TablewrightError
from tablewright.format.naming import VERSIONS_DIR, parse_manifest_name
from tablewright.format.references import Names, decode_references, names_of_fragment
from tablewright.storage.address import join_uri
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.subtree import SubtreeStore
from tablewright.world import World

__all__ = ["ManifestEntry", "NameIndex", "ReadResult", "ReadTask", "list_manifests", "plan_reads", "run_read"]

_MANIFESTS_PER_TASK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One manifest file; ``line`` is the directory of its branch below the root that tasks work in, empty for none."""

    path: str
    version: int
    is_detached: bool
    size: int
    modified_ns: int
    line: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all other manifests."""
        return self.line, self.path


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Some manifests to read."""

    entries: tuple[ManifestEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestNames:
    """One manifest that was read: numbers of the names that it refers to. ``problem``: it could not be decoded."""

    entry: ManifestEntry
    timestamp_ns: int
    own: BitMap
    shared: BitMap
    problem: TablewrightError | None = None


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a task read. The numbers of its manifests are places in ``names``; manifests that are gone are left out."""

    names: tuple[str, ...]
    manifests: tuple[ManifestNames, ...]


def list_manifests(store: Store, line: str = "") -> list[ManifestEntry]:
    """Every manifest file of a table or branch, under either name, detached ones included."""
    entries = []
    for info in store.list(VERSIONS_DIR):
        directory, _, name = info.path.rpartition("/")
        named = parse_manifest_name(name)
        if directory == VERSIONS_DIR and named is not None:
            entries.append(
                ManifestEntry(
                    path=info.path,
                    version=named[0],
                    is_detached=named[1] == "detached",
                    size=info.size,
                    modified_ns=info.modified_ns,
                    line=line,
                )
            )
    return entries


def plan_reads(entries: Sequence[ManifestEntry]) -> list[ReadTask]:
    """Tasks for these manifests; neighbours, which share fragments, are in one task."""
    ordered = sorted(entries, key=lambda entry: (entry.line, entry.version, entry.path))
    starts = range(0, len(ordered), _MANIFESTS_PER_TASK)
    return [ReadTask(tuple(ordered[start : start + _MANIFESTS_PER_TASK])) for start in starts]


def run_read(task: ReadTask, world: World) -> ReadResult:
    """On a worker: read some manifests."""
    numbers: dict[str, int] = {}
    known: dict[bytes, tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def numbered(names: Names) -> tuple[tuple[int, ...], tuple[int, ...]]:
        own = tuple(numbers.setdefault(name, len(numbers)) for name in names.own)
        return own, tuple(numbers.setdefault(name, len(numbers)) for name in names.shared)

    def fragment(data: bytes, path: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        found = known.get(data)
        if found is None:
            found = known[data] = numbered(names_of_fragment(data, path))
        return found

    def read(entry: ManifestEntry) -> ManifestNames:
        store = SubtreeStore(world.store, entry.line) if entry.line else world.store
        data, where = store.get(entry.path), join_uri(store.location.uri, entry.path)
        try:
            references = decode_references(data, where)
            pairs = [numbered(references.others), *(fragment(each, where) for each in references.fragments)]
        except TablewrightError as problem:
            return ManifestNames(
                entry=entry, timestamp_ns=entry.modified_ns, own=BitMap(), shared=BitMap(), problem=problem
            )
        return ManifestNames(
            entry=entry,
            timestamp_ns=references.timestamp_ns or entry.modified_ns,
            own=BitMap([number for own, _ in pairs for number in own]),
            shared=BitMap([number for _, shared in pairs for number in shared]),
        )

    manifests = []
    for entry in task.entries:
        try:
            manifests.append(read(entry))
        except ObjectNotFound:
            continue  # another cleanup removed it
    return ReadResult(tuple(numbers), tuple(manifests))


@dataclass
class NameIndex:
    """The names that manifests refer to, folded from the results of all tasks. Mutable: :meth:`add` extends it."""

    numbers: dict[str, int] = field(default_factory=dict)
    manifests: dict[tuple[str, str], ManifestNames] = field(default_factory=dict)

    def add(self, result: ReadResult) -> None:
        """Take in the result of one task."""
        places = np.array([self.numbers.setdefault(name, len(self.numbers)) for name in result.names], np.uint32)
        for manifest in result.manifests:
            self.manifests[manifest.entry.key] = ManifestNames(
                entry=manifest.entry,
                timestamp_ns=manifest.timestamp_ns,
                own=_renumbered(manifest.own, places),
                shared=_renumbered(manifest.shared, places),
                problem=manifest.problem,
            )

    def numbers_of(self, names: Iterable[str]) -> BitMap:
        """The numbers of these names, which may be new."""
        return BitMap([self.numbers.setdefault(name, len(self.numbers)) for name in names])

    def names_in(self, numbers: BitMap) -> list[str]:
        """The names that have these numbers."""
        return [name for name, number in self.numbers.items() if number in numbers]


def _renumbered(bitmap: BitMap, places: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> BitMap:
    return BitMap(places[np.array(bitmap, np.int64)]) if len(bitmap) else BitMap()
