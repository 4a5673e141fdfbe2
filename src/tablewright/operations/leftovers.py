"""Files that a change has written and nobody has committed: whoever knows that it failed removes them.

A task that fails removes its own; the driver removes those of tasks that came home, after another one failed or after
a conflict. A worker that dies leaves its files behind: cleanup finds them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tablewright.errors import TablewrightError
from tablewright.world import World

__all__ = ["Leftovers", "removed_on_failure"]


class Leftovers:
    """Paths of files as threads write them. After :meth:`remove` those that still come in are removed at once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._paths: list[str] = []
        self._given_up = False

    def add(self, paths: Iterable[str]) -> None:
        """Remember files below the table's root."""
        with self._lock:
            if not self._given_up:
                self._paths.extend(paths)
                return
        self._delete(paths)

    def remove(self) -> None:
        """Give up: remove all files. What can't be removed is left to cleanup."""
        with self._lock:
            self._given_up = True
            paths, self._paths = self._paths, []
        self._delete(paths)

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                self._world.store.delete(path)
            except TablewrightError:
                continue


@contextmanager
def removed_on_failure(world: World) -> Iterator[Leftovers]:
    """A place to name files as they are written: if the work fails, they are removed."""
    leftovers = Leftovers(world)
    try:
        yield leftovers
    except BaseException:
        leftovers.remove()
        raise
