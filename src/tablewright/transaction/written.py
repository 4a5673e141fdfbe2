"""Whether the files that a transaction brings still exist, asked before a commit that comes late.

Files that no version names are safe from cleanup for seven days. A writer that takes longer, or works beside a cleanup
with ``delete_unverified=True``, may lose its files before it commits, and then a version would name files that are
gone. So a commit that comes long after its operation began looks for them first. Sooner it does not: that would cost
every commit a request per file.

Tests: ``tests/unit/transaction/test_written.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tablewright.errors import StorageError
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.naming import DATA_DIR, DELETIONS_DIR, INDICES_DIR, data_path, deletion_path, index_dir
from tablewright.format.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Rewrite,
    Transaction,
    Update,
)
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import Store, exists
from tablewright.world import World

__all__ = ["LATE_SECONDS", "check_written", "new_files"]

LATE_SECONDS = 3600.0
"""A commit that comes longer than this after its operation began looks whether its files exist."""

_HEADS_MAX = 32


def check_written(world: World, transaction: Transaction, base: Snapshot | None, began: float) -> None:
    """Raise :class:`StorageError` if a late transaction refers to new files that are gone. Nothing is committed then.

    ``began`` is when the operation began, on the world's monotonic clock.
    """
    if world.clock.monotonic() - began <= LATE_SECONDS:
        return
    fragments = FragmentList() if base is None else base.fragments
    gone = _missing(world.store, new_files(transaction.operation, fragments))
    if gone:
        error = StorageError(
            f"{len(gone)} files that were written for {world.store.location.uri} are gone, {min(gone)} among them. "
            "They were cleaned up before the commit (delete_unverified=True, or after seven days), or the table was "
            "dropped. Nothing was committed. Run it again; use delete_unverified only while nothing writes."
        )
        error.nothing_written = True
        raise error


def new_files(operation: Operation, before: FragmentList) -> set[str]:
    """Paths of the data, deletion and index files in the table's own directory that ``operation`` brings."""
    named = set(_files(_fragments(operation)))
    if isinstance(operation, DataReplacement):
        named |= {data_path(each.new_file.path) for each in operation.replacements if each.new_file.base_id is None}
    named = named.difference(_files(before)) if named else named
    return named | set(_index_files(operation))


def _index_files(operation: Operation) -> Iterator[str]:
    match operation:
        case Rewrite():
            written = [(entry.new_id, entry.new_index_files) for entry in operation.rewritten_indices]
        case CreateIndex():
            written = [(index.uuid, index.files) for index in operation.new_indices if index.base_id is None]
        case _:
            return
    yield from (f"{index_dir(uuid)}/{file.path}" for uuid, files in written for file in files)


def _fragments(operation: Operation) -> Iterable[Fragment]:
    match operation:
        case Append() | Overwrite() | Merge():
            return operation.fragments
        case Delete():
            return operation.updated_fragments
        case Update():
            return (*operation.updated_fragments, *operation.new_fragments)
        case Rewrite():
            return [fragment for group in operation.groups for fragment in group.new_fragments]
        case _:
            return ()


def _files(fragments: Iterable[Fragment]) -> Iterator[str]:
    for fragment in fragments:
        yield from (data_path(file.path) for file in fragment.files if file.base_id is None)
        deletion = fragment.deletion
        if deletion is not None and deletion.base_id is None:
            yield deletion_path(fragment.id, deletion)


def _missing(store: Store, paths: set[str]) -> set[str]:
    """Those of the paths where nothing is: one request each if they are few, else from listings."""
    if len(paths) <= _HEADS_MAX:
        return {path for path in paths if not exists(store, path)}
    left = set(paths)
    named = {path.split("/", 1)[0] for path in paths}
    for directory in (each for each in (DATA_DIR, DELETIONS_DIR, INDICES_DIR) if each in named):
        for info in store.list(directory):
            left.discard(info.path)
    return left
