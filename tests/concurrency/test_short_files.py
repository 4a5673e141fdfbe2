"""A data file whose last bytes did not fit: the codec reports success, we do not."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import StorageError

ROWS = pa.table({"id": range(2000)})


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("fsync", ["true", "false"])
@pytest.mark.parametrize("missing", [1, 10, 100])
def test_a_data_file_without_its_last_bytes_is_not_committed(
    tmp_path: Path, version: str, fsync: str, missing: int
) -> None:
    options = {"fsync": fsync}
    ds = tw.write_dataset(ROWS, tmp_path / "t", data_storage_version=version, storage_options=options)
    [file] = os.listdir(tmp_path / "t" / "data")
    size = (tmp_path / "t" / "data" / file).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - missing, hard))
    try:
        with pytest.raises(StorageError):
            ds.insert(ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path / "t" / "data") == [file]
    assert tw.dataset(ds.uri).to_table() == ROWS
