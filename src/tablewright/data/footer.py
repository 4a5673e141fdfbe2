"""The last 40 bytes of a data file: enough to know that the codec can open it safely.

A damaged count in the footer makes the codec allocate all memory, which ends the process. So footers on a local disk
are checked before it opens them; elsewhere the check would cost a request per file, and stores keep checksums.
"""

from __future__ import annotations

import os

from tablewright.errors import CorruptTable
from tablewright.format.file_tail import FOOTER_BYTES, problems_of_footer
from tablewright.storage.local_files import open_regular

__all__ = ["check_footer", "problems_of_footer"]


def check_footer(path: str, where: str) -> None:
    """Raise :class:`CorruptTable` if the local file at ``path`` can't be a data file. One that is missing passes."""
    try:
        with open_regular(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - FOOTER_BYTES))
            tail = file.read()
    except FileNotFoundError:
        if os.path.lexists(path):  # the codec would wait for a pipe's writer
            raise CorruptTable(where, ("it is no regular file",)) from None
        return
    except OSError:
        return  # the codec says what is wrong with it
    problems = problems_of_footer(tail, size)
    if problems:
        raise CorruptTable(where, tuple(f"the data file can't be decoded: {problem}" for problem in problems))
