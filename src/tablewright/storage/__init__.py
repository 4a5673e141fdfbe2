"""The store protocol, and its implementations: local, memory, object stores."""

from tablewright.storage.address import Address, join_uri, parse_address
from tablewright.storage.base import Location, ObjectInfo, ObjectNotFound, Store
from tablewright.storage.local import LocalStore
from tablewright.storage.memory import MemoryStore
from tablewright.storage.open import open_store
from tablewright.storage.remote import RemoteStore
from tablewright.storage.subtree import (
    SubtreeStore,
    delete_empty_directories,
    delete_tree,
    related_store,
)

__all__ = [
    "Address",
    "LocalStore",
    "Location",
    "MemoryStore",
    "ObjectInfo",
    "ObjectNotFound",
    "RemoteStore",
    "Store",
    "SubtreeStore",
    "delete_empty_directories",
    "delete_tree",
    "join_uri",
    "open_store",
    "parse_address",
    "related_store",
]
