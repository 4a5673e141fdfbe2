"""``commit``: a version from files that were written before.

Tests: ``tests/unit/api/test_commit_batch.py``, ``tests/differential/test_change_transactions.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tablewright.api.operation import LanceOperation, Transaction
from tablewright.api.pinned import Pinned, place_of
from tablewright.api.translate import from_operation, to_operation
from tablewright.api.write import properties_of
from tablewright.checks import check_callable, whole_number
from tablewright.errors import CommitConflict, InvalidRequest, TableNotFound, WrongType
from tablewright.format import transaction as values
from tablewright.format.fragment import Fragment
from tablewright.jobs.table import Table
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.apply import Creation
from tablewright.transaction.commit import CommitOptions, commit
from tablewright.transaction.detached import commit_detached
from tablewright.world import World

__all__ = ["DEFAULT_COMMIT_TIMEOUT", "commit_transaction", "merged_appends"]

DEFAULT_COMMIT_TIMEOUT = timedelta(minutes=30)


def commit_transaction(
    base_uri: str | Path | Pinned,
    operation: LanceOperation.BaseOperation | Transaction,
    read_version: int | None = None,
    commit_lock: Callable[[int], Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    enable_v2_manifest_paths: bool | None = None,
    detached: bool | None = False,
    max_retries: int = 20,
    *,
    commit_message: str | None = None,
    enable_stable_row_ids: bool | None = None,
    commit_timeout: timedelta | None = DEFAULT_COMMIT_TIMEOUT,
    affected_rows: Any = None,
) -> Table:
    """Commit an operation whose files are already written, and return the table at its new version."""
    check_callable(commit_lock, "commit_lock", "a function of the version that returns a context manager")
    given, world = place_of(base_uri, storage_options)
    transaction = _transaction(operation, read_version, commit_message)
    base = _base(world, transaction, None if given is None else given.snapshot)
    transaction = replace(transaction, read_version=0 if base is None else base.version)
    if detached:
        if base is None:
            raise InvalidRequest("A detached version needs a table to be detached from.")
        snapshot = commit_detached(world, transaction, base)
    else:
        options = CommitOptions(
            max_retries=max_retries,
            timeout_seconds=_seconds(commit_timeout),
            v2_manifest_names=enable_v2_manifest_paths is not False,
            creation=Creation(stable_row_ids=bool(enable_stable_row_ids)),
        )
        if affected_rows is None and isinstance(operation, Transaction):
            affected_rows = operation.affected_rows
        affected = None if affected_rows is None else _affected(affected_rows)
        recheck = operation.recheck if isinstance(operation, Transaction) else None
        with commit_lock(transaction.read_version + 1) if commit_lock is not None else nullcontext():
            snapshot = commit(
                world, transaction, base=base, affected=affected, options=options, recheck=recheck
            ).snapshot
    return Table(snapshot) if given is None else given.at(snapshot)


def _seconds(timeout: timedelta | None) -> float:
    if timeout is None:
        return float("inf")
    if not isinstance(timeout, timedelta):
        raise InvalidRequest(f"commit_timeout must be a timedelta or None, got {timeout!r}.")
    return timeout.total_seconds()


def _affected(rows: Any) -> AffectedRows:
    if isinstance(rows, AffectedRows):
        return rows
    try:
        return AffectedRows.of_addresses(rows)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(f"affected_rows must be row addresses, which are whole numbers: {error}") from error


def _transaction(
    operation: LanceOperation.BaseOperation | Transaction, read_version: int | None, message: str | None
) -> values.Transaction:
    if isinstance(operation, Transaction):
        properties = properties_of(message, operation.transaction_properties)
        return values.Transaction(
            read_version=whole_number(operation.read_version, "read_version"),
            uuid=operation.uuid,
            operation=to_operation(operation.operation),
            properties=properties,
        )
    free = isinstance(operation, LanceOperation.Overwrite | LanceOperation.Restore)
    if read_version is None and not free:
        raise InvalidRequest("read_version is required for all operations except Overwrite and Restore")
    return values.Transaction(
        read_version=-1 if read_version is None else whole_number(read_version, "read_version"),
        uuid=str(uuid.uuid4()),
        operation=to_operation(operation),
        properties=properties_of(message, None),
    )


def _base(world: World, transaction: values.Transaction, given: Snapshot | None) -> Snapshot | None:
    """The version that the transaction was made from; ``None`` if the table is to be created by it."""
    creates = isinstance(transaction.operation, values.Overwrite)
    free = creates or isinstance(transaction.operation, values.Restore)
    if transaction.read_version < 1 and not free:  # taking it for the latest would skip every check for conflicts
        name = type(transaction.operation).__name__
        raise InvalidRequest(
            f"{name} needs the read_version it was made from, at least 1, not {transaction.read_version}."
        )
    if given is not None and transaction.read_version in (given.version, -1):
        return given
    try:
        return open_snapshot(world, None if transaction.read_version < 1 else transaction.read_version)
    except TableNotFound:
        if creates and transaction.read_version < 1:
            return None
        raise


def merged_appends(transactions: Sequence[Transaction]) -> Transaction:
    """Several append transactions as one, which refuses to be committed where one of them was committed before."""
    if not isinstance(transactions, Sequence) or not all(isinstance(each, Transaction) for each in transactions):
        raise WrongType(f"commit_batch takes a list of Transactions, not {type(transactions).__name__}.")
    if not transactions:
        raise InvalidRequest("commit_batch needs a list of at least one Transaction.")
    operations = [to_operation(transaction.operation) for transaction in transactions]
    appends = [operation for operation in operations if isinstance(operation, values.Append)]
    if len(appends) != len(operations):
        raise InvalidRequest("commit_batch takes append transactions only.")
    fragments = tuple(fragment for append in appends for fragment in append.fragments)
    read_version = min(transaction.read_version for transaction in transactions)
    return Transaction(
        read_version,
        from_operation(values.Append(fragments=fragments)),
        transaction_properties=_merged_properties(transactions),
        recheck=partial(_check_new_files, fragments, read_version),
    )


def _check_new_files(fragments: Sequence[Fragment], read_version: int, newest: Snapshot) -> None:
    """Refuse fragments that are in ``newest`` already: among those that came after ``read_version``."""
    ours = {(file.base_id, file.path) for fragment in fragments for file in fragment.files}
    highest = open_snapshot(newest.world, read_version).manifest.max_fragment_id
    for place, fragment_id in enumerate(newest.fragments.ids.tolist()):
        if highest is not None and fragment_id <= highest:
            continue
        again = [file.path for file in newest.fragments[place].files if (file.base_id, file.path) in ours]
        if again:
            reason = f"data file {again[0]} is in the table already: its fragment was committed before"
            raise CommitConflict("Append", "Append", newest.version, retryable=False, reason=reason)


def _merged_properties(transactions: Iterable[Transaction]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for transaction in transactions:
        merged |= transaction.transaction_properties or {}
    return merged
