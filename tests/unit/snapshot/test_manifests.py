"""Manifests are found again by their bytes: what was read or written is not decoded again, and never mistaken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

import tablewright as tw
from tablewright.errors import CorruptTable
from tablewright.snapshot import manifests
from tablewright.snapshot.locate import latest_version


@pytest.fixture
def decodes() -> Iterator[mock.Mock]:
    with mock.patch.object(manifests, "decode_manifest_file", wraps=manifests.decode_manifest_file) as decode:
        yield decode


def test_what_was_read_or_written_is_not_decoded_again(tmp_path: Path, decodes: mock.Mock) -> None:
    ds = tw.write_dataset({"id": [1]}, tmp_path / "t")
    for number in range(3):
        tw.write_dataset({"id": [number]}, tmp_path / "t", mode="append")
    assert tw.dataset(tmp_path / "t").count_rows() == 4
    assert decodes.call_count == 0
    assert ds.checkout_version(3).to_table()["id"].to_pylist() == [1, 0, 1]


def test_a_table_created_again_is_another(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ds = tw.write_dataset({name: [1]}, tmp_path / "t")
        assert tw.dataset(tmp_path / "t").schema.names == ds.schema.names == [name]
        tw.LanceDataset.drop(tmp_path / "t")


def test_damage_is_seen_though_the_file_was_read_before(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": [1]}, tmp_path / "t")
    entry = latest_version(ds._snapshot.world.store)
    assert entry is not None
    file = tmp_path / "t" / entry.path
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(CorruptTable):
        tw.dataset(tmp_path / "t")


def test_the_kept_value_is_what_a_reader_decodes(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": [1, 2]}, tmp_path / "t", enable_stable_row_ids=True)
    ds.insert({"id": [3]})
    ds.delete("id = 1")
    ds.update_config({"a": "b"})
    snapshot = ds._snapshot
    data = snapshot.world.store.get(snapshot.entry.path)
    assert manifests.decode_manifest_file(data, snapshot.file.path) == snapshot.file
