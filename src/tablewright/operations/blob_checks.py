"""What can't be done with blob columns yet, refused by name before anything is read.

Tests: ``tests/differential/test_blobs.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

from tablewright.errors import UnsupportedFeature
from tablewright.expressions.sql import compile_sql
from tablewright.format.blobs import as_descriptions
from tablewright.format.field import is_blob_v2
from tablewright.format.field_path import parse_path
from tablewright.format.schema import Schema

__all__ = ["refuse_blob_expressions", "refuse_blob_targets"]

Path = tuple[str, ...]


def refuse_blob_targets(table: Schema, names: Iterable[object]) -> None:
    """Blobs v2 are kept by an update: none is assigned."""
    blobs = list(_blobs(table))
    for name in names if blobs else ():
        path = tuple(parse_path(name)) if isinstance(name, str) and name else ()
        for blob, place in blobs:
            if path and _overlap(path, place):
                raise UnsupportedFeature(
                    f"Direct updates to column '{blob}' containing blob v2 values are not supported. Update the others."
                )


def refuse_blob_expressions(table: Schema, texts: Iterable[object], now_ns: int | None) -> None:
    """Expressions that make new values can't look at blobs v2; conditions can."""
    blobs = list(_blobs(table))
    seen = as_descriptions(table)
    for text in texts if blobs else ():
        if not isinstance(text, str):
            continue
        for path in compile_sql(text, seen, now_ns=now_ns).paths:
            for blob, place in blobs:
                if _overlap(path, place):
                    raise UnsupportedFeature(
                        f"The expression {text!r} reads the blob column '{blob}' (lance.blob.v2), which only filters "
                        "and scans can: there it is a description, with .size and .kind."
                    )


def _blobs(table: Schema) -> Iterable[tuple[str, Path]]:
    for blob in filter(is_blob_v2, table.blobs):
        names = tuple(table.by_id(id).name for id in (*table.ancestors(blob.id), blob.id))
        yield table.path(blob.id), names


def _overlap(one: Path, other: Path) -> bool:
    """Whether one path is the other, or leads through it."""
    return all(left == right for left, right in zip(one, other, strict=False))
