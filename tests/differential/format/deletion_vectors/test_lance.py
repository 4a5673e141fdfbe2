"""Deletion files: pylance and we read each other's."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from tablewright.format.deletion_vectors.lance import choose_type, decode_deletion_vector, encode_deletion_vector
from tablewright.format.fragment import DeletionFileType
from tablewright.format.row_set import RowSet

ARRAY, BITMAP = DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP


# -------------------------------------------------------------------------------------------------------------- referee
@pytest.mark.parametrize(("deleted", "suffix"), [(3, ".arrow"), (4999, ".arrow"), (5000, ".bin"), (12_000, ".bin")])
def test_lance_and_we_read_each_others_files(deleted: int, suffix: str, tmp_path: Path) -> None:
    rows = 20_000
    ds = lance.write_dataset(pa.table({"id": range(rows)}), tmp_path / "t")
    ds.delete(f"id % 5 != 1 AND id >= 100 AND id < {100 + deleted * 5 // 4}")
    (file,) = (tmp_path / "t" / "_deletions").iterdir()
    assert file.suffix == suffix
    file_type = BITMAP if suffix == ".bin" else ARRAY
    assert file_type is choose_type(rows - ds.count_rows(), None)

    theirs = decode_deletion_vector(file.read_bytes(), file_type, str(file))
    assert len(theirs) == rows - ds.count_rows()
    assert theirs.absent(rows).tolist() == ds.to_table()["id"].to_pylist()
    ours = encode_deletion_vector(theirs, file_type)
    if file_type is BITMAP:
        assert ours == file.read_bytes()

    others = RowSet.of(np.arange(len(theirs)) * 1 + 7)
    file.write_bytes(encode_deletion_vector(others, file_type))
    assert lance.dataset(tmp_path / "t").to_table()["id"].to_pylist() == others.absent(rows).tolist()
