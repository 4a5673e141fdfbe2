"""Which kinds of tables this release reads, and errors for the others.

A table is read file by file, without merging rows of several files. That is right for

- append tables (no primary key), with or without buckets;
- primary-key tables whose every row is alive in one file only: with deletion vectors once level 0 is left aside (which
  is how Paimon itself reads them), with merge engine ``first-row`` likewise, and without either where all files of each
  bucket lie on one level above 0.

A file with delete rows, level-0 files under ``deletion-vectors.merge-on-read``, and columns of one row in several files
(data evolution) need merging: they are refused.

Format: ``docs/format/paimon.md#tables-that-can-be-read-file-by-file``.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.format.schema import TableSchema
from tablewright.paimon.metadata import TableState

__all__ = ["check_deletable", "check_kind", "has_buckets", "readable_files", "uses_vectors"]

_TABLE_TYPE = "table"
_MAIN = "main"
_UNAWARE_BUCKET = -1
_POSTPONE_BUCKET = -2


def uses_vectors(schema: TableSchema) -> bool:
    """Whether deletion vectors are applied. Where the option is off, Paimon ignores vectors that are there."""
    return schema.flag("deletion-vectors.enabled")


def has_buckets(schema: TableSchema) -> bool:
    """Whether rows are split into buckets."""
    return _bucket(schema) != _UNAWARE_BUCKET or bool(schema.primary_keys)


def check_kind(uri: str, schema: TableSchema) -> None:
    """Refuse what is no ordinary table of files."""
    kind = schema.options.get("type", _TABLE_TYPE).strip().lower()
    if kind != _TABLE_TYPE:
        raise UnsupportedFeature(f"{uri} is a Paimon {kind}: this release reads ordinary tables (type=table) only.")
    branch = schema.options.get("branch", _MAIN)
    parent, _, name = uri.rstrip("/").rpartition("/")
    if parent.endswith("/branch") and name.startswith("branch-"):
        branch = name.removeprefix("branch-")
    if branch != _MAIN:
        raise UnsupportedFeature(f"{uri} is the branch {branch!r} of a table: this release reads the main branch only.")
    if _bucket(schema) == _POSTPONE_BUCKET:
        raise UnsupportedFeature(f"{uri} has bucket=-2 (postpone bucket): this release does not read such tables.")


def readable_files(state: TableState) -> tuple[DataFile, ...]:
    """The files whose rows, less their deletion vectors, are the table.

    :class:`UnsupportedFeature` if rows of several files would have to be merged, or a file is not Parquet.
    """
    uri, schema = state.location.uri, state.schema
    files = state.files
    if schema.primary_keys:
        files = _without_merging(uri, schema, files)
    elif schema.flag("data-evolution.enabled"):
        _check_no_overlays(uri, files)
    for file in files:
        if file.format != "parquet":
            raise UnsupportedFeature(
                f"{uri} has the data file {file.name} of format {file.format!r}: this release reads parquet only."
            )
    return files


def check_deletable(state: TableState) -> None:
    """Refuse tables on which a delete by deletion vectors means nothing, or something else."""
    uri, schema = state.location.uri, state.schema
    if schema.primary_keys:
        raise UnsupportedFeature(
            f"{uri} has a primary key: rows of such a table are deleted by writing delete rows, which this release "
            "does not do. It deletes from append tables."
        )
    if not uses_vectors(schema):
        raise InvalidRequest(
            f"{uri} has no deletion vectors: set its option deletion-vectors.enabled to true before deleting."
        )


def _without_merging(uri: str, schema: TableSchema, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    vectors = uses_vectors(schema)
    engine = schema.options.get("merge-engine", "deduplicate").strip().lower()
    merge_on_read = vectors and schema.flag("deletion-vectors.merge-on-read")
    if (vectors and not merge_on_read) or (not vectors and engine == "first-row"):
        files = [file for file in files if file.level > 0]
    buckets = defaultdict(list)
    for file in files:
        buckets[file.partition, file.bucket].append(file)
    for bucket in buckets.values():
        needs = _needs_merging(bucket, one_level=not vectors and engine != "first-row")
        if needs:
            how = "deletion-vectors.merge-on-read=true" if merge_on_read else "deletion-vectors.enabled=true"
            if not vectors:
                how = f"merge-engine={engine} and no deletion vectors"
            raise UnsupportedFeature(
                f"{uri} is a primary-key table with {how}, and {needs}: its rows have to be merged by key, which this "
                "release does not do. Compact the table with Paimon, or read it with Paimon."
            )
    return tuple(file for bucket in buckets.values() for file in bucket)


def _needs_merging(bucket: list[DataFile], *, one_level: bool) -> str | None:
    """Why the files of a bucket can't be read one by one; ``None`` if they can."""
    for file in bucket:
        if file.level == 0:
            return f"the data file {file.name} lies on level 0"
        if file.delete_row_count:
            return f"the data file {file.name} holds delete rows"
    if one_level and len({file.level for file in bucket}) > 1:
        return f"bucket {bucket[0].bucket} has data files on several levels"
    return None


def _check_no_overlays(uri: str, files: Iterable[DataFile]) -> None:
    """Rows whose columns lie in several files have row ids that overlap."""
    spans = sorted(
        (file.first_row_id, file.first_row_id + file.row_count, file.name)
        for file in files
        if file.first_row_id is not None
    )
    for (_, end, name), (begin, _, other) in itertools.pairwise(spans):
        if begin < end:
            raise UnsupportedFeature(
                f"{uri} has data-evolution.enabled=true, and columns of the same rows lie in the files {name} and "
                f"{other}: this release does not put them together. Compact the table with Paimon, or read it there."
            )


def _bucket(schema: TableSchema) -> int:
    text = schema.options.get("bucket", str(_UNAWARE_BUCKET))
    try:
        return int(text)
    except ValueError:
        raise InvalidRequest(f"The table's option bucket is {text!r}, not a whole number.") from None
