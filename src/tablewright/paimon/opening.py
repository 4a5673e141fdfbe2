"""From an address to a :class:`~tablewright.paimon.table.PaimonTable`.

Tests: ``tests/unit/paimon/test_table.py``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tablewright.checks import whole_number
from tablewright.paimon.kinds import check_kind
from tablewright.paimon.metadata import read_state
from tablewright.paimon.table import PaimonTable
from tablewright.storage import open_store
from tablewright.world import World

__all__ = ["open", "open_in"]


def open(
    path: str | os.PathLike[str],
    *,
    snapshot: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> PaimonTable:
    """Open a Paimon table of a filesystem warehouse: ``path`` is its directory, ``<warehouse>/<database>.db/<table>``.

    Without ``snapshot`` it is the newest. Addresses are those of :func:`tablewright.dataset`, ``s3://`` included.

    >>> open("memory://nothing-here")
    Traceback (most recent call last):
    tablewright.paimon.metadata.NotPaimon: There is no Paimon table at memory://nothing-here: no schema/schema-<n> ...
    """
    return open_in(World(store=open_store(path, storage_options)), snapshot)


def open_in(world: World, snapshot: int | None = None) -> PaimonTable:
    """Open the table at the root of a world's store."""
    if snapshot is not None:
        snapshot = whole_number(snapshot, "snapshot", minimum=1)
    state = read_state(world.store, snapshot)
    check_kind(world.store.location.uri, state.schema)
    return PaimonTable(world, state, pinned=snapshot is not None)
