"""Rows of local files without the codec: the codec's rows, or none."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablewright.cache import process_cache
from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.data.number_files import open_numbers
from tablewright.storage import open_store
from tablewright.storage.base import Store
from tablewright.storage.identity import SETTLED_NS

ROWS = 20_000


def written(place: str, columns: dict[str, Any], version: str = "2.2") -> Store:
    store = open_store(place)
    batch = pa.record_batch(columns)
    writer = DataFileWriter(store, "a.lance", batch.schema, version)
    writer.write(batch)
    writer.add_metadata("kind", "numbers")
    writer.close()
    return store


def numbers() -> dict[str, Any]:
    chance = np.random.default_rng(1)
    return {
        "id": np.sort(chance.integers(0, 1 << 40, ROWS)),
        "at": pa.array(chance.integers(0, 1 << 50, ROWS), pa.timestamp("us", "UTC")),
        "share": chance.random(ROWS).astype(np.float32),
        "text": [f"{row}" for row in range(ROWS)],
        "maybe": pa.array([None, 1] * (ROWS // 2)),
    }


def test_rows_are_those_of_the_codec(tmp_path: Path) -> None:
    store = written(str(tmp_path), numbers())
    with open_numbers(store, "a.lance") as file:
        assert file is not None
        assert (file.num_rows, file.metadata) == (ROWS, {"kind": "numbers"})
        places = file.places(["share", "id", "at"])
        for start, stop in ((0, ROWS), (777, 778), (5000, 9096)):
            found = file.read(places, start, stop)
            (batch,) = DataFileReader(store, "a.lance").read(start, stop - start, ROWS)
            assert found == [batch.column(name) for name in ("share", "id", "at")]
        assert file.places(["text", "none", "id"]) == [-1, -1, 0]
        assert file.read([0, -1], 0, 5) is None
        assert file.read(file.places(["maybe"]), 0, 5) is None


def test_what_only_the_codec_can_open(tmp_path: Path) -> None:
    with open_numbers(written("memory://number-files", numbers()), "a.lance") as file:
        assert file is None
    with open_numbers(open_store(str(tmp_path / "none")), "a.lance") as file:
        assert file is None
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "a.lance").write_bytes(b"no data file" * 10)
    with open_numbers(open_store(str(tmp_path / "damaged")), "a.lance") as file:
        assert file is None
    os.mkfifo(tmp_path / "damaged" / "pipe.lance")
    with open_numbers(open_store(str(tmp_path / "damaged")), "pipe.lance") as file:
        assert file is None
    nested = {"s": pa.array([{"values": row} for row in range(10)]), "id": np.arange(10)}
    for place, columns, version in (("old", numbers(), "2.1"), ("nested", nested, "2.2")):
        with open_numbers(written(str(tmp_path / place), columns, version), "a.lance") as file:
            assert file is not None and file.columns == ()


def test_the_end_is_read_once_as_long_as_the_file_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: reads.append(size) or pread(file, size, at))
    process_cache().clear()
    store = written(str(tmp_path), numbers())
    time.sleep(2 * SETTLED_NS / 1e9)
    for expected in (1, 0):
        reads.clear()
        with open_numbers(store, "a.lance") as file:
            assert file is not None and len(reads) == expected
    written(str(tmp_path), {"id": np.arange(10)})
    with open_numbers(store, "a.lance") as file:
        assert file is not None and file.num_rows == 10
