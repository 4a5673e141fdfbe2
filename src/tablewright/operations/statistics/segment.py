"""The files of one index segment.

Tests: ``tests/differential/test_stats.py``.
"""

from __future__ import annotations

import json
from typing import Any

from tablewright.data.file_end import FileEnd, read_end
from tablewright.format.index import IndexMetadata
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store, exists

__all__ = ["Segment"]


class Segment:
    """One segment: where its files are, and what their ends say. Each end is read once."""

    def __init__(self, store: Store, directory: str, metadata: IndexMetadata) -> None:
        self.store, self.directory, self.metadata = store, directory, metadata
        self._ends: dict[str, FileEnd] = {}

    def path(self, name: str) -> str:
        """The path of a file in the store."""
        return f"{self.directory}/{name}"

    def uri(self, name: str) -> str:
        """The full address of a file."""
        return join_uri(self.store.location.uri, self.path(name))

    def has(self, name: str) -> bool:
        """Whether the segment has this file."""
        if self.metadata.files:
            return any(file.path == name for file in self.metadata.files)
        return exists(self.store, self.path(name))

    def end(self, name: str) -> FileEnd:
        """The end of a file."""
        found = self._ends.get(name)
        if found is None:
            found = self._ends[name] = read_end(self.store, self.path(name))
        return found

    def json(self, name: str, key: str) -> Any:
        """What a file's metadata hold as JSON under a key."""
        return json.loads(self.end(name).metadata[key])
