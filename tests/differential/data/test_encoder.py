"""Data files that we wrote are read by the codec itself."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest
from tests.unit.data.test_encoder import _write

from tablewright.storage import Store, open_store

BATCH = pa.record_batch({"a": pa.array(range(100)), "st": pa.array([{"p": i, "q": str(i)} for i in range(100)])})


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "t") if request.param == "local" else f"memory://{tmp_path.name}")


def test_the_real_codec_reads_our_file(tmp_path: Path) -> None:
    _write(open_store(str(tmp_path)))
    table = lance.file.LanceFileReader(str(tmp_path / "data/x.lance")).read_all().to_table()
    assert table.equals(pa.Table.from_batches([BATCH]))
