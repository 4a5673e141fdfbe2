"""``isin`` as SQL means it: whether null is in a set is not known.

Arrow says *no* for a null that the set does not list, so ``~field.isin([…])`` would keep (or delete) rows without a
value; SQL, and pylance, drop them. Arrow's kernel can answer both ways, by an option that an expression carries.
An expression can't be taken apart, but it can be written as a record batch, where every option is a column: those of
set lookups are changed there.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["with_unknown_nulls"]

_OPTION, _INCONCLUSIVE = "null_matching_behavior", 3


def with_unknown_nulls(expression: pc.Expression) -> pc.Expression:
    """The expression whose set lookups answer null for null.

    >>> str(with_unknown_nulls(pc.field("x").isin([1]))).split(", ")[-1]
    'null_matching_behavior=INCONCLUSIVE})'
    """
    if "is_in(" not in str(expression):
        return expression
    read, (data, *_) = expression.__reduce__()
    with pa.ipc.open_file(data) as reader:
        batch = reader.get_batch(0)
    columns = [_changed(column) for column in batch.columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
    return read(sink.getvalue())


def _changed(options: pa.Array) -> pa.Array:
    if not isinstance(options, pa.StructArray) or (index := options.type.get_field_index(_OPTION)) < 0:
        return options
    members = options.flatten()
    members[index] = pa.array([_INCONCLUSIVE] * len(options), members[index].type)
    return pa.StructArray.from_arrays(members, fields=list(options.type))
