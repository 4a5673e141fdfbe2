"""Cleanup as a job: which files no version needs any more, and their removal.

1. *Survey*. Read tags and branches, and every manifest of the table and of the branches that may share its files;
   decide which versions go; list the files; read the journals of interrupted cleanups. :func:`explain_cleanup` ends
   here.
2. *Versions*. Write a journal: the versions that go, and the names of files that only they use. Read tags and branches
   once more: the survey may have taken minutes, and from now on none begins to name these versions. Delete the
   manifests.
3. *Look again*. Read the manifests that came since the survey, or that could not be deleted: what they name stays. So
   do the files of a version that is being restored, which the transaction of the restore shows.
4. *Files*. Delete what is left, in chunks, concurrently, then the journal.

Why manifests go first: a version is either listed and whole, or gone. Each side writes first and looks then: a tag or
branch looks for journals (:mod:`tablewright.snapshot.removals`), a restore reads its version after its transaction is
there; cleanup looks for tags and branches after its journal, for new versions and transactions after it has deleted
manifests. So at least one of two sees the other, and no file goes that is reachable. A crash between 2 and 4 leaves a
table that works; the journal tells the next cleanup which files it may remove without waiting for seven days.

A writer that is under way has files that no manifest names: younger than seven days they stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pyroaring import BitMap

from tablewright.engine.base import Engine
from tablewright.engine.costs import Workload
from tablewright.engine.local import LocalEngine
from tablewright.engine.progress import Progress
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.cleanup_journal import JOURNAL_DIR, Journal, encode_journal, journal_path
from tablewright.format.naming import TRANSACTIONS_DIR, VERSIONS_DIR, branch_root
from tablewright.format.transaction import Restore, decode_transaction
from tablewright.jobs.table import Table
from tablewright.operations.cleanup.delete import delete_paced, plan_deletes, run_delete
from tablewright.operations.cleanup.files import (
    CleanupExplanation,
    CleanupFile,
    CleanupReferencedBranch,
    CleanupStats,
    stats_of,
)
from tablewright.operations.cleanup.kinds import BLOB, DIRECTORIES, INDEX, classify
from tablewright.operations.cleanup.options import CleanupOptions
from tablewright.operations.cleanup.plan import CleanupPlan, Reach, plan_files, reach_of, without
from tablewright.operations.cleanup.read import ManifestEntry, NameIndex, list_manifests, plan_reads, run_read
from tablewright.operations.cleanup.select import Refs, select_versions
from tablewright.snapshot.refs import list_branches, list_tags, main_world
from tablewright.snapshot.removals import FoundJournal, read_journals
from tablewright.snapshot.standing import check_standing
from tablewright.storage.base import ObjectInfo, ObjectNotFound, exists
from tablewright.storage.subtree import SubtreeStore, delete_empty_directories, is_link, unfinished_files
from tablewright.storage.uncommitted import discard_files

__all__ = ["clean_up", "explain_cleanup"]

_THREADS = 8
_COUNT_EVERY = 1000
_MANIFESTS_AT_ONCE = 1000
_JOURNAL_OLD_NS = 3600 * 1_000_000_000
"""A cleanup writes its journal again before every thousand manifests, so an older one was interrupted."""


def explain_cleanup(
    table: Table, options: CleanupOptions, *, include_files: bool = True, max_files: int | None = None
) -> CleanupExplanation:
    """What :func:`clean_up` would remove. Nothing is deleted."""
    survey = _Cleanup(table, options).survey()
    files = survey.plan.all_files
    shown = files[:max_files] if include_files else []
    return CleanupExplanation(
        uri=table.snapshot.location.uri,
        read_version=table.snapshot.version,
        removed_versions=tuple(sorted({entry.version for entry in survey.removed})),
        kept_versions=tuple(sorted(survey.kept_versions)),
        stats=stats_of(files),
        candidate_files=tuple(shown),
        candidate_files_truncated=include_files and len(shown) < len(files),
        candidate_file_limit=max_files,
        referenced_branches=tuple(CleanupReferencedBranch(*each) for each in sorted(survey.refs.parents.items())),
        waiting_files=survey.plan.waiting_files,
        waiting_bytes=survey.plan.waiting_bytes,
    )


def clean_up(table: Table, options: CleanupOptions, *, current: int | None = None) -> CleanupStats:
    """Remove old versions, and the files that no version needs any more.

    ``current`` is the version from which on all stay, by default the table's own.
    """
    return _Cleanup(table, options, current).run()


def may_remove(table: Table, options: CleanupOptions) -> bool:
    """Whether a cleanup has a version to remove, or an interrupted one to finish. Reads one manifest and not all: that
    of the oldest version that might go. Where clocks of writers differ, a younger one may already be old enough.
    """
    return _Cleanup(table, options).may_remove()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    """What was found before anything is deleted."""

    refs: Refs
    removed: tuple[ManifestEntry, ...]
    kept_versions: frozenset[int]
    reach: Reach
    journals: tuple[FoundJournal, ...]
    plan: CleanupPlan


class _Cleanup:
    """One cleanup. Mutable: it learns names as it reads manifests."""

    def __init__(self, table: Table, options: CleanupOptions, current: int | None = None) -> None:
        self._table, self._options = table, options
        self._current = table.snapshot.version if current is None else current
        self._world, self._store = table.world, table.world.store
        self._branch = table.snapshot.branch
        self._main = main_world(self._world, self._branch)
        self._names = NameIndex()

    # ---- looking

    def survey(self) -> _Survey:
        """Read everything that the decision needs."""
        self._check_possible()
        refs = self._refs()
        entries = self._entries(refs)
        self._read(entries)
        own = [entry for entry in entries if not entry.line and entry.key in self._names.manifests]
        removed = self._removed(own, refs)
        journals = tuple(read_journals(self._store))
        reach = reach_of(self._names, removed, {name for found in journals for name in found.journal.names})
        plan = plan_files(
            self._names,
            reach,
            removed,
            self._listing(),
            self._options,
            now_ns=self._world.clock.now_ns(),
            nested=self._nested(refs),
        )
        gone = {entry.version for entry in removed}
        kept = frozenset(entry.version for entry in own if not entry.is_detached) - gone
        return _Survey(refs=refs, removed=removed, kept_versions=kept, reach=reach, journals=journals, plan=plan)

    def may_remove(self) -> bool:
        """Judge by the oldest version that might go."""
        self._check_possible()
        if any(True for _ in read_journals(self._store)):
            return True
        refs = self._refs()
        own = {entry.version: entry for entry in list_manifests(self._store) if not entry.is_detached}
        ages = dict.fromkeys(own, 0)  # as if all of them were as old as can be
        candidates = self._selected(ages, refs)
        if not candidates:
            return False
        oldest = own[min(candidates)]
        self._read([oldest])
        found = self._names.manifests.get(oldest.key)
        return found is None or oldest.version in self._selected({**ages, oldest.version: found.timestamp_ns}, refs)

    def _check_possible(self) -> None:
        """Refuse a handle of a table that was replaced, and directories that are links."""
        check_standing(self._table.snapshot)
        for directory in (VERSIONS_DIR, JOURNAL_DIR, *DIRECTORIES):
            if is_link(self._store, directory):
                raise UnsupportedFeature(
                    f"{directory} of {self._store.location.uri} is a symbolic link, and cleanup deletes nothing "
                    "through links: mount the other place there instead. Nothing was removed."
                )

    def _refs(self) -> Refs:
        """Tags on this line of versions, and branches that begin from it."""
        branches = list_branches(self._main.store)
        return Refs(
            {name: tag.version for name, tag in list_tags(self._main.store).items() if tag.branch == self._branch},
            {name: each.parent_version for name, each in branches.items() if each.parent_branch == self._branch},
            frozenset(branches),
        )

    def _entries(self, refs: Refs) -> list[ManifestEntry]:
        """The manifests of this line, and of the branches that may name its files; main names no file of a branch."""
        entries = list_manifests(self._store)
        for branch in sorted(refs.branches - {self._branch}):
            line = branch_root(branch)
            entries += list_manifests(SubtreeStore(self._main.store, line), line)
        return entries

    def _read(self, entries: Sequence[ManifestEntry]) -> None:
        """Learn the names of these manifests. A branch is read through its table, as its neighbours are."""
        own = [entry for entry in entries if not entry.line]
        for world, some in ((self._world, own), (self._main, [entry for entry in entries if entry.line])):
            describe = f"Reading versions of {world.store.location.uri}"
            tasks, size = plan_reads(some), sum(entry.size for entry in some)
            engine = self._engine(Workload(bytes_read=size, files=len(some), tasks=len(tasks)))
            for result in engine.map(run_read, tasks, world, describe=describe) if tasks else ():
                self._names.add(result)

    def _removed(self, own: Sequence[ManifestEntry], refs: Refs) -> tuple[ManifestEntry, ...]:
        timestamps = {
            entry.version: self._names.manifests[entry.key].timestamp_ns for entry in own if not entry.is_detached
        }
        selected = self._selected(timestamps, refs)
        removed = (entry for entry in own if not entry.is_detached and entry.version in selected)
        return tuple(sorted(removed, key=lambda entry: (entry.version, entry.path)))

    def _selected(self, timestamps: Mapping[int, int], refs: Refs) -> frozenset[int]:
        return select_versions(
            timestamps,
            self._current,
            self._options,
            refs,
            now_ns=self._world.clock.now_ns(),
            uri=self._store.location.uri,
        )

    def _listing(self) -> Iterator[ObjectInfo]:
        """Every file that may be dead, one at a time."""
        count = 0
        with Progress(f"Listing {self._store.location.uri}") as progress:
            for directory in DIRECTORIES:
                for info in chain(self._store.list(directory), unfinished_files(self._store, directory)):
                    count += 1
                    if count % _COUNT_EVERY == 0:
                        progress.update(count)
                    yield info

    def _nested(self, refs: Refs) -> list[str]:
        """Directories of other branches inside those that are searched, relative to this branch's own.

        The files of a branch called ``{ours}/data`` have paths of other shapes than ours, so it needs no care.
        """
        if self._branch is None:
            return []
        inside = f"{self._branch}/"
        below = [branch.removeprefix(inside) for branch in refs.branches if branch.startswith(inside)]
        return [path for path in below if "/" in path]

    def _engine(self, work: Workload) -> Engine:
        """Threads that mostly wait for the store, or Spark if the caller wants it or the manifests are that large."""
        engine = self._table.choose(work).engine
        return LocalEngine(self._options.delete_concurrency or _THREADS) if engine.in_process else engine

    # ---- removing

    def run(self) -> CleanupStats:
        """Survey, then remove."""
        survey = self.survey()
        check_standing(self._table.snapshot)
        gone, own = frozenset[str](), list[str]()
        if survey.removed:
            journal = journal_path(self._world.ids.uuid())
            removed = self._announced(survey, journal)
            if removed is None:  # a tag or branch came during the survey: decide again
                discard_files(self._store, [journal])
                return self.run()
            gone, own = removed, [journal]
        kept = self._look_again(survey, gone)
        files = without(survey.plan, self._names, kept)
        failed = self._delete([file.path for file in files])
        deleted = [file for file in files if file.path not in failed]
        self._prune(deleted)
        if not failed:
            discard_files(self._store, [*own, *self._finished(survey, survey.reach.kept | kept)])
            delete_empty_directories(self._store, JOURNAL_DIR)
        manifests = [file for file in survey.plan.manifests if file.path in gone]
        return stats_of([*manifests, *deleted], len(failed) + len(survey.removed) - len(manifests))

    def _announced(self, survey: _Survey, path: str) -> frozenset[str] | None:
        """Write the journal, then delete the manifests; the paths of those that are gone.

        ``None``: some version is named by a tag or branch that the survey did not see, and nothing was deleted. Later
        on, such a version is passed over.
        """
        journal = Journal(
            frozenset(entry.version for entry in survey.removed), frozenset(self._names.names_in(survey.reach.dead))
        )
        gone: set[str] = set()
        for start in range(0, len(survey.removed), _MANIFESTS_AT_ONCE):
            self._store.put(path, encode_journal(journal.versions, journal.names))  # again, so that it is not old
            named = self._refs().versions
            if not start and named & journal.versions:
                return None
            chunk = [
                entry.path for entry in survey.removed[start : start + _MANIFESTS_AT_ONCE] if entry.version not in named
            ]
            unsure = self._delete(chunk)
            gone.update(path for path in chunk if path not in unsure or not exists(self._store, path))
        return frozenset(gone)

    def _look_again(self, survey: _Survey, gone: Collection[str]) -> BitMap:
        """What is named by manifests that came since the survey, or that could not be deleted."""
        new = [entry for entry in self._entries(self._refs()) if entry.key not in self._names.manifests]
        self._read(new)
        kept = BitMap()
        for entry in (*new, *(entry for entry in survey.removed if entry.path not in gone)):
            manifest = self._names.manifests.get(entry.key)
            if manifest is None:
                continue  # gone again
            if manifest.problem is not None:
                raise manifest.problem
            kept |= manifest.own | manifest.shared
        for version in self._restores() if survey.removed else ():
            for entry in survey.removed:
                if entry.version == version:
                    kept |= self._names.manifests[entry.key].own
        return kept

    def _restores(self) -> set[int]:
        """The versions that restores under way name. Their transactions are there, and in no version yet."""
        found = set()
        for info in self._store.list(TRANSACTIONS_DIR):
            if info.path in self._names.numbers or classify(info.path) is None:
                continue
            try:
                operation = decode_transaction(self._store.get(info.path), info.path).operation
            except (ObjectNotFound, CorruptTable, UnsupportedFeature):
                continue
            if isinstance(operation, Restore):
                found.add(operation.version)
        return found

    def _delete(self, paths: Sequence[str]) -> dict[str, str]:
        """Delete files; those that the store did not delete, with the reason."""
        if not paths:
            return {}
        rate = self._options.delete_rate_limit
        if rate is not None:
            return delete_paced(paths, self._world, rate).failed
        describe = f"Deleting files of {self._store.location.uri}"
        results = self._engine(Workload()).map(run_delete, plan_deletes(paths), self._world, describe=describe)
        return {path: reason for result in results for path, reason in result.failed.items()}

    def _prune(self, deleted: Iterable[CleanupFile]) -> None:
        """File systems keep empty directories: those of blobs and indices that were deleted go."""
        for directory in {file.path.rpartition("/")[0] for file in deleted if file.kind in (BLOB, INDEX)}:
            delete_empty_directories(self._store, directory)

    def _finished(self, survey: _Survey, kept: BitMap) -> list[str]:
        """Journals of interrupted cleanups whose files are gone.

        One that names a file which is kept may be that of a cleanup under way: it stays until it is old.
        """
        now_ns = self._world.clock.now_ns()
        return [
            found.path
            for found in survey.journals
            if now_ns - found.modified_ns > _JOURNAL_OLD_NS or not self._names.numbers_of(found.journal.names) & kept
        ]
