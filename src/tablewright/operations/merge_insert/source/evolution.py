"""``schema_evolution=True``: columns of the source that the table does not have.

A merge can't change the schema, so the columns come with a commit of their own. It comes last: until then the merge is
planned, matched and written on the version as it *will* be, so that whatever is wrong with it leaves no trace.

The key is no such column: rows of a table that lacks it match nothing, and all of the source would be new.

Tests: ``tests/concurrency/test_merge_evolves.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from tablewright.operations.columns.schema import add_to_schema
from tablewright.operations.merge_insert.keys.key_columns import find_key
from tablewright.operations.merge_insert.source.fit import new_columns
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["evolved"]


def evolved(snapshot: Snapshot, on: Any, incoming: pa.Schema) -> tuple[Snapshot, pa.Schema]:
    """The version with all columns of the source, those that it lacks at the end and null; and which these are.

    :class:`~tablewright.errors.InvalidRequest` if the key is not there: another writer may have dropped it.
    """
    find_key(snapshot.schema, on)
    added = new_columns(snapshot.schema, incoming)
    if not len(added):
        return snapshot, added
    manifest = replace(snapshot.manifest, schema=add_to_schema(snapshot.manifest, added).after)
    return replace(snapshot, file=replace(snapshot.file, manifest=manifest)), added
