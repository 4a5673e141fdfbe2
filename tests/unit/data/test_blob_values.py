"""Bytes of blobs: fetched by ranges, and errors that name what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.blob_values import BlobValues, _Place
from tablewright.data.task_context import TaskContext
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.blobs import as_descriptions
from tablewright.storage import Store, open_store
from tablewright.world import World

GOLDEN = Path(__file__).parents[2] / "golden" / "lance-blob"
DESCRIPTION = as_descriptions(tw.dataset(str(GOLDEN / "v2_2.2" / "table"))._snapshot.schema).to_arrow().field("b").type


def _values(store: Store, *rows: tuple[int, int, int, int, str] | None) -> list[bytes | None]:
    names = [field.name for field in DESCRIPTION]
    array = pa.array([None if row is None else dict(zip(names, row, strict=True)) for row in rows], DESCRIPTION)
    blobs = BlobValues(TaskContext(World(store=store)), store, "data/x.lance", "here/data/x.lance")
    found: list[bytes | None] = blobs.values(array, pa.large_binary()).to_pylist()
    return found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(f"memory://{tmp_path.name}")
    store.put("data/x.lance", bytes(range(200)))
    store.put("data/x/10000000000000000000000000000000.blob", b"packed one, packed two")
    store.put("data/x/01000000000000000000000000000000.blob", b"alone")
    store.put("_blobs/m.blob", b"managed")
    return store


def test_every_kind(store: Store) -> None:
    uri = f"{store.location.uri}/_blobs/m.blob"
    assert _values(
        store,
        (1, 12, 10, 1, ""),
        None,
        (0, 3, 2, 0, ""),
        (0, 77, 0, 0, ""),
        (2, 0, 5, 2, ""),
        (1, 0, 10, 1, ""),
        (3, 0, 0, 0, uri),
        (3, 1, 3, 0, uri),
        (4, 0, 4, 0, "_blobs/m.blob"),
        (0, 190, 10, 0, ""),
    ) == [
        b"packed two",
        None,
        bytes([3, 4]),
        b"",
        b"alone",
        b"packed one",
        b"managed",
        b"ana",
        b"mana",
        bytes(range(190, 200)),
    ]


@pytest.mark.parametrize(
    ("row", "error", "text"),
    [
        ((0, 190, 11, 0, ""), CorruptTable, "ends before byte 201"),
        ((0, 2**63, 1, 0, ""), CorruptTable, "a blob lies at byte"),
        ((0, 0, 2**64 - 1, 0, ""), CorruptTable, "a blob lies at byte"),
        ((1, 0, 1, 9, ""), CorruptTable, "bytes of blobs is missing"),
        ((2, 0, 6, 2, ""), CorruptTable, "ends before byte 6"),
        ((4, 0, 1, 0, "../secret"), CorruptTable, "leads elsewhere"),
        ((4, 0, 1, 0, "/etc/passwd"), CorruptTable, "leads elsewhere"),
        ((5, 0, 1, 7, "a"), CorruptTable, "base path 7, which is not listed"),
        ((3, 0, 0, 0, "memory://nowhere/at/all"), OSError, "Not found: memory://nowhere/at/all"),
        ((3, 0, 0, 0, "gopher://x/y"), UnsupportedFeature, "gopher://x/y"),
        ((6, 0, 1, 0, ""), UnsupportedFeature, "Unknown blob kind 6"),
    ],
)
def test_what_is_wrong_is_said(store: Store, row: tuple[int, int, int, int, str], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        _values(store, row)


def test_neighbours_are_one_request(store: Store) -> None:
    rows = np.arange(5)
    starts = np.array([300_000, 0, 64, 128, 20 << 20])
    place = _Place(store, "x", 0, rows, starts, np.array([10, 10, 10, 10, 5 << 20]), False)
    requests = [(begin, end, found.tolist()) for begin, end, found, _, _ in place.requests()]
    assert requests == [(0, 138, [1, 2, 3]), (300_000, 300_010, [0]), (20 << 20, 25 << 20, [4])]


def test_a_lost_object_is_named(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    shutil.copytree(GOLDEN / "v2_2.2" / "table", uri)
    next(uri.glob("data/*/*.blob")).unlink()
    ds = tw.dataset(str(uri))
    assert ds.to_table().num_rows == 13
    with pytest.raises(CorruptTable, match=r"\.blob: the object with the bytes of blobs is missing"):
        ds.to_table(blob_handling="all_binary")
