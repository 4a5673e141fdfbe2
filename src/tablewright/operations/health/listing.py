"""One pass over the files of a table: sizes that manifests do not record, and what no kept version needs.

Listings stream. Only some sizes are kept: of deletion files, of data files of the measured version, of blobs beside
these, of indices. The rest is summed.

Tests: ``tests/unit/operations/health/test_history.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tablewright.format.naming import (
    DATA_DIR,
    DELETIONS_DIR,
    HINT_PATH,
    INDICES_DIR,
    TRANSACTIONS_DIR,
    VERSIONS_DIR,
    parse_manifest_name,
)
from tablewright.operations.health.names import Names
from tablewright.operations.health.values import ReclaimableFiles
from tablewright.storage.base import ObjectInfo, Store

__all__ = ["Listing", "list_table"]

_KINDS = {
    DATA_DIR: "data files",
    DELETIONS_DIR: "deletion files",
    INDICES_DIR: "index files",
    TRANSACTIONS_DIR: "transaction files",
    VERSIONS_DIR: "manifests",
}
_UNVERIFIED_NS = 7 * 24 * 3600 * 1_000_000_000


@dataclass(slots=True)
class Listing:
    """What the directories of a table hold.

    ``sizes`` has data and deletion files by path, ``beside`` the bytes of blobs by the path of their data file,
    ``indices`` those of index directories. ``has_old_files``: some file that no kept version needs is so old that a
    cleanup removes it whether another version names it or not.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    beside: Counter[str] = field(default_factory=Counter)
    indices: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    unverified_bytes: int = 0
    has_old_files: bool = False
    _files: Counter[str] = field(default_factory=Counter)
    _bytes: Counter[str] = field(default_factory=Counter)

    @property
    def reclaimable(self) -> tuple[ReclaimableFiles, ...]:
        """Files that nothing kept needs, by kind."""
        return tuple(
            ReclaimableFiles(kind=kind, files=self._files[kind], bytes=self._bytes[kind])
            for kind in _KINDS.values()
            if self._files[kind]
        )

    def add(self, info: ObjectInfo, directory: str, measured: Names) -> None:
        """Count a file, and keep its size where it is wanted."""
        self.bytes += info.size
        if directory == DELETIONS_DIR or info.path in measured.data:
            self.sizes[info.path] = info.size
        elif directory == INDICES_DIR:
            self.indices["/".join(info.path.split("/")[:2])] += info.size
        elif directory == DATA_DIR:
            owner = f"{info.path.rpartition('/')[0]}.lance"
            if owner in measured.data:
                self.beside[owner] += info.size

    def reclaim(self, info: ObjectInfo, directory: str) -> None:
        """Count a file as one that nothing kept needs."""
        self._files[_KINDS[directory]] += 1
        self._bytes[_KINDS[directory]] += info.size


def list_table(
    root: Store, measured: Names, kept: Names, kept_manifests: Iterable[str], named: Names | None, now_ns: int
) -> Listing:
    """List all directories. ``measured`` is what the measured version names, ``kept`` what has to stay, ``named`` what
    any manifest names; ``None`` if not all of them were read: then every file that need not stay is reclaimable.
    """
    found = Listing()
    manifests = frozenset(kept_manifests)
    for directory in _KINDS:
        for info in root.list(directory):
            found.add(info, directory, measured)
            if directory == VERSIONS_DIR:
                if info.path not in manifests and _is_version(info.path):
                    found.reclaim(info, directory)
            elif not kept.holds(info.path):
                is_young = info.modified_ns > now_ns - _UNVERIFIED_NS
                found.has_old_files |= not is_young
                if named is not None and is_young and not named.holds(info.path):
                    found.unverified_bytes += info.size
                else:
                    found.reclaim(info, directory)
    return found


def _is_version(path: str) -> bool:
    """A manifest of the table's history: neither the hint nor a detached version, which stay."""
    named = parse_manifest_name(path)
    return path != HINT_PATH and named is not None and named[1] != "detached"
