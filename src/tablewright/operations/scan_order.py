"""``order_by``: rows sorted in memory, or only the best of them where a limit says how many are wanted.

Arrow sorts; each ordering becomes up to three keys, so that nulls stand where asked for and NaN counts as greater than
every number, as in DataFusion. The sort is stable: equal rows keep the table's order. With a limit, batches are
gathered until they are a few times the limit, then cut back to the best, so memory is bounded by the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.checks import listed
from tablewright.errors import InvalidRequest
from tablewright.expressions.scope import Scope
from tablewright.format.field_path import parse_path

__all__ = ["Ordering", "best_rows", "orderings_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """One key: where it is, and its direction."""

    path: tuple[str, ...]
    ascending: bool = True
    nulls_first: bool = False

    def __str__(self) -> str:
        direction = "asc" if self.ascending else "desc"
        return f"{'.'.join(self.path)} {direction} nulls {'first' if self.nulls_first else 'last'}"


def orderings_of(order_by: Any, scope: Scope) -> tuple[Ordering, ...]:
    """Names, or objects with ``column_name``, ``ascending`` and ``nulls_first``, resolved and checked."""
    if order_by is None:
        return ()
    return tuple(
        _ordering(key, scope) for key in ([order_by] if isinstance(order_by, str) else listed(order_by, "order_by"))
    )


def _ordering(key: Any, scope: Scope) -> Ordering:
    name = key if isinstance(key, str) else getattr(key, "column_name", None)
    if not isinstance(name, str):
        raise InvalidRequest(f"Invalid user input: order_by takes column names or ColumnOrdering, not {key!r}.")
    try:
        path = scope.resolve([name] if name in scope.schema.names else parse_path(name), exact=True)
    except InvalidRequest as error:
        raise InvalidRequest(f"Invalid user input: Column {name} not found. {error}") from None
    kind = scope.schema.field(path[0]).type
    for part in path[1:]:
        assert at.is_struct(kind), "the path of a field leads through structs"
        kind = kind.field(part).type
    if at.is_nested(kind):
        raise InvalidRequest(f"Invalid user input: rows can't be ordered by {name}, which is of type {kind}.")
    return Ordering(
        path=path,
        ascending=bool(getattr(key, "ascending", True)),
        nulls_first=bool(getattr(key, "nulls_first", False)),
    )


def best_rows(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    keys: Sequence[str],
    orderings: Sequence[Ordering],
    limit: int | None,
    gathered_rows_min: int = 1 << 16,
) -> pa.Table:
    """All rows in order, or the first ``limit`` of them. ``keys`` are the columns that hold the orderings' values."""
    gathered: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        gathered.append(batch)
        rows += batch.num_rows
        if limit is not None and rows > max(4 * limit, gathered_rows_min):
            best = _sorted(pa.Table.from_batches(gathered, schema), keys, orderings, limit)
            gathered, rows = best.to_batches(), best.num_rows
    return _sorted(pa.Table.from_batches(gathered, schema), keys, orderings, limit)


def _sorted(table: pa.Table, keys: Sequence[str], orderings: Sequence[Ordering], limit: int | None) -> pa.Table:
    columns: dict[str, pa.ChunkedArray] = {}
    directions: list[tuple[str, str]] = []
    for index, (key, ordering) in enumerate(zip(keys, orderings, strict=True)):
        values = table.column(key)
        for name, column, ascending in _sort_keys(values, ordering):
            columns[f"{index}{name}"] = column
            directions.append((f"{index}{name}", "ascending" if ascending else "descending"))
    try:
        indices = pc.sort_indices(pa.table(columns), sort_keys=directions)
    except pa.ArrowException as error:
        raise InvalidRequest(
            f"Invalid user input: rows can't be ordered by {', '.join(map(str, orderings))}: {error}"
        ) from error
    return table.take(indices if limit is None else indices.slice(0, limit))


def _sort_keys(values: pa.ChunkedArray, ordering: Ordering) -> list[tuple[str, pa.ChunkedArray, bool]]:
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.cast(values.type.storage_type)
    if at.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    keys: list[tuple[str, pa.ChunkedArray, bool]] = []
    if values.null_count:
        keys.append(("nulls", values.is_null(), not ordering.nulls_first))
    if at.is_floating(values.type):
        keys.append(("nan", pc.fill_null(pc.is_nan(values.cast(pa.float64())), False), ordering.ascending))
    if at.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return [*keys, ("values", values, ordering.ascending)]
