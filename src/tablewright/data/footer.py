"""The last 40 bytes of a data file: enough to know that the codec can be trusted with it.

A damaged count in the footer makes the codec reserve all memory there is, which ends the process. So files on a local
disk are looked at before it opens them; elsewhere the look would cost a request per file, and stores keep checksums.

::

    u64 column metadata, u64 column metadata offsets, u64 global buffer offsets     positions in the file
    u32 global buffers, u32 columns, u16 major, u16 minor, "LANC"
"""

from __future__ import annotations

import os
import struct

from tablewright.errors import CorruptTable

__all__ = ["check_footer", "problems_of_footer"]

_FOOTER = struct.Struct("<QQQIIHH4s")
_TABLE_ENTRY_BYTES = 16


def check_footer(path: str, where: str) -> None:
    """Raise :class:`CorruptTable` if the local file at ``path`` can't be a data file. One that is missing passes."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _FOOTER.size))
            tail = file.read()
    except OSError:
        return  # the codec says what is wrong with it
    problems = problems_of_footer(tail, size)
    if problems:
        raise CorruptTable(where, tuple(f"the data file can't be decoded: {problem}" for problem in problems))


def problems_of_footer(tail: bytes, size: int) -> tuple[str, ...]:
    """What is wrong with the footer ``tail`` of a file of ``size`` bytes.

    >>> problems_of_footer(b"PAR1", 4)
    ('it has 4 bytes, less than a footer',)
    """
    if len(tail) < _FOOTER.size:
        return (f"it has {size} bytes, less than a footer",)
    columns, column_table, buffer_table, num_buffers, num_columns, _, _, magic = _FOOTER.unpack(tail)
    if magic != b"LANC":
        return ("it does not end in LANC",)
    room = size - _FOOTER.size
    problems = []
    if max(columns, column_table, buffer_table) > room:
        problems.append("its footer points outside of it")
    if _TABLE_ENTRY_BYTES * (num_buffers + num_columns) > room:
        problems.append(f"its footer counts {num_columns} columns and {num_buffers} buffers, which do not fit the file")
    return tuple(problems)
