"""Row ids and row versions in manifests: what pylance wrote, and what it reads of ours."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from tablewright.format.proto import table_pb2
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.format.row_versions import VersionSequence, decode_versions, encode_versions
from tablewright.format.segments import (
    Array,
    NumberArray,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
)


def numbers(*values: int) -> NumberArray:
    return NumberArray.of(np.array(values, np.uint64))


# -------------------------------------------------------------------------------------------------------------- referee
def newest(table: Path) -> Path:
    return min((table / "_versions").glob("*.manifest"))


def manifest_of(table: Path) -> Any:
    data = newest(table).read_bytes()
    (at,) = struct.unpack("<q", data[-16:-8])
    return table_pb2.Manifest.FromString(data[at + 4 : len(data) - 16])


def put_manifest(table: Path, manifest: Any) -> None:
    data = newest(table).read_bytes()
    (at,) = struct.unpack("<q", data[-16:-8])
    body = manifest.SerializeToString()
    newest(table).write_bytes(data[:at] + struct.pack("<I", len(body)) + body + data[-16:])


CREATED, UPDATED = "_row_created_at_version", "_row_last_updated_at_version"


def test_what_lance_writes_means_what_it_reads(tmp_path: Path) -> None:
    rows = pa.table({"id": range(300), "v": [0] * 300})
    ds = lance.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=True, max_rows_per_file=100)
    ds.update({"v": "1"}, where="id % 7 = 3")
    ds.delete("id % 11 = 0")
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"id": [5, 500, 250, 501], "v": [9] * 4})
    )
    ds.optimize.compact_files(target_rows_per_fragment=250)
    ds.update({"v": "2"}, where="id = 8")
    table = (
        lance.dataset(tmp_path / "t")
        .scanner(columns=["id", CREATED, UPDATED], with_row_id=True, with_row_address=True)
        .to_table()
    )
    address = table["_rowaddr"].to_numpy()
    for fragment in manifest_of(tmp_path / "t").fragments:
        here = address >> 32 == fragment.id
        offsets = (address[here] & 0xFFFFFFFF).astype(np.int64)
        ids = decode_row_ids(fragment.inline_row_ids, "p", fragment.physical_rows)
        assert ids.to_numpy()[offsets].tolist() == table["_rowid"].to_numpy()[here].tolist()
        assert ids.position_of(table["_rowid"].to_numpy()[here]).tolist() == offsets.tolist()
        assert encode_row_ids(ids) == fragment.inline_row_ids
        for stored, column in (
            (fragment.inline_created_at_versions, CREATED),
            (fragment.inline_last_updated_at_versions, UPDATED),
        ):
            versions = decode_versions(stored, "p", fragment.physical_rows)
            assert versions.to_numpy()[offsets].tolist() == table[column].to_numpy()[here].tolist()
            assert encode_versions(versions) == stored


@pytest.mark.parametrize(
    "ids",
    [
        RowIdSequence.from_values(np.arange(40, 50)),
        RowIdSequence((RangeWithHoles(100, 112, numbers(103, 110)),)),
        RowIdSequence.from_values([1, 2, 5, 6, 9, 11, 12, 13, 14, 20]),
        RowIdSequence.from_values(np.arange(10) * 1000),
        RowIdSequence.from_values(np.arange(10) * 2**33),
        RowIdSequence.from_values([9, 3, 7, 2, 100, 1, 0, 4, 5, 6]),
        RowIdSequence((Range(50, 54), Array(numbers(8, 3, 2)), RangeWithBitmap(60, 63, b"\7"))),
    ],
    ids=lambda ids: "+".join(type(segment).__name__ for segment in ids.segments),
)
def test_what_we_write_means_the_same_to_lance(ids: RowIdSequence, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": range(10)}), tmp_path / "t", enable_stable_row_ids=True)
    manifest = manifest_of(tmp_path / "t")
    assert manifest.fragments[0].inline_row_ids == encode_row_ids(RowIdSequence.from_range(0, 10))
    manifest.next_row_id = 2**40
    manifest.fragments[0].inline_row_ids = encode_row_ids(ids)
    versions = VersionSequence.constant(10, 1).patched(np.array([3, 4, 9]), 300)
    manifest.fragments[0].inline_last_updated_at_versions = encode_versions(versions)
    put_manifest(tmp_path / "t", manifest)
    theirs = lance.dataset(tmp_path / "t").scanner(columns=["id", UPDATED], with_row_id=True).to_table()
    assert theirs["_rowid"].to_pylist() == ids.to_numpy().tolist()
    assert theirs[UPDATED].to_pylist() == versions.to_numpy().tolist()
