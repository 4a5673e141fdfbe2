"""Sequences in files of their own, as releases of 2025 could leave them: read, written inline; and hostile paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CorruptTable
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.fragment import FragmentList, decode_fragment, encode_fragment
from tablewright.format.proto import table_pb2 as pb

LINEAGE = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


HOSTILE = ["", "/", "..", "../x", "a\0b", "data/", "//", "a//b", "./a", "/etc/passwd", "x/../../y"]


def old_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[tw.LanceDataset, pa.Table]:
    """A table whose newest version has all sequences outside, one after the other in one file per fragment."""
    ds = tw.write_dataset(pa.table({"id": range(30)}), str(path), max_rows_per_file=10, enable_stable_row_ids=True)
    ds.update({"id": "id + 100"}, where="id % 3 = 0")
    expected = ds.to_table(columns=LINEAGE)
    manifest, raw = ds._snapshot.manifest, []
    (path / "_row_ids").mkdir()
    for fragment in manifest.fragments:
        file, named = b"before", pb.FragmentExternals()
        name = f"_row_ids/{fragment.id}.bin"
        for field, data in (
            ("row_ids", fragment.row_ids),
            ("last_updated_at_versions", fragment.last_updated_at),
            ("created_at_versions", fragment.created_at),
        ):
            getattr(named, field).CopyFrom(pb.SequenceFile(path=name, offset=len(file), size=len(data or b"")))
            file += (data or b"") + b"between"
        (path / name).write_bytes(file)
        bare = replace(fragment, row_ids=None, created_at=None, last_updated_at=None, unknown=b"\xa2\x06\x01z")
        raw.append(encode_fragment(replace(bare, unknown=bare.unknown + named.SerializeToString())))
    old = replace(manifest, fragments=FragmentList(raw))
    with monkeypatch.context() as patch:
        patch.setattr("tablewright.format.manifest_codec.problems_of_manifest", lambda _: ())
        encoded = encode_manifest_file(old, ds._snapshot.file.transaction_bytes or b"")
    (path / ds._snapshot.entry.path).write_bytes(encoded)
    return ds, expected


def test_they_are_read_and_come_inline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.lance"
    _, expected = old_table(path, monkeypatch)
    ds = tw.dataset(str(path))
    assert ds.to_table(columns=LINEAGE).equals(expected)
    assert ds.take_rows([4, 0])["id"].to_pylist() == [4, 100]
    ds.validate()
    ds.update({"id": "id + 1000"}, where="id = 4")
    assert all(decode_fragment(data, "").unknown == b"\xa2\x06\x01z" for data in ds._snapshot.fragments.raw[:-1])
    after = tw.dataset(str(path))
    after.validate()
    assert after.to_table(columns=LINEAGE).equals(ds.to_table(columns=LINEAGE))


def test_what_is_missing_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.lance"
    old_table(path, monkeypatch)
    file = path / "_row_ids" / "1.bin"
    file.write_bytes(file.read_bytes()[:10])
    with pytest.raises(CorruptTable, match="bytes from 6 on were expected"):
        tw.dataset(str(path))
    file.unlink()
    with pytest.raises(CorruptTable, match="row ids or row versions is missing"):
        tw.dataset(str(path))


def _with_place(ds: tw.LanceDataset, path: Path, monkeypatch: pytest.MonkeyPatch, place: bytes) -> None:
    """The newest manifest, whose first fragment says in `place` where its row ids lie."""
    manifest = ds._snapshot.manifest
    first = encode_fragment(replace(manifest.fragments[0], row_ids=None)) + b"\x32" + bytes([len(place)]) + place
    with monkeypatch.context() as patch:
        patch.setattr("tablewright.format.manifest_codec.problems_of_manifest", lambda _: ())
        encoded = encode_manifest_file(replace(manifest, fragments=FragmentList([first])), b"")
    (path / ds._snapshot.entry.path).write_bytes(encoded)


def test_places_that_nobody_wrote_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.lance"
    ds = tw.write_dataset(pa.table({"id": [1]}), str(path), enable_stable_row_ids=True)
    _with_place(ds, path, monkeypatch, b"\x0a\x7fshort")
    with pytest.raises(CorruptTable, match="fragment 0: where its row ids or versions lie"):
        tw.dataset(str(path))
    real = next((path / "data").iterdir()).name
    for name, offset, size in [*((name, 0, 1) for name in HOSTILE), (f"data/{real}", 2**64 - 1, 2**64 - 1)]:
        _with_place(ds, path, monkeypatch, pb.SequenceFile(path=name, offset=offset, size=size).SerializeToString())
        with pytest.raises(CorruptTable, match=f"can't be {size} bytes from {offset} on"):
            tw.dataset(str(path))


def test_names_of_files_stay_inside(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ds = tw.write_dataset(pa.table({"id": [1]}), str(path))
    manifest, place = ds._snapshot.manifest, path / ds._snapshot.entry.path
    for name in HOSTILE:
        (fragment,) = manifest.fragments
        file = replace(fragment.files[0], path=name)
        wrong = FragmentList([encode_fragment(replace(fragment, files=(file,)))])
        place.write_bytes(encode_manifest_file(replace(manifest, fragments=wrong), b""))
        with pytest.raises(CorruptTable, match="does not stay inside the data directory"):
            tw.dataset(str(path)).to_table()
        place.write_bytes(encode_manifest_file(replace(manifest, transaction_file=name), b""))
        reader = tw.dataset(str(path))
        assert reader.count_rows() == 1
        if name:
            with pytest.raises(CorruptTable, match="is not the name of a transaction file"):
                reader.read_transaction(1)
