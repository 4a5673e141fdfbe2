"""Vectors that we convert, read by deltalake and pyiceberg: the rows of a table, and the positions of blobs."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from tests.golden.vectors import golden_bytes

from tablewright.errors import CorruptTable
from tablewright.format.deletion_vectors.delta import DeltaVector, decode_delta, encode_delta_file, encode_delta_inline
from tablewright.format.deletion_vectors.lance import decode_deletion_vector, encode_deletion_vector
from tablewright.format.deletion_vectors.paimon import decode_vectors, encode_vector_file
from tablewright.format.deletion_vectors.puffin import decode_puffin, encode_puffin
from tablewright.format.fragment import DeletionFileType
from tablewright.format.row_set import RowSet

ROWS = 70_000
UUIDS = UUID("c1e8b2d0-3f65-4f4e-9d3b-0a1b2c3d4e5f"), UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


def vectors() -> dict[str, RowSet]:
    """Arrays, bits, runs and a mixture, each of them read from a file of Lance or Paimon."""
    rng = np.random.default_rng(6)
    made = {
        "few": RowSet.of([0, 2, 5, 9]),
        "runs": RowSet.of(np.concatenate([np.arange(100, 3000), np.arange(60_000, 68_000)])),
        "bits": RowSet.of(rng.choice(ROWS, 30_000, replace=False)),
        "mixed": RowSet.of(np.concatenate([np.arange(50_000), [65_535, 65_536, ROWS - 1]])),
        "nothing": RowSet(),
    }
    for file_type in DeletionFileType:
        stored = {name: encode_deletion_vector(vector, file_type) for name, vector in made.items()}
        made = {name: decode_deletion_vector(data, file_type, name) for name, data in stored.items()}
    data, ranges = encode_vector_file(made, 32)
    return decode_vectors(data, ranges, "index-1")


def delta_table(root: Path, descriptors: dict[str, DeltaVector]) -> DeltaTable:
    """A table of one data file per descriptor; its log is written by hand."""
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {
            "metaData": {
                "id": str(UUID(int=1)),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": [field]}),
                "partitionColumns": [],
                "configuration": {"delta.enableDeletionVectors": "true"},
                "createdTime": 0,
            }
        },
    ]
    for number, (name, descriptor) in enumerate(descriptors.items()):
        ids = pa.array(np.arange(number * ROWS, (number + 1) * ROWS))
        pq.write_table(pa.table({"id": ids}), root / f"{name}.parquet")
        add = {
            "path": f"{name}.parquet",
            "partitionValues": {},
            "size": (root / f"{name}.parquet").stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps({"numRecords": ROWS}),
            "deletionVector": descriptor.to_json(),
        }
        actions.append({"add": add})
    (root / "_delta_log").mkdir(exist_ok=True)
    (root / "_delta_log" / f"{0:020}.json").write_text("\n".join(json.dumps(action) for action in actions))
    return DeltaTable(root)


def rows(table: DeltaTable) -> list[int]:
    return sorted(pa.table(table.scan())["id"].to_pylist())


def test_deltalake_reads_files_and_inline_vectors(tmp_path: Path) -> None:
    ours, (plain, nested) = vectors(), UUIDS
    descriptors: dict[str, DeltaVector] = {}
    for place, directory, names in (
        (plain, "", ["few", "runs"]),
        (nested, "ab", ["mixed"]),
        (f"file://{tmp_path}/elsewhere.bin", "", ["few", "bits"]),
    ):
        data, found = encode_delta_file([ours[name] for name in names], place, directory)
        file = tmp_path / str(found[0].file("log")).removeprefix(f"file://{tmp_path}/")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        descriptors |= {f"{len(descriptors)}-{at}-{name}": found[at] for at, name in enumerate(names)}
    descriptors |= {f"i-{name}": encode_delta_inline(ours[name]) for name in ("few", "runs", "mixed", "nothing")}

    expected = [
        offset + number * ROWS
        for number, name in enumerate(descriptors)
        for offset in ours[name.split("-")[-1]].absent(ROWS).tolist()
    ]
    assert rows(delta_table(tmp_path, descriptors)) == expected


def test_deltalake_reads_a_file_of_paimon_and_sees_damage_as_we_do(tmp_path: Path) -> None:
    data = golden_bytes("paimon", "dv64-two-bins.bin")
    descriptor = DeltaVector("p", f"file://{tmp_path}/index-1", 1, 40, 4)
    (tmp_path / "index-1").write_bytes(data)
    table = delta_table(tmp_path, {"a": descriptor})
    assert decode_delta(descriptor, data, "index-1") == vectors()["few"]
    assert rows(table) == vectors()["few"].absent(ROWS).tolist()

    for bit in (0, 8 * 3, 8 * 6 + 1, 8 * 30, 8 * 46 + 7):  # version, size, magic, bitmap, checksum
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        (tmp_path / "index-1").write_bytes(damaged)
        with pytest.raises(DeltaError):
            rows(delta_table(tmp_path, {"a": descriptor}))
        with pytest.raises(CorruptTable):
            decode_delta(descriptor, bytes(damaged), "index-1")


def test_pyiceberg_reads_puffin_files() -> None:
    far = {"far": RowSet.of([1, 3, *range(100, 200), 2**32, 2**32 + 5, 3 * 2**32 + 7])}
    ours = {f"s3://b/{name}.parquet": vector for name, vector in (vectors() | far).items()}
    data, footer = encode_puffin(ours)
    file = PuffinFile(data)
    assert [(blob.offset, blob.length, blob.properties) for blob in file.footer.blobs] == [
        (blob.offset, blob.length, blob.properties) for blob in footer.blobs
    ]
    theirs = {found.referenced_data_file: found._bitmaps for found in deletion_vectors_from_puffin_file(file)}
    assert {
        name: [(key << 32) + low for key, bitmap in enumerate(bitmaps) for low in bitmap]
        for name, bitmaps in theirs.items()
    } == {name: vector.to_numpy().tolist() for name, vector in ours.items()}
    assert decode_puffin(data, "p") == ours
