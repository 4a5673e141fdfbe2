"""Values as DataFusion prints them: the texts in statistics of BTREE indices. Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as at

__all__ = ["display"]

_BYTES_SHOWN = 10


def display(value: pa.Scalar) -> str:
    """A value as text.

    >>> display(pa.scalar(0.5)), display(pa.scalar(1e16)), display(pa.scalar(None, pa.int8())), display(pa.scalar(b"a"))
    ('0.5', '10000000000000000', 'NULL', '61')
    """
    kind = value.type
    if not value.is_valid:
        return "NULL"
    if at.is_floating(kind):
        return _number(value)
    if at.is_boolean(kind):
        return str(value.as_py()).lower()
    if at.is_decimal(kind):
        digits = int(value.as_py().scaleb(kind.scale))
        return f"Some({digits}),{kind.precision},{kind.scale}"
    if at.is_date(kind):
        return str(np.datetime64(value.cast(pa.date32()).cast(pa.int32()).as_py(), "D"))
    if at.is_temporal(kind):
        return str(value.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).as_py())
    if at.is_binary(kind) or at.is_large_binary(kind) or at.is_fixed_size_binary(kind):
        data = bytes(value.as_py())
        return data[:_BYTES_SHOWN].hex().upper() + ("..." if len(data) > _BYTES_SHOWN else "")
    return str(value.as_py())


def _number(value: pa.Scalar) -> str:
    """The shortest digits that mean the number, without an exponent; half floats as 32-bit ones."""
    number = np.float64(value.as_py()) if at.is_float64(value.type) else np.float32(value.as_py())
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "inf" if number > 0 else "-inf"
    return np.format_float_positional(number, unique=True, trim="-")
