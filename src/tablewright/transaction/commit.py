"""The commit loop: optimistic concurrency with rebase and back-off.

1. Find the newest version. Every version that came after the one we read is looked up in the conflict table, oldest
   first; each is looked at once.
2. *Rebase* what can be moved, fail on a true conflict.
3. Write the transaction file, *apply* the transaction to the newest manifest, and publish the next one.
4. If the name is taken, back off with jitter, and continue at 1 with the new versions.

A table may be dropped, and created again, during a commit. So before 3 the version that we read is looked up once
more (:mod:`tablewright.snapshot.standing`), and after 3 the one that we built on. If that one is gone, and no cleanup
took it, our manifest is in another table than the one we read: it is removed, and the commit fails.

A restore reads the old version after its transaction file is there. Cleanup looks for such files after it has removed
manifests, so either the restore finds its version gone, or cleanup finds the restore, and keeps the files.

Reading what others wrote takes time, in which they write more. So 1 is repeated until we are at most one version
behind, and the wait grows with the number of attempts, not with the time waited: a slow writer among fast ones is not
starved.

A rewrite (compaction) in between that replaced fragments of ours begins a new epoch: what we commit is rebased onto the
version before it, translated through it (:mod:`.translate`), and from then on it is a transaction on the version that
the rewrite made. So chains of rewrites with other writers in between are followed step by step. Where rows can't be
followed for certain, the operation has to run again.

A version in between that carries our own uuid means that an earlier attempt of ours was committed after all: then
we are done, and nothing is written twice.

Format: ``docs/format/transactions.md#commit``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from tablewright.checks import whole_number
from tablewright.errors import (
    CommitConflict,
    CommitUnknown,
    CorruptTable,
    InvalidRequest,
    StorageError,
    TableExists,
    TablewrightError,
    VersionNotFound,
)
from tablewright.format.envelope import ManifestFile, encode_ready_manifest
from tablewright.format.flags import check_writable
from tablewright.format.manifest import Manifest
from tablewright.format.manifest_codec import ready_to_write
from tablewright.format.naming import manifest_path, transaction_file_path, transaction_path
from tablewright.format.transaction import (
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    Transaction,
)
from tablewright.snapshot.files import (
    read_manifest,
    read_transaction,
    write_hint,
)
from tablewright.snapshot.locate import VersionEntry, find_version, latest_version, probe_latest
from tablewright.snapshot.manifests import keep_manifest
from tablewright.snapshot.snapshot import Snapshot, check_counted
from tablewright.snapshot.standing import Standing, shares_files, standing, stands_with
from tablewright.storage.address import join_uri
from tablewright.storage.base import ObjectNotFound
from tablewright.storage.subtree import put_advice
from tablewright.storage.together import answers_slowly, together
from tablewright.storage.uncommitted import discard_files
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.apply import Creation, apply
from tablewright.transaction.committer import Published, publish, withdraw
from tablewright.transaction.conflicts import Outcome, Verdict, judge
from tablewright.transaction.crossing import Crossing, NotFollowed, missing_files_end_it
from tablewright.transaction.deferral import Record, caught_up, check_trimmed, deferred_fragments
from tablewright.transaction.encoded import encoded
from tablewright.transaction.events import log_commit, log_lost_race
from tablewright.transaction.passed import Passed
from tablewright.transaction.rebase import past
from tablewright.transaction.rebaser import Rebaser
from tablewright.transaction.recheck import FollowsRewrites, Recheck, past_rewrite
from tablewright.transaction.recorded import record
from tablewright.transaction.row_id_switch import enables_row_ids
from tablewright.transaction.stream_state import check_new_batch
from tablewright.transaction.translate import translate
from tablewright.world import World

__all__ = ["CommitOptions", "Committed", "Recheck", "commit"]

_CATCH_UPS_MAX = 8
_BACK_OFF_SECONDS_MAX = 1.0
_INLINE_BYTES_MAX = 1 << 16
"""Larger transactions are in their own file only: every reader of the table fetches the manifest file."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """How long to try, and what only a new table needs.

    ``max_retries`` counts lost races; 0 means that any newer version fails an overwrite.
    """

    max_retries: int = 20
    timeout_seconds: float = 1800.0
    v2_manifest_names: bool = True
    creation: Creation = field(default_factory=Creation)

    def __post_init__(self) -> None:
        whole_number(self.max_retries, "max_retries")
        if self.timeout_seconds <= 0:
            raise InvalidRequest(f"The commit timeout must be positive, got {self.timeout_seconds} s.")


@dataclass(frozen=True, slots=True)
class Committed:
    """The new version, how many times we tried, and which rows we touched after all.

    A row that another writer deleted first is not among ``affected``. ``passed`` says which compactions it was rebased
    past, and what that cost.
    """

    snapshot: Snapshot
    attempts: int
    affected: AffectedRows | None = None
    passed: Passed = field(default_factory=Passed)


def commit(
    world: World,
    transaction: Transaction,
    *,
    base: Snapshot | None,
    affected: AffectedRows | None = None,
    options: CommitOptions | None = None,
    recheck: Recheck | None = None,
) -> Committed:
    """Commit ``transaction``, which was planned on ``base`` (``None``: the table does not exist yet).

    ``recheck`` is called before the transaction is put on a newer version than ``base``: it looks at what is new there,
    and raises :class:`~tablewright.errors.CommitConflict` if the operation has to run again because of it.
    """
    loop = _Loop(world, transaction, affected, options or CommitOptions(), recheck, started=world.clock.monotonic())
    committed = loop.create() if base is None else loop.run(base)
    record(committed.snapshot)
    seconds = world.clock.monotonic() - loop.started
    log_commit(committed.snapshot, transaction, base, committed.attempts, seconds, committed.passed)
    return committed


def _name(operation: Operation) -> str:
    return type(operation).__name__


class _Loop:
    """The state of one commit. Mutable on purpose: it reads new versions and rebases its transaction past them."""

    def __init__(
        self,
        world: World,
        transaction: Transaction,
        affected: AffectedRows | None,
        options: CommitOptions,
        recheck: Recheck | None,
        *,
        started: float,
    ) -> None:
        self.recheck = recheck
        self.world, self.transaction, self.affected, self.options = world, transaction, affected, options
        self.started = started
        self.attempts = 0
        self.written: list[str] = []
        self.written_transaction = b""
        self.rebaser: Rebaser | None = None
        self.passed = Passed()
        self.record = Record(world)

    # -- the two ways in

    def create(self) -> Committed:
        if latest_version(self.world.store) is not None:
            raise TableExists(self.world.store.location.uri)
        created = self._guarded(lambda: self._attempt(None, None))
        if created is None:
            self._discard(self.written)
            raise TableExists(self.world.store.location.uri)
        return created

    def run(self, base: Snapshot) -> Committed:
        self.rebaser = Rebaser(self.world, base, self.transaction, self.affected)
        return self._guarded(lambda: self._until_committed(base))

    def _until_committed(self, base: Snapshot) -> Committed:
        newest = base
        while True:
            newest_or_ours = self._catch_up(newest)
            if isinstance(newest_or_ours, Committed):
                return newest_or_ours
            known, newest, began = newest, newest_or_ours, self.world.clock.monotonic()
            committed = self._attempt(newest, known)
            if committed is not None:
                return committed
            self._back_off(newest.version, self.world.clock.monotonic() - began)

    # -- learning what came in between

    def _catch_up(self, seen: Snapshot) -> Snapshot | Committed:
        for _ in range(_CATCH_UPS_MAX):
            newest = self._look_ahead(seen)
            if isinstance(newest, Committed) or newest.version <= seen.version + 1:
                return newest
            seen = newest
        return seen

    def _look_ahead(self, seen: Snapshot) -> Snapshot | Committed:
        store = self.world.store
        entry = self._probe(seen)
        if entry.version <= seen.version:
            return seen
        before = seen
        for version in range(seen.version + 1, entry.version + 1):
            at = entry if version == entry.version else find_version(store, version)
            file, theirs = self._read_version(at, version)
            assert at is not None
            newest = Snapshot(world=self.world, entry=at, file=file)
            if theirs.uuid == self.transaction.uuid:
                return self._committed(newest)
            if self.options.max_retries == 0 and isinstance(self.transaction.operation, Overwrite):
                raise self._exhausted(version)
            self._check(theirs.operation, version)
            self._learn(before, newest, theirs.operation)
            before = newest
        check_counted(newest.file)
        newest = newest.after(seen)
        with self._following(newest.version):
            if self.rebaser is not None:
                self.transaction = self.rebaser.onto(newest) or self.transaction
            if self.recheck is not None:
                self.recheck(newest)
        return newest

    def _probe(self, seen: Snapshot) -> VersionEntry:
        """The newest version. Where a request takes long, the transaction's file is written meanwhile.

        That is safe: what depends on the file is looked up later, in :meth:`_attempt`, and a commit that fails removes
        it.
        """
        store, looks = self.world.store, partial(probe_latest, self.world.store, seen.version, seen.entry)
        if self.written or not answers_slowly(store):
            return looks()
        entry: VersionEntry = together(store, looks, self._write_transaction)[0]
        return entry

    def _check(self, theirs: Operation, version: int) -> None:
        """Raise what the conflict table says about one that came in between."""
        verdict = self._judged(theirs)
        if verdict.outcome in (Outcome.RETRY, Outcome.INCOMPATIBLE):
            raise CommitConflict(
                _name(self.transaction.operation),
                _name(theirs),
                version,
                retryable=verdict.outcome == Outcome.RETRY,
                fragments=verdict.fragments,
                reason=verdict.reason,
            )

    def _learn(self, before: Snapshot, newest: Snapshot, theirs: Operation) -> None:
        """What ``newest`` changed, for the rebase to come; a rewrite of what is ours is passed at once."""
        if isinstance(theirs, Rewrite) and self._is_rewritten_by(theirs):
            self._cross(Crossing(before, newest, theirs))
            return
        if self.rebaser is not None:
            self.rebaser.learn(theirs, newest.version)
        stable = newest.manifest.stable_row_ids
        recorded = deferred_fragments(newest) if isinstance(theirs, Rewrite) else ()
        operation = past(self.transaction.operation, theirs, stable_row_ids=stable, recorded=recorded)
        self.transaction = replace(self.transaction, operation=operation)

    def _is_rewritten_by(self, theirs: Rewrite) -> bool:
        ours = self.rebaser is not None and self.rebaser.is_rewritten_by(theirs)
        return ours or isinstance(self.recheck, FollowsRewrites)

    def _cross(self, crossing: Crossing) -> None:
        """Rebase onto the version before a rewrite, and through it."""
        assert self.rebaser is not None
        began = self.world.clock.monotonic()
        check_counted(crossing.before.file)
        check_counted(crossing.after.file)
        with self._following(crossing.after.version, "Rewrite"):
            transaction = self.rebaser.onto(crossing.before) or self.transaction
            if self.recheck is not None:
                self.recheck(crossing.before)
            translated = translate(self.world, transaction, self.rebaser.affected, crossing)
            self.rebaser, self.transaction = self.rebaser.past(crossing.after, translated), translated.transaction
            if self.recheck is not None:
                self.recheck = past_rewrite(self.recheck, crossing)
        seconds = self.world.clock.monotonic() - began
        self.passed += Passed(rewrites=1, rows=translated.rows, bytes_carried=translated.bytes_carried, seconds=seconds)

    @contextmanager
    def _following(self, version: int, theirs: str = "unknown") -> Iterator[None]:
        """Where rows can't be followed, or a file of an earlier version was cleaned up, the operation runs again."""
        try:
            with missing_files_end_it():
                yield
        except NotFollowed as error:
            ours = _name(self.transaction.operation)
            raise CommitConflict(ours, theirs, version, reason=error.reason) from error

    def _judged(self, theirs: Operation) -> Verdict:
        if enables_row_ids(self.transaction):  # it follows from the newest version alone
            return Verdict(Outcome.REBASE)
        return judge(self.transaction.operation, theirs, has_affected_rows=self.affected is not None)

    def _read_version(self, at: VersionEntry | None, version: int) -> tuple[ManifestFile, Transaction]:
        ours = _name(self.transaction.operation)
        if at is None:
            raise CommitConflict(ours, "unknown", version, reason=f"version {version} was removed before we saw it")
        with self._following(version):
            file = read_manifest(self.world.store, at)
        theirs = read_transaction(self.world.store, file)
        if theirs is None:
            reason = f"Dataset version {version} does not have a transaction file, so what it changed is not known"
            raise CommitConflict(ours, "unknown", version, reason=reason)
        return file, theirs

    # -- the table may have been dropped, and created again

    def _check_history(self, known: Snapshot, newest: Snapshot) -> None:
        """``known`` must still be there now that ``newest`` was read: then both are versions of one table."""
        found = standing(self.world, known)
        if found is Standing.SAME:
            return
        if found is Standing.GONE and newest.version > known.version:
            reason = f"version {known.version}, which it was planned on, was cleaned up, or the table was replaced"
            raise CommitConflict(_name(self.transaction.operation), "unknown", newest.version, reason=reason)
        raise self._replaced(known)

    def _confirm(self, below: Snapshot, ours: Snapshot) -> None:
        """Our version is published on top of ``below``; take it back if the table of that is no longer there."""
        try:
            found = standing(self.world, below)
            if found is Standing.SAME or (found is Standing.GONE and self._was_cleaned_up(below, ours)):
                return
        except StorageError:
            return  # published it is; the store does not say more
        self._take_back(ours, f"version {below.version} is gone")
        raise self._replaced(below)

    def _was_cleaned_up(self, below: Snapshot, ours: Snapshot) -> bool:
        """Whether ``below`` is gone because of a cleanup: the transaction file that we wrote while it was there is not.

        If ours was cleaned up since, a later version of the same table shares a data file with it.
        """
        if stands_with(self.world, below, self.written[-1]):
            return True
        latest = latest_version(self.world.store)
        if latest is None or latest.version <= ours.version:
            return False
        try:
            newest = Snapshot(world=self.world, entry=latest, file=read_manifest(self.world.store, latest))
        except (ObjectNotFound, CorruptTable):
            return False
        return shares_files(ours, newest)

    def _take_back(self, ours: Snapshot, why: str) -> None:
        """Remove our version, unless others have committed on top of it."""
        uri, uuid = self.world.store.location.uri, self.transaction.uuid
        latest = latest_version(self.world.store)
        if latest is not None and latest.version > ours.version:
            raise CommitUnknown(uri, ours.version, uuid, f"{why}, and others have committed since")
        try:
            withdraw(self.world, ours.entry.path, self.transaction)
        except StorageError as error:
            raise CommitUnknown(uri, ours.version, uuid, str(error)) from error

    def _replaced(self, known: Snapshot) -> VersionNotFound:
        what = "The table" if known.branch is None else f"Branch {known.branch}"
        hint = f"{what} was dropped or replaced since it was opened; nothing of this commit is there. Open it again."
        return VersionNotFound(self.world.store.location.uri, f"Version {known.version}", hint)

    # -- one try

    def _attempt(self, newest: Snapshot | None, known: Snapshot | None) -> Committed | None:
        """Publish on top of ``newest``. ``None``: another writer took the name."""
        world = self.world
        self.attempts += 1
        manifest = None if newest is None else caught_up(newest, self.transaction.operation)
        if newest is not None and manifest is not None:
            check_writable(manifest.writer_flags, world.store.location.uri)
            check_trimmed(newest, self.transaction.operation)
            check_new_batch(manifest.config, self.transaction.properties)
        name, data = self._write_transaction()
        if newest is not None and known is not None:
            self._check_history(known, newest)  # after our file is there: see stands_with
        after = apply(
            manifest,
            self.transaction,
            timestamp_ns=world.clock.now_ns(),
            transaction_file=name.rsplit("/", 1)[-1],
            creation=self.options.creation,
            restored=self._restored(manifest),
        )
        if newest is not None:
            after = self.record.extended(newest, self.transaction.operation, after)
        after = ready_to_write(after)
        v2 = self.options.v2_manifest_names if newest is None else newest.entry.v2
        path = manifest_path(after.version, v2=v2)
        inline = len(data) <= _INLINE_BYTES_MAX
        encoded = encode_ready_manifest(after, data if inline else b"")
        if publish(world, path, encoded, self.transaction, after.version) is Published.THEIRS:
            return None
        entry = VersionEntry(version=after.version, path=path, v2=v2, size=len(encoded), modified_ns=after.timestamp_ns)
        where = join_uri(world.store.location.uri, path)
        file = ManifestFile(manifest=after, transaction_bytes=data, path=where)
        if inline:
            keep_manifest(where, encoded, file)
        snapshot = Snapshot(world=world, entry=entry, file=file)
        if newest is not None:
            self._confirm(newest, snapshot)
        write_hint(world.store, after.version)
        return self._committed(snapshot if newest is None else snapshot.after(newest))

    def _write_transaction(self) -> tuple[str, bytes]:
        """Write the transaction's own file, unless it is there already; its path, and its bytes."""
        data, store = encoded(self.transaction, _INLINE_BYTES_MAX), self.world.store
        name = transaction_path(self.transaction.read_version, self.transaction.uuid)
        if data != self.written_transaction:
            self.written.append(name)
            if len(data) <= _INLINE_BYTES_MAX:  # the manifest holds it as well
                put_advice(store, name, data)
            else:
                store.put(name, data)
            self.written_transaction = data
        return name, data

    def _committed(self, snapshot: Snapshot) -> Committed:
        """Done: what earlier attempts wrote and this version does not need goes."""
        if self.rebaser is None:
            return Committed(snapshot, self.attempts, self.affected, self.passed)
        transaction_file = transaction_file_path(snapshot.manifest.transaction_file or "")
        self._discard([path for path in self.written if path != transaction_file] + self.rebaser.needless(snapshot))
        self._discard(self.record.needless(snapshot))
        return Committed(snapshot, self.attempts, self.rebaser.affected, self.passed)

    def _restored(self, manifest: Manifest | None) -> Manifest | None:
        operation = self.transaction.operation
        if not isinstance(operation, Restore) or manifest is None:
            return None
        at = find_version(self.world.store, operation.version)
        if at is None:
            raise VersionNotFound(self.world.store.location.uri, f"Version {operation.version}")
        file = read_manifest(self.world.store, at)
        check_counted(file)
        return file.manifest

    def _back_off(self, version: int, try_seconds: float) -> None:
        elapsed = self.world.clock.monotonic() - self.started
        if self.attempts > self.options.max_retries or elapsed > self.options.timeout_seconds:
            raise self._exhausted(version + 1)
        log_lost_race(self.world.store.location.uri, self.transaction, version + 1, self.attempts)
        seconds = max(0.005, try_seconds) * 2 ** min(self.attempts - 1, 3)
        self.world.clock.sleep(min(_BACK_OFF_SECONDS_MAX, seconds) * self.world.jitter())

    def _exhausted(self, version: int) -> CommitConflict:
        reason = f"Failed to commit the transaction after {self.options.max_retries} retries"
        return CommitConflict(_name(self.transaction.operation), "unknown", version, reason=reason)

    # -- cleaning up

    def _guarded(self, work: Callable[[], T]) -> T:
        """If the transaction certainly failed, remove the files that were written for the commit."""
        try:
            return work()
        except CommitUnknown:
            raise  # it may be visible: what it refers to has to stay
        except TablewrightError:
            self._discard(self.written + self.record.written + ([] if self.rebaser is None else self.rebaser.written))
            raise

    def _discard(self, paths: list[str]) -> None:
        discard_files(self.world.store, paths)
