"""Files that were written and are in no version yet: whoever knows that the work failed removes them.

A task that fails removes its own files; the driver removes those of tasks that succeeded, after another one failed or
after a conflict. The files of a worker that dies stay: cleanup finds them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import Self

from tablewright.errors import TablewrightError
from tablewright.log import Log
from tablewright.storage.base import Store
from tablewright.storage.subtree import delete_empty_directories

__all__ = ["UncommittedFiles", "discard_directory", "discard_files", "removed_on_failure"]

_log = Log("files")


def discard_files(store: Store, paths: Iterable[str]) -> None:
    """Remove files that no version uses. One that can't be removed now is left to cleanup."""
    for path in paths:
        _log.debug(
            "discard", "removing %(path)s, which no version of %(table)s uses", path=path, table=store.location.uri
        )
        try:
            store.delete(path)
        except TablewrightError:
            continue


def discard_directory(store: Store, directory: str, keep: Collection[str] = ()) -> None:
    """Remove all files below a directory that no version uses, but for those to ``keep``, paths below the root.

    What can't be listed or removed now is left to cleanup.
    """
    try:
        paths = [info.path for info in store.list(directory)]
        discard_files(store, [path for path in paths if path not in keep])
        if not keep:
            delete_empty_directories(store, directory)
    except TablewrightError:
        return


class UncommittedFiles:
    """Paths of files as threads write them. After :meth:`remove`, files that are added later are removed at once.

    As a context they are removed if the block fails: :func:`removed_on_failure`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._paths: list[str] = []
        self._given_up = False

    def add(self, paths: Iterable[str]) -> None:
        """Remember files below the table's root."""
        with self._lock:
            if not self._given_up:
                known = len(self._paths)
                self._paths.extend(paths)
                for path in self._paths[known:] if _log.wants_debug() else ():
                    _log.debug("file", "wrote %(path)s of %(table)s", path=path, table=self._store.location.uri)
                return
        discard_files(self._store, paths)

    def release(self) -> None:
        """They are part of a version now: forget them, so that no later failure removes them."""
        with self._lock:
            self._paths = []

    def remove(self) -> None:
        """Give up: remove all files. What can't be removed is left to cleanup."""
        with self._lock:
            self._given_up = True
            paths, self._paths = self._paths, []
        discard_files(self._store, paths)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """If the block failed, its files are removed."""
        if error is not None:
            self.remove()


def removed_on_failure(store: Store) -> UncommittedFiles:
    """A list of files as they are written, as a context: if the block fails, they are removed."""
    return UncommittedFiles(store)
