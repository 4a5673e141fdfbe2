"""Mapped files: a mapping serves the next search of its store, as long as the file is the same one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.caches import cached

import tablewright as tw
from tablewright.data.mapped import MAPPINGS_MAX, FileBytes, are_mapped, kept_mapping, map_file, mappings
from tablewright.data.number_files import open_numbers
from tablewright.storage import open_store
from tablewright.storage.base import Store


@pytest.fixture(autouse=True)
def _none_kept() -> Iterator[None]:
    mappings.clear()
    yield
    mappings.clear()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for number in range(MAPPINGS_MAX + 1):
        tw.write_dataset(pa.table({"id": [number]}), tmp_path, mode="append")
    return sorted((tmp_path / "data").glob("*.lance"))


def mapped(store: Store, file: Path) -> FileBytes:
    with open_numbers(store, file.name) as opened:
        assert opened is not None
        data = kept_mapping(store, opened)
    assert data is not None and data.tobytes() == file.read_bytes()
    return data


def test_a_mapping_serves_its_store_until_that_is_gone(files: list[Path]) -> None:
    store, other = (open_store(str(files[0].parent)) for _ in range(2))
    with cached("large"):
        first = mapped(store, files[0])
        assert mapped(store, files[0]) is first
        assert mapped(other, files[0]) is not first
        del store, other
        gc.collect()
        assert len(mappings) == 0


def test_a_file_that_was_written_again_is_mapped_again(files: list[Path]) -> None:
    store = open_store(str(files[0].parent))
    with cached("large"):
        mapped(store, files[0])
        files[1].replace(files[0])
        mapped(store, files[0])


def test_the_longest_unused_goes_first(files: list[Path]) -> None:
    store = open_store(str(files[0].parent))
    with cached("large"):
        first, second = mapped(store, files[0]), mapped(store, files[1])
        for file in files[2:-1]:
            mapped(store, file)
        assert mapped(store, files[0]) is first
        mapped(store, files[-1])
        assert len(mappings) == MAPPINGS_MAX
        assert mapped(store, files[0]) is first
        assert mapped(store, files[1]) is not second


def test_without_a_cache_nothing_is_kept(files: list[Path]) -> None:
    with cached("off"):
        store = open_store(str(files[0].parent))
        mapped(store, files[0])
        assert len(mappings) == 0


def test_pages_that_were_used_before(tmp_path: Path) -> None:
    """The positions are far apart: the system maps neighbours of a page with it."""
    file, step = tmp_path / "sparse", 1 << 21
    with file.open("wb") as written:
        written.truncate(64 * step)
    with file.open("rb") as opened:
        data = map_file(opened.fileno(), 64 * step)
    assert data is not None
    positions = np.arange(64) * step
    assert not are_mapped(data, positions[:16])
    assert are_mapped(data, positions[:16])
    assert not are_mapped(data, positions)
    assert are_mapped(data, positions)
