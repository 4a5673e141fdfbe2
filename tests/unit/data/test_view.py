"""Views of data files that the codec misreads: shared, fetched by column, gone with their readers."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data import view as views
from tablewright.data.encoder import DataFileReader
from tablewright.data.view import view_of
from tablewright.errors import CorruptTable, TablewrightError
from tablewright.storage import Store, open_store

GOLDEN = Path(__file__).parents[2] / "golden" / "lance-blob"


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A golden data file at data/x.lance."""
    store = open_store(str(tmp_path / "t") if request.param == "local" else f"memory://{tmp_path.name}")
    store.put("data/x.lance", _file("v2_2.2").read_bytes())
    return store


def _file(name: str) -> Path:
    return sorted((GOLDEN / name / "table" / "data").glob("*.lance"))[0]


def test_columns_after_a_blob(store: Store) -> None:
    reader = DataFileReader(store, "data/x.lance", ["c0", "b", "c7"])
    (batch,) = reader.read(1, 3, 10)
    assert batch.schema.names == ["b", "c0", "c7"] or set(batch.schema.names) == {"b", "c0", "c7"}
    assert [value % 100 for value in batch["c7"].to_pylist()] == batch["c0"].to_pylist() == [1, 2, 3]
    assert batch["b"].to_pylist()[0] is None and batch["b"].to_pylist()[1]["size"] == 0
    (taken,) = DataFileReader(store, "data/x.lance", ["s"]).take(np.array([0, 4]), 10)
    assert taken["s"].to_pylist() in (["s00", "s04"], ["s10", "s14"])
    assert reader.num_columns == 11 and reader.num_rows == 7
    with pytest.raises(KeyError):
        DataFileReader(store, "data/x.lance", ["nope"])


def test_readers_share_a_view_and_it_goes_with_them(store: Store) -> None:
    one = view_of(store, "data/x.lance", describe=False)
    assert one is not None
    assert view_of(store, "data/x.lance", describe=False) is one
    path = Path(one.path)
    assert path.exists()
    del one
    gc.collect()
    assert not path.exists()
    assert not path.parent.exists()


def test_buffers_come_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(store, "data/x.lance", describe=False)
    assert view is not None
    fetched: list[tuple[int, int]] = []
    chunks = views._chunks

    def counted(ranges: object) -> list[tuple[int, int]]:
        found = list(chunks(ranges))  # type: ignore[arg-type]
        fetched.extend(found)
        return found

    monkeypatch.setattr(views, "_chunks", counted)
    view.fetch([0])
    view.fetch([0])
    assert len(fetched) == 1
    view.fetch([0, 5])
    assert len(fetched) == 2


def test_files_without_blobs_have_no_view(tmp_path: Path) -> None:
    ds = tw.write_dataset(pa.table({"id": [1]}), tmp_path / "t")
    (file,) = ds.get_fragments()[0].data_files()
    store = open_store(str(tmp_path / "t"))
    assert view_of(store, f"data/{file.path}", describe=True) is None
    assert view_of(store, f"data/{file.path}", describe=True) is None


def test_v1_files_have_one_for_descriptions_only(tmp_path: Path) -> None:
    shutil.copy(_file("v1_2.1"), tmp_path / "x.lance")
    store = open_store(str(tmp_path))
    assert view_of(store, "x.lance", describe=False) is None
    assert view_of(store, "x.lance", describe=True) is not None


def test_a_missing_file(store: Store) -> None:
    with pytest.raises(CorruptTable, match="missing"):
        DataFileReader(store, "data/nope.lance", ["id"])


def test_every_flipped_byte_of_the_end_is_survived(tmp_path: Path) -> None:
    """Damage is an error of ours, or harmless; never another exception."""
    whole = _file("v2_2.2_from_v1_mark").read_bytes()
    for index, place in enumerate(range(len(whole) - 700, len(whole), 7)):
        path = tmp_path / f"{index}.lance"
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        store = open_store(str(tmp_path))
        try:
            view_of(store, path.name, describe=True)
        except TablewrightError:
            continue
