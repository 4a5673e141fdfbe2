"""Bytes that pass between the driver and its workers as files, where both are on one machine (master ``local…``).

What passes through the JVM is copied some six times, and converted to rows and back: 60 MB of tasks took 1.5 s, 320 MB
of keys 5 s. A file takes 0.1 s, and a worker maps it. On a cluster, and with Spark Connect, there is no directory that
both see, and everything goes through Spark.

A task that runs twice writes two files, and only the one that its answer names is read. The directory goes when the
job has ended. It is below PySpark's own (``spark.local.dir``), which the JVM removes if the driver is killed.
"""

from __future__ import annotations

import mmap
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablewright.engine.detect import is_connect
from tablewright.storage.temporary import new_temporary_directory, temporary_space

__all__ = ["Spool", "Spooled", "is_on_this_machine", "opened_spool"]


@dataclass(frozen=True, slots=True)
class Spooled:
    """Bytes in a file: from ``begin`` up to ``end``."""

    path: str
    begin: int
    end: int

    def read(self) -> bytes:
        """A copy of the bytes."""
        with Path(self.path).open("rb") as file:
            file.seek(self.begin)
            return file.read(self.end - self.begin)

    def mapped(self) -> memoryview:
        """The bytes, mapped into memory: the system reads what is looked at."""
        with Path(self.path).open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[self.begin : self.end]


@dataclass(frozen=True, slots=True)
class Spool:
    """A directory that the driver and all workers see."""

    directory: str

    def write(self, contents: Iterable[bytes | memoryview]) -> list[Spooled]:
        """Write one new file; where each of its parts is. Parts begin at multiples of 64 bytes, as Arrow likes it."""
        path, found, place = str(Path(self.directory, uuid.uuid4().hex)), list[Spooled](), 0
        with temporary_space(), Path(path).open("xb") as file:
            for content in contents:
                place += file.write(bytes(-place % 64))
                found.append(Spooled(path, place, place + len(content)))
                place += file.write(content)
        return found


def is_on_this_machine(spark: Any) -> bool:
    """Whether the workers of a session run on the driver's machine, as its user."""
    return not is_connect(spark) and str(spark.sparkContext.master).partition("[")[0] == "local"


@contextmanager
def opened_spool(spark: Any) -> Iterator[Spool | None]:
    """A spool for one job; ``None`` where workers are elsewhere."""
    if not is_on_this_machine(spark):
        yield None
        return
    directory = new_temporary_directory(getattr(spark.sparkContext, "_temp_dir", None))
    try:
        yield Spool(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
