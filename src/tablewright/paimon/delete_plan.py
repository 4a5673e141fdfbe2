"""The plan of a delete, as values: which vectors grow, which index files are replaced, the new files and snapshot.

1. :func:`plan_delete`: per partition and bucket, which index files are replaced, and which of their vectors stay as
   they are and have to be carried on. In a table without buckets those are the files that hold a vector that grows; a
   bucket has one index file, which is written whole.
2. :func:`finish_delete`: given the vectors that are carried on, every file to write, bytes and all, and the snapshot
   that makes them visible. The index manifest is the full list; the manifest lists name the same data files as before.

Nothing here reads or writes (but that places may be found by listing the table, see :mod:`.places`).

Format: ``docs/format/paimon.md#which-deletion-vectors-apply``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tablewright._version import __version__
from tablewright.format.deletion_vectors.bins import Width
from tablewright.format.deletion_vectors.paimon import TARGET_SIZE, VectorRange, encode_vector_file, encode_vector_files
from tablewright.format.row_set import RowSet
from tablewright.paimon.format.index_manifest import (
    DELETION_VECTORS,
    IndexFile,
    IndexManifest,
    encode_index_manifest,
)
from tablewright.paimon.format.layout import MANIFESTS
from tablewright.paimon.format.manifest import DataFile, encode_manifest_list
from tablewright.paimon.format.snapshot import ManifestList, Snapshot, next_snapshot
from tablewright.paimon.kinds import has_buckets
from tablewright.paimon.metadata import TableState
from tablewright.paimon.places import Places
from tablewright.paimon.sizes import parse_size

__all__ = ["BucketPlan", "DeletePlan", "Ending", "Growth", "NewFile", "finish_delete", "plan_delete"]

FileKey = tuple[bytes, int, str]

_BATCH_IDENTIFIER = 2**63 - 1  # the identifier that Paimon's batch writers use for their only commit
_DEFAULT_COMPRESSION = "zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A data file that loses rows: what was deleted of it before, and what is deleted now."""

    file: DataFile
    before: RowSet
    after: RowSet

    @property
    def rows(self) -> int:
        """How many rows go."""
        return len(self.after) - len(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """One partition and bucket: the vectors that grow, the index files that go, and which of their vectors stay.

    ``directory`` is where the new index files are to lie.
    """

    partition: bytes
    bucket: int
    directory: str
    changed: Mapping[str, RowSet]
    replaced: tuple[IndexFile, ...]
    kept: tuple[FileKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePlan:
    """A decided delete. Its text says what it does."""

    uri: str
    before: Snapshot
    growths: tuple[Growth, ...]
    buckets: tuple[BucketPlan, ...]

    @property
    def num_deleted_rows(self) -> int:
        """How many rows go."""
        return sum(growth.rows for growth in self.growths)

    @property
    def kept(self) -> tuple[FileKey, ...]:
        """The vectors that are carried on into new index files as they are."""
        return tuple(key for bucket in self.buckets for key in bucket.kept)

    def __str__(self) -> str:
        if not self.growths:
            return f"Delete: uri={self.uri}, snapshot={self.before.id}\n  nothing matches: nothing is committed"
        replaced = [file.name for bucket in self.buckets for file in bucket.replaced]
        lines = [
            f"Delete: uri={self.uri}, snapshot={self.before.id}",
            f"  rows={self.num_deleted_rows} of {len(self.growths)} data files, in {len(self.buckets)} "
            "partitions or buckets",
            f"  index files: replaces {len(replaced)}, carries {len(self.kept)} vectors on as they are",
            *(
                f"  {growth.file.name}: {growth.rows} of {growth.file.row_count - len(growth.before)} rows"
                for growth in self.growths
            ),
            f"  commits snapshot {self.before.id + 1}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write, below the table's directory."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What remains to be done: write these files (``index_files`` are the paths of some), then publish the snapshot."""

    files: tuple[NewFile, ...]
    index_files: tuple[str, ...]
    index: IndexManifest
    snapshot: Snapshot


def plan_delete(state: TableState, places: Places, before: Snapshot, growths: Sequence[Growth]) -> DeletePlan:
    """Decide what becomes of the index files when these data files lose rows."""
    groups: dict[tuple[bytes, int], list[Growth]] = {}
    for growth in growths:
        groups.setdefault((growth.file.partition, growth.file.bucket), []).append(growth)
    buckets = tuple(_plan_bucket(state, places, group) for group in groups.values())
    return DeletePlan(uri=state.location.uri, before=before, growths=tuple(growths), buckets=buckets)


def _plan_bucket(state: TableState, places: Places, growths: Sequence[Growth]) -> BucketPlan:
    file = growths[-1].file
    changed = {growth.file.name: growth.after for growth in growths}
    whole = has_buckets(state.schema)
    replaced = tuple(
        index
        for index in state.index.of_type(DELETION_VECTORS)
        if (index.partition, index.bucket) == (file.partition, file.bucket)
        and (whole or any(range.data_file in changed for range in index.ranges))
    )
    kept = dict.fromkeys(
        (index.partition, index.bucket, range.data_file)
        for index in replaced
        for range in index.ranges
        if range.data_file not in changed
    )
    return BucketPlan(
        partition=file.partition,
        bucket=file.bucket,
        directory=places.for_new_index(file),
        changed=changed,
        replaced=replaced,
        kept=tuple(kept),
    )


def finish_delete(
    plan: DeletePlan,
    state: TableState,
    kept: Mapping[FileKey, RowSet],
    *,
    user: str,
    time_millis: int,
    unique: tuple[str, str, str],
) -> Ending:
    """The files and the snapshot of a plan. ``kept`` holds the vectors of ``plan.kept``.

    ``unique`` are three unique names: for index files, for manifests, and the snapshot's own.
    """
    of_index_files, of_manifests, of_snapshot = unique
    names = (f"index-{of_index_files}-{number}" for number in itertools.count())
    removed, added, written = list[str](), list[IndexFile](), list[NewFile]()
    for bucket in plan.buckets:
        removed += [file.name for file in bucket.replaced]
        unchanged = {name: kept[partition, number, name] for partition, number, name in bucket.kept}
        for data, ranges in _encoded(state, unchanged, bucket.changed):
            file = _index_file(bucket, next(names), len(data), ranges)
            written.append(NewFile(f"{bucket.directory}/{file.name}", data))
            added.append(file)
    index = state.index.replaced(removed, added)
    manifests = _manifests(state, index, of_manifests)
    index_manifest, base, delta = (
        ManifestList(name=file.path.removeprefix(f"{MANIFESTS}/"), size=len(file.data)) for file in manifests
    )
    snapshot = next_snapshot(
        plan.before,
        schema_id=state.schema.id,
        base=base,
        delta=delta,
        index_manifest=index_manifest.name,
        commit_user=user,
        commit_identifier=_BATCH_IDENTIFIER,
        time_millis=max(plan.before.time_millis, time_millis),
        uuid=of_snapshot,
        writer=f"tablewright-{__version__}",
    )
    index_files = tuple(file.path for file in written)
    return Ending(files=(*written, *manifests), index_files=index_files, index=index, snapshot=snapshot)


def _index_file(bucket: BucketPlan, name: str, size: int, ranges: tuple[VectorRange, ...]) -> IndexFile:
    return IndexFile(
        type=DELETION_VECTORS,
        partition=bucket.partition,
        bucket=bucket.bucket,
        name=name,
        size=size,
        row_count=len(ranges),
        ranges=ranges,
    )


def _encoded(
    state: TableState, kept: Mapping[str, RowSet], changed: Mapping[str, RowSet]
) -> Sequence[tuple[bytes, tuple[VectorRange, ...]]]:
    """The new index files of one partition and bucket."""
    width: Width = 64 if state.schema.flag("deletion-vectors.bitmap64") else 32
    if has_buckets(state.schema):
        return [encode_vector_file({**kept, **changed}, width)]
    target = parse_size(state.schema.options.get("deletion-vector.index-file.target-size"), TARGET_SIZE)
    return [
        file for vectors in (kept, changed) for file in encode_vector_files(vectors, target_size=target, width=width)
    ]


def _manifests(state: TableState, index: IndexManifest, unique: str) -> tuple[NewFile, NewFile, NewFile]:
    """The index manifest, the list of all manifests so far, and the empty list of new ones."""
    compression = state.schema.options.get("manifest.compression", _DEFAULT_COMPRESSION)
    return (
        NewFile(f"{MANIFESTS}/index-manifest-{unique}-0", encode_index_manifest(index, compression)),
        NewFile(f"{MANIFESTS}/manifest-list-{unique}-0", encode_manifest_list(state.manifest_lists, compression)),
        NewFile(f"{MANIFESTS}/manifest-list-{unique}-1", encode_manifest_list((), compression)),
    )
