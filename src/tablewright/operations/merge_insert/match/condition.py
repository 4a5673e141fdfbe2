"""``when_matched_update_all(condition)``: a condition over both sides of a match, ``source.x`` and ``target.x``.

The two sides are two structs to the expression; only the fields that it names are put into them. Of the table, columns
are read for rows that match, and only if the condition looks at any.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from tablewright.data.read import no_columns
from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import Predicate, compile_filter
from tablewright.expressions.scope import Scope, with_system_columns
from tablewright.expressions.translate import translate
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.reading.projection import Path

__all__ = ["MatchCondition", "compile_condition", "compile_table_condition", "true_where"]

_SIDES = ("source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCondition:
    """A compiled condition, the columns of the source and the fields of the table that it reads."""

    predicate: Predicate
    source_columns: tuple[str, ...]
    target_paths: tuple[Path, ...]

    def mask(self, source: pa.RecordBatch, target: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """For which pairs of rows the condition is true."""
        sides = {"source": source, "target": target}
        used = [side for side in _SIDES if side in self.predicate.columns]
        batch = no_columns(source.num_rows)
        if used:
            batch = pa.RecordBatch.from_arrays([_struct(sides[side]) for side in used], names=used)
        return true_where(self.predicate, batch)


def true_where(predicate: Predicate, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """For which rows a predicate is true; one that fails on a row is :class:`InvalidMerge`."""
    try:
        mask = predicate.mask(batch)
    except InvalidRequest as error:
        raise InvalidMerge(str(error)) from error
    return mask.fill_null(False).to_numpy(zero_copy_only=False)


def _struct(batch: pa.RecordBatch) -> pa.Array:
    return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))


def compile_condition(text: str, table: Schema, source: pa.Schema, now_ns: int) -> MatchCondition:
    """Resolve the names of a condition and check it.

    >>> table = Schema.from_arrow(pa.schema({"id": pa.int64(), "x": pa.int64()}))
    >>> condition = compile_condition("source.x > target.x", table, table.to_arrow(), 0)
    >>> condition.mask(pa.record_batch({"x": [1, 9]}), pa.record_batch({"x": [5, 5]})).tolist()
    [False, True]
    """
    both = pa.schema([pa.field("source", pa.struct(list(source))), pa.field("target", _whole(table))])
    try:
        translation = translate(text, _Sides(both), now_ns, condition=True)
        paths = translation.paths
        wanted = {side: [path[1:] for path in paths if path[0] == side] for side in _SIDES}
        for side, fields in wanted.items():
            if any(not path for path in fields):
                raise InvalidRequest(
                    f"Invalid user input: {side} is a side of the merge, not a column: name one of its columns."
                )
        used = pa.schema([pa.field(side, _pruned(both.field(side).type, wanted[side])) for side in _SIDES])
        predicate = compile_filter(text, used, now_ns=now_ns, quoted_names=translation.quoted_names)
    except InvalidRequest as error:
        raise InvalidMerge(
            f"{error} The condition of when_matched_update_all uses source.<column> and target.<column>."
        ) from error
    return MatchCondition(
        predicate=predicate,
        source_columns=tuple(dict.fromkeys(path[0] for path in wanted["source"])),
        target_paths=tuple(dict.fromkeys(wanted["target"])),
    )


def compile_table_condition(text: str, table: Schema, now_ns: int | None = None) -> Predicate:
    """The condition of ``when_not_matched_by_source_delete``: over the table's own columns."""
    return compile_filter(text, table, now_ns=time.time_ns() if now_ns is None else now_ns)


class _Sides(Scope):
    """The two sides; the error about a column without its side names what to write."""

    def named(self, text: str) -> Path | None:
        """The path of a field, given with its side or without."""
        paths = (super(_Sides, self).named(name) for name in (text, *(f"{side}.{text}" for side in _SIDES)))
        return next((path for path in paths if path is not None), None)

    def _of(self, side: str) -> Scope:
        kind = self.schema.field(side).type
        assert at.is_struct(kind), "a side is the struct of its columns"
        return Scope(pa.schema(list(kind)))

    def unknown(self, name: str, among: Sequence[str] | None = None) -> InvalidRequest:
        having = [side for side in _SIDES if self._of(side).column(name)]
        if among is not None or not having:
            return super().unknown(name, among)
        return InvalidRequest(
            f"Invalid user input: No field named {name}. Write {' or '.join(f'{side}.{name}' for side in having)}."
        )


def _whole(table: Schema) -> pa.DataType:
    return pa.struct(list(with_system_columns(table)))


def _pruned(kind: pa.DataType, paths: Sequence[Path]) -> pa.DataType:
    """A struct with nothing but the fields at these paths."""
    if not at.is_struct(kind) or any(not path for path in paths):
        return kind
    below = {path[0]: [other[1:] for other in paths if other[0] == path[0]] for path in paths}
    return pa.struct([field.with_type(_pruned(field.type, below[field.name])) for field in kind if field.name in below])
