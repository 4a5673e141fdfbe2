"""Every store passes the suite that ships with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablewright.storage import Store, SubtreeStore, open_store
from tablewright.testing import FaultyStore, memory_world
from tablewright.testing.store_conformance import StoreConformance


class TestLocalStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(tmp_path / "not yet there" / "table.lance")


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return memory_world().store


class TestFaultyStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return FaultyStore(memory_world().store)


class TestSubtreeStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        parent = open_store(tmp_path)
        parent.put("tree/other/x", b"not seen from the subtree")
        return SubtreeStore(parent, "tree/b")


class TestS3Store(StoreConformance):
    @pytest.fixture
    def store(self, s3_bucket: str, s3_options: dict[str, str]) -> Store:
        return open_store(f"s3://{s3_bucket}/some/table.lance", s3_options)
