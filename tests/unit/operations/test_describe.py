"""What a table tells about itself, also when another client left something behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa

import tablewright as tw
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.index import IndexMetadata


def test_an_index_whose_column_is_gone_is_listed(tmp_path: Path) -> None:
    """An index that was built while its column was dropped: pylance leaves it, and a reader has to live with it."""
    ds = tw.write_dataset(pa.table({"id": [1, 2]}), str(tmp_path))
    left = IndexMetadata(uuid=UUID(int=7), fields=(0, 9), name="left", dataset_version=1)
    manifest = replace(ds._snapshot.manifest, indices=(left,))
    (tmp_path / ds._snapshot.entry.path).write_bytes(encode_manifest_file(manifest, b""))
    (index,) = tw.dataset(str(tmp_path)).list_indices()
    assert (index["name"], index["fields"]) == ("left", ["id", "(dropped field 9)"])
    assert tw.dataset(str(tmp_path)).to_table(filter="id = 2").num_rows == 1
