"""Delete: rows that match are hidden behind deletion vectors, and the next snapshot says so (fact sheet §1.6).

1. *match*: a task per data file finds the positions of its live rows that match.
2. *write*: what was deleted before and what goes now, united per data file, goes into new index files. In a table
   without buckets the index files that held touched vectors are replaced: their other vectors go to new files too. In
   a bucketed table a bucket has one index file, which is written whole.
3. *commit*: a new index manifest (the full list), new manifest lists (the same data files), and the snapshot, which is
   made visible by put-if-absent. If another writer was quicker, all that was written is removed and the table is read
   again.

A data file never changes, and its vector only grows; so what a task found stays true on newer snapshots, less what
others have deleted meanwhile. Only files that came since then are searched after a lost race; if the columns changed,
all are.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tablewright._version import __version__
from tablewright.errors import AccessDenied, CommitConflict
from tablewright.expressions import Filter
from tablewright.format.deletion_vector import DeletionVector
from tablewright.operations.leftovers import Leftovers
from tablewright.paimon.format.bins import Width
from tablewright.paimon.format.index_manifest import (
    DELETION_VECTORS,
    IndexFile,
    IndexManifest,
    encode_index_manifest,
)
from tablewright.paimon.format.layout import MANIFESTS
from tablewright.paimon.format.manifest import DataFile, encode_manifest_list
from tablewright.paimon.format.snapshot import ManifestList, Snapshot, next_snapshot
from tablewright.paimon.format.vector_file import TARGET_SIZE, encode_vector_file, encode_vector_files
from tablewright.paimon.kinds import check_deletable, has_buckets
from tablewright.paimon.metadata import TableState, read_state
from tablewright.paimon.places import Places
from tablewright.paimon.publish import publish_snapshot, write_hint
from tablewright.paimon.read import FileTask, ReadPlan, StoredVector, plan_read, read_vector, stored_vectors
from tablewright.paimon.sizes import parse_size
from tablewright.transaction.retry import RetryOptions, with_retries
from tablewright.world import World

__all__ = ["DeleteResult", "delete_rows"]

_BATCH_IDENTIFIER = 2**63 - 1  # what Paimon's batch writers call their only commit
_DEFAULT_COMPRESSION = "zstd"

FileKey = tuple[bytes, int, str]
Matcher = Callable[[ReadPlan, Sequence[FileTask]], list[DeletionVector]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult:
    """What a delete did. ``files`` are the index files that it wrote, below the table's directory.

    Where nothing matched nothing was committed, and ``snapshot_id`` is the one that was searched (``None`` in a table
    without snapshots).
    """

    num_deleted_rows: int
    snapshot_id: int | None
    num_attempts: int
    files: tuple[str, ...] = ()


@dataclass
class _Matches:
    """What was found so far, by data file; it holds for one schema."""

    schema_id: int | None = None
    found: dict[tuple[Any, ...], DeletionVector] = field(default_factory=dict)


def delete_rows(
    world: World, predicate: Filter, match: Matcher, retries: RetryOptions
) -> tuple[DeleteResult, TableState]:
    """Delete the rows that match from the newest snapshot; what was done, and the table after it.

    ``match`` runs the tasks that look for rows.
    """
    user, now_ns, matches = str(world.ids.uuid()), world.clock.now_ns(), _Matches()

    def attempt(number: int) -> tuple[DeleteResult, TableState]:
        state = read_state(world.store)
        check_deletable(state)
        plan = plan_read(state, world.store, (), predicate, now_ns=now_ns)
        if state.snapshot is None:
            return DeleteResult(num_deleted_rows=0, snapshot_id=None, num_attempts=number + 1), state
        _match(plan, state, matches, match)
        grown, rows = _grown_vectors(world, state, plan.files, matches)
        if not grown:
            return DeleteResult(num_deleted_rows=0, snapshot_id=state.snapshot.id, num_attempts=number + 1), state
        after, id, files = _commit(world, state, state.snapshot, grown, user)
        return DeleteResult(num_deleted_rows=rows, snapshot_id=id, num_attempts=number + 1, files=files), after

    return with_retries(world, attempt, retries)


def _match(plan: ReadPlan, state: TableState, matches: _Matches, match: Matcher) -> None:
    """Search the files that were not searched yet."""
    if matches.schema_id != state.schema.id:
        matches.schema_id, matches.found = state.schema.id, {}
    new = [
        (file, task) for file, task in zip(plan.files, plan.tasks, strict=True) if file.identity not in matches.found
    ]
    for (file, _), vector in zip(new, match(plan, [task for _, task in new]), strict=True):
        matches.found[file.identity] = vector


def _grown_vectors(
    world: World, state: TableState, files: Sequence[DataFile], matches: _Matches
) -> tuple[dict[FileKey, tuple[DataFile, DeletionVector]], int]:
    """The new vectors of the data files that lose rows, and how many rows they lose."""
    stored = stored_vectors(state, world.store)
    grown, rows = dict[FileKey, tuple[DataFile, DeletionVector]](), 0
    for file in files:
        found, key = matches.found[file.identity], (file.partition, file.bucket, file.name)
        if not len(found):
            continue
        before = read_vector(world.store, stored[key]) if key in stored else DeletionVector()
        after = before.union(found)
        if len(after) > len(before):
            grown[key] = (file, after)
            rows += len(after) - len(before)
    return grown, rows


# ---------------------------------------------------------------------------------------------------------- index files
def _commit(
    world: World,
    state: TableState,
    before: Snapshot,
    grown: Mapping[FileKey, tuple[DataFile, DeletionVector]],
    user: str,
) -> tuple[TableState, int, tuple[str, ...]]:
    """Write what the next snapshot needs and make it visible: the table after it, its id, the index files.

    :class:`CommitConflict` if another writer was quicker.
    """
    leftovers = Leftovers(world)
    try:
        index, files = _write_index_files(world, state, grown, leftovers)
        snapshot = _write_manifests(world, state, before, index, user, leftovers)
    except BaseException:
        leftovers.remove()
        raise
    # From here on the snapshot may be there even if we do not hear of it: only a certain "no" removes what it names.
    try:
        published = publish_snapshot(world, snapshot)
    except AccessDenied:
        leftovers.remove()
        raise
    if not published:
        leftovers.remove()
        raise CommitConflict("delete", "another commit", snapshot.id)
    write_hint(world, snapshot.id)
    return replace(state, snapshot=snapshot, index=index), snapshot.id, files


def _write_index_files(
    world: World,
    state: TableState,
    grown: Mapping[FileKey, tuple[DataFile, DeletionVector]],
    leftovers: Leftovers,
) -> tuple[IndexManifest, tuple[str, ...]]:
    """The new list of index files, and the paths of those that were written."""
    bucketed = has_buckets(state.schema)
    places, stored = Places(state, world.store), stored_vectors(state, world.store)
    unique = world.ids.uuid()
    names = (f"index-{unique}-{number}" for number in itertools.count())
    groups = defaultdict[tuple[bytes, int], dict[str, DeletionVector]](dict)
    beside: dict[tuple[bytes, int], DataFile] = {}
    for (partition, bucket, name), (file, vector) in grown.items():
        groups[partition, bucket][name] = vector
        beside[partition, bucket] = file
    removed, added, paths = [], list[IndexFile](), list[str]()
    for (partition, bucket), changed in groups.items():
        touched = [
            file
            for file in state.index.of_type(DELETION_VECTORS)
            if (file.partition, file.bucket) == (partition, bucket)
            and (bucketed or any(range.data_file in changed for range in file.ranges))
        ]
        removed += [file.name for file in touched]
        kept = _unchanged(world, touched, changed, stored)
        for data, ranges in _encoded(state, kept, changed, bucketed=bucketed):
            name = next(names)
            path = places.for_new_index(beside[partition, bucket], name).path
            leftovers.add([path])
            world.store.put(path, data)
            paths.append(path)
            added.append(
                IndexFile(
                    type=DELETION_VECTORS,
                    partition=partition,
                    bucket=bucket,
                    name=name,
                    size=len(data),
                    row_count=len(ranges),
                    ranges=ranges,
                )
            )
    return state.index.replaced(removed, added), tuple(paths)


def _unchanged(
    world: World,
    touched: Sequence[IndexFile],
    changed: Mapping[str, DeletionVector],
    stored: Mapping[FileKey, StoredVector],
) -> dict[str, DeletionVector]:
    """The vectors of replaced index files that stay as they are."""
    return {
        range.data_file: read_vector(world.store, stored[file.partition, file.bucket, range.data_file])
        for file in touched
        for range in file.ranges
        if range.data_file not in changed
    }


def _encoded(
    state: TableState,
    kept: Mapping[str, DeletionVector],
    changed: Mapping[str, DeletionVector],
    *,
    bucketed: bool,
) -> list[tuple[bytes, tuple[Any, ...]]]:
    """The new index files of one partition and bucket."""
    options = state.schema.options
    width: Width = 64 if state.schema.flag("deletion-vectors.bitmap64") else 32
    if bucketed:
        return [encode_vector_file({**kept, **changed}, width)]
    target = parse_size(options.get("deletion-vector.index-file.target-size"), TARGET_SIZE)
    return [
        file for vectors in (kept, changed) for file in encode_vector_files(vectors, target_size=target, width=width)
    ]


# ------------------------------------------------------------------------------------------------------------ manifests
def _write_manifests(
    world: World, state: TableState, before: Snapshot, index: IndexManifest, user: str, leftovers: Leftovers
) -> Snapshot:
    """Write the index manifest and the manifest lists; the snapshot that names them."""
    compression = state.schema.options.get("manifest.compression", _DEFAULT_COMPRESSION)
    unique = world.ids.uuid()

    def written(name: str, data: bytes) -> ManifestList:
        path = f"{MANIFESTS}/{name}"
        leftovers.add([path])
        world.store.put(path, data)
        return ManifestList(name=name, size=len(data))

    index_manifest = written(f"index-manifest-{unique}-0", encode_index_manifest(index, compression))
    base = written(f"manifest-list-{unique}-0", encode_manifest_list(state.manifest_lists, compression))
    delta = written(f"manifest-list-{unique}-1", encode_manifest_list((), compression))
    return next_snapshot(
        before,
        schema_id=state.schema.id,
        base=base,
        delta=delta,
        index_manifest=index_manifest.name,
        commit_user=user,
        commit_identifier=_BATCH_IDENTIFIER,
        time_millis=max(before.time_millis, world.clock.now_ns() // 1_000_000),
        uuid=str(world.ids.uuid()),
        writer=f"tablewright-{__version__}",
    )
