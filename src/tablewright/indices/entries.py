"""The rows that an index is built on: values of one column, with the ids that the index stores for them.

Tests: ``tests/unit/indices/test_building.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.read import FragmentReader
from tablewright.data.shape import ReadShape
from tablewright.data.system_columns import SystemColumns
from tablewright.format.fragment import Fragment
from tablewright.indices.building import BuildPlan, Entries

__all__ = ["read_entries"]


def read_entries(
    context: ReadContext, plan: BuildPlan, fragments: Sequence[Fragment], rows_per_batch: int | None = None
) -> Iterator[Entries]:
    """The live rows of some fragments in the order of their addresses, in batches of one fragment each.

    A value below a null struct is null. Extension types are read as their storage, dictionaries as their values.
    """
    shape = ReadShape(plan.schema, plan.schema.project_ids([plan.field_id]))
    by_address = plan.kind.zones or not plan.stable
    for fragment in fragments:
        reader = FragmentReader(context, fragment, shape)
        column = "_rowaddr" if by_address else "_rowid"
        system = SystemColumns(context, fragment, 0)
        piece, rows_max = shape.sizes.rows_per_piece(fragment), rows_per_batch or shape.sizes.rows_per_batch(fragment)
        for start in range(0, fragment.physical_rows, piece):
            for rows in reader.read(start, min(fragment.physical_rows, start + piece), rows_max):
                if len(rows):
                    ids = system.batch((column,), rows.offsets, None).column(0).to_numpy()
                    values = _leaf(rows.batch.column(0), plan.path[1:])
                    yield Entries(values, ids, fragment.id, np.asarray(rows.offsets, np.int64))


def _leaf(column: pa.Array, path: Sequence[str]) -> pa.Array:
    """The values at a path below a column, without extension types and dictionaries."""
    for name in path:
        parent = column.storage if isinstance(column, pa.ExtensionArray) else column
        assert isinstance(parent, pa.StructArray), f"{name!r} is not below a struct but below {parent.type}"
        names = [parent.type.field(place).name for place in range(parent.type.num_fields)]
        column = parent.flatten()[names.index(name)]  # a member of a null struct is null
    column = column.storage if isinstance(column, pa.ExtensionArray) else column
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
