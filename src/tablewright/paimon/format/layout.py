"""Where a table's files lie, below its directory.

====================================  ===========================================================
``schema/schema-<id>``                schema files
``snapshot/snapshot-<id>``            snapshots; ``LATEST`` and ``EARLIEST`` beside them are hints
``manifest/…``                        manifest lists, manifests, index manifests
``index/index-<uuid>-<n>``            index files (or beside the data, if the table says so)
``<key>=<value>/…/bucket-<n>/…``      data files
====================================  ===========================================================

A partition's directory is its values as text. Java and older Python writers spell some values differently (dates,
floats, what has to be escaped), so :func:`partition_directory` answers only where there is one spelling.

Format: ``docs/format/paimon.md#layout``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tablewright.paimon.format.types import Field

__all__ = [
    "EARLIEST_HINT",
    "LATEST_HINT",
    "MANIFESTS",
    "SCHEMAS",
    "SNAPSHOTS",
    "bucket_directory",
    "numbered",
    "partition_directory",
    "schema_path",
    "snapshot_path",
]

SCHEMAS = "schema"
SNAPSHOTS = "snapshot"
MANIFESTS = "manifest"
LATEST_HINT = "snapshot/LATEST"
EARLIEST_HINT = "snapshot/EARLIEST"

_DEFAULT_NAME = "__DEFAULT_PARTITION__"
_POSTPONE_BUCKET = -2
_PLAIN_ROOTS = frozenset(["TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "STRING", "CHAR", "VARCHAR"])
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
_NUMBERED = re.compile(r"(?:^|/)(?:snapshot|schema)-([0-9]{1,19})$")


def snapshot_path(id: int) -> str:
    """The file of a snapshot."""
    return f"{SNAPSHOTS}/snapshot-{id}"


def schema_path(id: int) -> str:
    """The file of a schema."""
    return f"{SCHEMAS}/schema-{id}"


def numbered(path: str) -> int | None:
    """The id of a snapshot or schema file; ``None`` for anything else.

    >>> numbered("snapshot/snapshot-12"), numbered("snapshot/LATEST")
    (12, None)
    """
    match = _NUMBERED.search(path)
    return None if match is None else int(match[1])


def partition_directory(fields: Sequence[Field], values: Sequence[Any], default_name: str | None = None) -> str | None:
    """The directory of a partition; ``None`` if writers disagree about its spelling."""
    parts = []
    for field, value in zip(fields, values, strict=True):
        if field.type.root not in _PLAIN_ROOTS:
            return None
        text = "" if value is None else str(value)
        text = text if text.strip() else default_name or _DEFAULT_NAME
        if _ESCAPED.search(field.name + text):
            return None
        parts.append(f"{field.name}={text}/")
    return "".join(parts)


def bucket_directory(partition: str, bucket: int) -> str:
    """The directory of a bucket in a partition's directory (which ends with a slash, or is empty)."""
    return f"{partition}bucket-{'postpone' if bucket == _POSTPONE_BUCKET else bucket}"
