"""Files of one Spark job that can be found again: their names have some bytes in common.

The driver knows the files of a task from its result. A Spark job that fails in Spark's own part (a column that divides
by zero, a worker that keeps dying, a cancelled job) returns no results, also of the tasks that succeeded. So the ids
that its tasks give to files contain a *mark*, and the driver removes the files whose names contain it. What it can't
see is left to cleanup: a worker that is killed while it writes a file leaves a temporary file, whose name is the
codec's choice.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tablewright.errors import TablewrightError
from tablewright.format.naming import DATA_DIR, DELETIONS_DIR
from tablewright.storage.uncommitted import discard_files
from tablewright.world import SystemIds, World

__all__ = ["Mark", "MarkedIds", "marked_files"]

_MARK_AT, _MARK_BYTES = 3, 5  # the first three bytes of an id are binary digits in the name of a data file
_U64_RANDOM_BITS = 64 - 8 * _MARK_BYTES
QUIET_SECONDS, ROUNDS_MAX = 0.5, 10


@dataclass(frozen=True, slots=True)
class MarkedIds(SystemIds):
    """Random ids with the mark in them."""

    mark: bytes

    def uuid(self) -> uuid.UUID:
        fresh = uuid.uuid4().bytes
        return uuid.UUID(bytes=fresh[:_MARK_AT] + self.mark + fresh[_MARK_AT + len(self.mark) :])

    def u64(self) -> int:
        return int.from_bytes(self.mark, "big") << _U64_RANDOM_BITS | secrets.randbits(_U64_RANDOM_BITS)


@dataclass(frozen=True, slots=True)
class Mark:
    """Five random bytes, drawn once per job."""

    token: bytes = field(default_factory=lambda: secrets.token_bytes(_MARK_BYTES))

    @property
    def ids(self) -> MarkedIds:
        """The ids that the tasks of the job give to files."""
        return MarkedIds(self.token)

    def is_in(self, path: str) -> bool:
        """Whether a path below the table's root is that of a data file or deletion file of the job."""
        folder, _, name = path.rpartition("/")
        if folder == DATA_DIR:
            return name[8 * _MARK_AT :].startswith(self.token.hex())
        number = name.rpartition("-")[2].partition(".")[0]
        return folder == DELETIONS_DIR and number.isdecimal() and self._is_of(int(number))

    def discard(self, world: World) -> None:
        """Remove all files of the job. What can't be found or removed is left to cleanup.

        A worker whose task was cancelled may still write the rows that it has received. So this looks again after a
        short while, until there is nothing new.
        """
        with suppress(TablewrightError):
            for _ in range(ROUNDS_MAX):
                discard_files(world.store, self._find(world))
                world.clock.sleep(QUIET_SECONDS)
                if not self._find(world):
                    return

    def _find(self, world: World) -> list[str]:
        entries = [entry for folder in (DATA_DIR, DELETIONS_DIR) for entry in world.store.list(f"{folder}/")]
        return [entry.path for entry in entries if self.is_in(entry.path)]

    def _is_of(self, number: int) -> bool:
        return number >> _U64_RANDOM_BITS == int.from_bytes(self.token, "big")


@contextmanager
def marked_files(world: World) -> Iterator[Mark]:
    """The mark of one job: if the block fails or is interrupted, all files of the job are removed."""
    mark = Mark()
    try:
        yield mark
    except BaseException:
        mark.discard(world)
        raise
