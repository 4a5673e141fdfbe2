"""The rows that were appended between two versions, for readers who follow a table that only grows.

Version by version the transaction says what happened (``docs/format/transactions.md#what-each-operation-does``), and
names the files of the rows that it brought. So no version before them is needed:

=============================================  =================================================================
Append; an Update that only inserts; creation  the rows of the new fragments, as they were in that version
Rewrite, indices, settings, columns            no row came or went
Delete, Update, Overwrite, Restore …           :class:`InvalidRequest`: rows that were read before have changed
=============================================  =================================================================

It needs no stable row ids; the change feed (:mod:`.change_feed`) follows all changes, and needs them.

Tests: tests/unit/operations/test_appended.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tablewright.errors import InvalidRequest
from tablewright.format.fragment import Fragment
from tablewright.format.transaction import (
    Append,
    CreateIndex,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
)
from tablewright.operations.change_feed.span import require_versions
from tablewright.operations.scan import ScanOptions, plan_scan
from tablewright.reading.scan_task import ScanTask
from tablewright.snapshot.files import read_transaction
from tablewright.snapshot.snapshot import Snapshot, open_snapshot

__all__ = ["appended_scans"]

_SAME_ROWS = (Rewrite, CreateIndex, ReserveFragments, UpdateConfig, UpdateBases, Project, Merge)


def appended_scans(newest: Snapshot, begin: int, end: int, options: ScanOptions) -> Iterator[ScanTask]:
    """Scans of the rows that came after version ``begin`` (0: before the table) up to ``end``, one for each version.

    :class:`~tablewright.errors.VersionNotFound` where one of these versions was cleaned up.
    """
    if begin == end:
        return
    require_versions(newest, begin + 1, end)
    for number in range(begin + 1, end + 1):
        after = newest if number == newest.version else open_snapshot(newest.world, number)
        ids = _new_fragments(after)
        if ids:
            yield plan_scan(after, replace(options, fragments=ids)).narrowed().whole


def _new_fragments(after: Snapshot) -> Sequence[int]:
    """The ids of the fragments that a version appended."""
    transaction = read_transaction(after.world.store, after.file)
    operation = None if transaction is None else transaction.operation
    if isinstance(operation, _SAME_ROWS):
        return ()
    brought = _brought(operation, creates=after.version == 1)
    if brought is None:
        what = "unknown" if operation is None else type(operation).__name__
        raise InvalidRequest(
            f"Version {after.version} of {after.location.uri} ({what}) changed rows that were there before, and a "
            "stream of appended rows can't say so. Follow all changes with the option changes=true, or begin after "
            f"it: start_version={after.version + 1} and a new checkpoint."
        )
    paths = {file.path for fragment in brought for file in fragment.files}
    last = after.fragments[max(0, len(after.fragments) - len(brought)) :]  # that is where new ones come
    found = [fragment.id for fragment in last if any(file.path in paths for file in fragment.files)]
    if len(found) != len(brought):
        found = [each.id for each in after.fragments if any(file.path in paths for file in each.files)]
    return found


def _brought(operation: Operation | None, *, creates: bool) -> Sequence[Fragment] | None:
    """The fragments that an operation adds; ``None`` if it does more than that."""
    match operation:
        case Append():
            return operation.fragments
        case Overwrite() if creates:
            return operation.fragments
        case Update() if not (operation.updated_fragments or operation.removed_fragment_ids):
            return operation.new_fragments
    return None
