"""Tables in this process's memory: ``memory://name``.

All stores with the same address share the same objects until the process ends; another process sees
nothing. The data-file codec can't reach them (``codec_location`` is ``None``), so data files go through ``get`` and
``put``.
"""

from __future__ import annotations

from obstore.store import MemoryStore as MemoryClient

from tablewright.storage.address import Address
from tablewright.storage.base import Location
from tablewright.storage.objects import ObjectStore

__all__ = ["MemoryStore", "open_memory"]

_MEMORY = MemoryClient()


class MemoryStore(ObjectStore):
    """A table's root in memory."""

    __slots__ = ()

    lists_in_order = True

    def codec_location(self, path: str) -> Location | None:
        return None


def open_memory(address: Address, options: dict[str, str]) -> MemoryStore:
    """The store at ``memory://…``, shared by all stores of the same address."""
    return MemoryStore(_MEMORY, address.key, Location(address.uri, options))
