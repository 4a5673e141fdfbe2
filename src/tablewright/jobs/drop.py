"""Dropping a table: all its versions and files.

Tests: ``tests/unit/jobs/test_drop.py``, ``tests/unit/api/test_links.py``,
``tests/concurrency/test_replaced_meanwhile.py``.
"""

from __future__ import annotations

from tablewright.errors import InvalidRequest, StorageError
from tablewright.format.naming import VERSIONS_DIR
from tablewright.snapshot.locate import latest_version
from tablewright.storage import delete_empty_directories, delete_tree
from tablewright.storage.subtree import local_file_names
from tablewright.world import World

__all__ = ["drop_table"]

_ROUNDS_MAX = 5


def drop_table(world: World, *, ignore_not_found: bool = False) -> None:
    """Delete a table. The newest manifest goes last, so that an interrupted drop never shows an older version."""
    store = world.store
    if latest_version(store) is not None:
        for _ in range(_ROUNDS_MAX):  # a writer that is under way may still add files
            if not delete_tree(store, "", last=VERSIONS_DIR):
                break
        return
    if next(iter(store.list("")), None) is not None:
        raise InvalidRequest(
            f"Refusing to drop {store.location.uri}: no readable Lance manifest was found under '_versions'."
        )
    if VERSIONS_DIR in (local_file_names(store, "") or ()):  # a drop was interrupted when all files were gone
        delete_empty_directories(store, "")
    if not ignore_not_found:
        raise StorageError(f"Not found: {store.location.uri}. There is no table to drop.")
