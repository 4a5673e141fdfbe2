"""The end of a local data file, read before the codec opens it: is it safe to open, and what schema does it have?

A damaged count in the footer makes the codec allocate all memory, which ends the process. So footers on a local disk
are checked before it opens them; elsewhere the check would cost a request per file, and stores keep checksums. The same
read nearly always holds the file's schema too, which saves asking the codec for it.
"""

from __future__ import annotations

import errno
import os
import stat

from tablewright.errors import CorruptTable
from tablewright.format.file_tail import FOOTER_BYTES, descriptor_in, problems_of_footer

__all__ = ["check_footer", "problems_of_footer", "read_descriptor"]

_TAIL_BYTES = 4096
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)


def check_footer(path: str, where: str) -> None:
    """Raise :class:`CorruptTable` if the local file at ``path`` can't be a data file. One that is missing passes."""
    read_descriptor(path, where)


def read_descriptor(path: str, where: str) -> bytes | None:
    """Check the footer as :func:`check_footer` does. Returns the file's descriptor if it lies near the end."""
    try:
        size, tail = _tail(path)
    except FileNotFoundError:
        if os.path.lexists(path):  # the codec would wait for a pipe's writer
            raise CorruptTable(where, ("it is no regular file",)) from None
        return None
    except OSError:
        return None  # the codec says what is wrong with it
    problems = problems_of_footer(tail[-FOOTER_BYTES:], size)
    if problems:
        raise CorruptTable(where, tuple(f"the data file can't be decoded: {problem}" for problem in problems))
    return descriptor_in(tail, size)


def _tail(path: str) -> tuple[int, bytes]:
    """The size of a regular file and its last bytes; ``FileNotFoundError`` for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise FileNotFoundError(path) from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(path)
        size = found.st_size
        return size, os.pread(descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    finally:
        os.close(descriptor)
