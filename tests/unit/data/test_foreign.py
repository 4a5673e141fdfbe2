"""Another file under the name of a data file: told by its size, its types, its rows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CorruptTable

COUNT = 200
OURS = pa.table({"id": range(COUNT), "s": [f"{i:04}" for i in range(COUNT)]})
OTHERS = {
    "other types": pa.table({"id": [f"{i:04}" for i in range(COUNT)], "s": range(COUNT)}),
    "a narrower type": pa.table({"id": pa.array(range(COUNT), pa.int32()), "s": OURS["s"]}),
    "floats": pa.table({"id": pa.array(range(COUNT), pa.float64()), "s": OURS["s"]}),
    "times": pa.table({"id": pa.array(range(COUNT), pa.timestamp("us")), "s": OURS["s"]}),
    "another order": pa.table({"s": OURS["s"], "id": OURS["id"]}),
    "nested": pa.table({"id": [{"a": i} for i in range(COUNT)], "s": [[f"{i}"] for i in range(COUNT)]}),
    "fewer columns": OURS.select(["id"]),
    "fewer rows": OURS.slice(1),
}


def data_file(table: Path) -> Path:
    (path,) = table.glob("data/*.lance")
    return path


def write(rows: pa.Table, place: Path, version: str = "2.2") -> Path:
    tw.write_dataset(rows, place, data_storage_version=version)
    return data_file(place)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_file_of_another_table(tmp_path: Path, other: str, version: str) -> None:
    path = write(OURS, tmp_path / "ours", version)
    size = path.stat().st_size
    data = write(OTHERS[other], tmp_path / "other", version).read_bytes()
    path.write_bytes(data)
    ds = tw.dataset(tmp_path / "ours")
    with pytest.raises(CorruptTable, match=path.name) as caught:
        ds.to_table()
    assert len(data) == size or f"has {len(data)} bytes, the manifest says {size}" in str(caught.value)
    with pytest.raises(CorruptTable, match=path.name):
        ds.delete("id is null")  # nested columns used to read as null
    assert tw.dataset(tmp_path / "ours").version == 1


@pytest.mark.parametrize("other", ["other types", "a narrower type", "floats", "times", "another order", "nested"])
def test_types_tell_where_the_size_is_not_known(tmp_path: Path, other: str) -> None:
    """As on an object store, where nobody asks for the size of a file."""
    ours = tw.write_dataset(OURS, "memory://foreign-" + other.replace(" ", "-"))
    data = write(OTHERS[other], tmp_path / "other").read_bytes()
    (file,) = ours._snapshot.fragments[0].files
    ours._world.store.put(f"data/{file.path}", data)
    with pytest.raises(CorruptTable, match="in the table, but"):
        ours.to_table()


def test_a_file_of_another_version(tmp_path: Path) -> None:
    path = write(OURS, tmp_path / "ours", "2.2")
    shutil.copy(write(OURS, tmp_path / "other", "2.0"), path)
    with pytest.raises(CorruptTable, match="bytes, the manifest says"):
        tw.dataset(tmp_path / "ours").to_table()


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: b""])
def test_another_size_is_said(tmp_path: Path, change: object) -> None:
    path = write(OURS, tmp_path / "ours")
    assert callable(change)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CorruptTable, match="bytes, the manifest says"):
        tw.dataset(tmp_path / "ours").to_table()
