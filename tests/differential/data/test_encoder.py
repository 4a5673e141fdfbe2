"""Data files that we wrote are read by the codec itself."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest

from tablewright.data.encoder import DataFileWriter
from tablewright.storage import Store, open_store

BATCH = pa.record_batch({"a": pa.array(range(100)), "st": pa.array([{"p": i, "q": str(i)} for i in range(100)])})


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "t") if request.param == "local" else f"memory://{tmp_path.name}")


def _write(store: Store, path: str = "data/x.lance", version: str = "2.2") -> tuple[int, int]:
    writer = DataFileWriter(store, path, BATCH.schema, version)
    writer.write(BATCH.slice(0, 60))
    writer.write(BATCH.slice(60))
    return writer.close()


def test_the_real_codec_reads_our_file(tmp_path: Path) -> None:
    _write(open_store(str(tmp_path)))
    table = lance.file.LanceFileReader(str(tmp_path / "data/x.lance")).read_all().to_table()
    assert table.equals(pa.Table.from_batches([BATCH]))
