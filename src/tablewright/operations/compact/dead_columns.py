"""How much of a fragment's files belongs to columns that no reader reads any more.

Columns that were dropped stay in the data files, and so do the old values of columns that were rewritten in place. The
manifest does not say how many bytes each column has, so they are estimated: a file's bytes are divided by the widths of
its columns. Columns rewritten in place are as wide as those of the files that came later, dropped ones as wide as a
number. If the remaining columns have a fixed width, what they can't fill is dead in any case. The estimate decides when
a fragment is worth being written again, and nothing else.

Tests: ``tests/unit/operations/compact/test_dead_columns.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tablewright.data.sizes import fixed_width
from tablewright.format.fragment import TOMBSTONE, Fragment
from tablewright.format.schema import Schema

__all__ = ["dead_column_share"]


_NUMBER_BYTES, _VARIABLE_BYTES = 8, 32
Widths = Mapping[int, int | None]


def dead_column_share(schema: Schema) -> Callable[[Fragment], float]:
    """A function that estimates the share of dead columns in the bytes of a fragment of this table."""
    widths = _leaf_widths(schema)

    def share(fragment: Fragment) -> float:
        total = fragment.data_bytes
        dead = sum(_dead_bytes(fragment, place, widths) for place in range(len(fragment.files)))
        return dead / total if total else 0.0

    return share


def _leaf_widths(schema: Schema) -> dict[int, int | None]:
    """Bytes per row of each field's column; ``None`` where they vary, as within lists."""
    widths: dict[int, int | None] = {}
    for column, field in zip(schema.top_level, schema.to_arrow(), strict=True):
        widths |= dict.fromkeys(schema.descendants(column.id))
        widths[column.id] = fixed_width(field.type)
    return widths


def _dead_bytes(fragment: Fragment, place: int, widths: Widths) -> float:
    file = fragment.files[place]
    live = [field for field in file.fields if field in widths]
    if len(live) == len(file.fields):
        return 0.0
    live_bytes = sum(map(partial(_width, widths), live))
    later = [_width(widths, field) for each in fragment.files[place + 1 :] for field in each.live_fields]
    rewritten = file.fields.count(TOMBSTONE)
    dropped = len(file.fields) - len(live) - rewritten
    dead_bytes = rewritten * (sum(later) / len(later) if later else _NUMBER_BYTES) + dropped * _NUMBER_BYTES
    by_width = file.file_size_bytes * dead_bytes / (dead_bytes + live_bytes)
    if any(widths[field] is None for field in live):
        return by_width
    return max(by_width, file.file_size_bytes - fragment.physical_rows * live_bytes)


def _width(widths: Widths, field: int) -> int:
    return widths.get(field) or _VARIABLE_BYTES
