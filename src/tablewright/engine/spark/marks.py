"""Files of one Spark job that can be found again: their names have some bytes in common.

The driver knows the files of a task from its result. A Spark job that fails in Spark's own part (a column that divides
by zero, a worker that keeps dying, a cancelled job) returns no results, also of the tasks that succeeded. So the ids
that its tasks give to files contain a *mark*, and the driver removes the files whose names contain it: data files,
deletion files, files in the directory of an index that a task named, and parts of an index, also unfinished ones. What
it can't see is left to cleanup: a worker that is killed while the codec writes leaves a file whose name is the codec's
choice.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain

from tablewright.errors import TablewrightError
from tablewright.format.naming import DATA_DIR, DELETIONS_DIR, INDICES_DIR
from tablewright.storage.subtree import delete_empty_directories, unfinished_files
from tablewright.storage.uncommitted import discard_files
from tablewright.world import SystemIds, World

__all__ = ["MARK_BYTES", "Mark", "MarkedIds", "marked_files"]

_MARK_AT, MARK_BYTES = 3, 5  # the first three bytes of an id are binary digits in the name of a data file
_U64_RANDOM_BITS = 64 - 8 * MARK_BYTES
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

    token: bytes = field(default_factory=lambda: secrets.token_bytes(MARK_BYTES))

    @property
    def ids(self) -> MarkedIds:
        """The ids that the tasks of the job give to files."""
        return MarkedIds(self.token)

    def is_in(self, path: str) -> bool:
        """Whether a path below the table's root is that of a file of the job."""
        folder, _, name = path.rpartition("/")
        if folder.startswith(f"{INDICES_DIR}/"):
            words = (folder.rpartition("/")[2], name.removeprefix("part-"))
            return any(word.replace("-", "")[2 * _MARK_AT :].startswith(self.token.hex()) for word in words)
        if folder == DATA_DIR:
            return name[8 * _MARK_AT :].startswith(self.token.hex())
        number = name.rpartition("-")[2].partition(".")[0]
        return folder == DELETIONS_DIR and number.isdecimal() and self._is_of(int(number))

    def discard(self, world: World, keep: Collection[str] = ()) -> None:
        """Remove all files of the job but those to ``keep``. What can't be found or removed is left to cleanup.

        A worker whose task was cancelled may still write the rows that it has received. So this looks again after a
        short while, until there is nothing new.
        """
        with suppress(TablewrightError):
            for _ in range(ROUNDS_MAX):
                found = self._find(world, keep)
                discard_files(world.store, found)
                for folder in {path.rpartition("/")[0] for path in found if path.startswith(f"{INDICES_DIR}/")}:
                    delete_empty_directories(world.store, folder)
                world.clock.sleep(QUIET_SECONDS)
                if not self._find(world, keep):
                    return

    def _find(self, world: World, keep: Collection[str]) -> list[str]:
        folders = [f"{folder}/" for folder in (DATA_DIR, DELETIONS_DIR, INDICES_DIR)]
        entries = (chain(world.store.list(folder), unfinished_files(world.store, folder)) for folder in folders)
        paths = (entry.path for entry in chain.from_iterable(entries))
        return [path for path in paths if self.is_in(path) and path not in keep]

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
