"""Documents that pylance wrote: we know every field in them, and write them back as they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from lance.fragment import FragmentMetadata

from tablewright.format.envelope import ManifestFile, decode_manifest_file, encode_manifest_file
from tablewright.format.fragment import fragment_from_json, fragment_to_json
from tablewright.format.naming import manifest_path, parse_manifest_name, transaction_file_path
from tablewright.format.proto import index_details_pb2, table_pb2, transaction_pb2
from tablewright.format.transaction import decode_transaction, encode_transaction

ROWS = 60


def _rows(start: int = 0, count: int = ROWS) -> pa.Table:
    ids = range(start, start + count)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(count * 4, dtype=np.float32)), 4)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [f"row {number}" for number in ids],
            "place": [{"x": float(number), "tags": ["a", str(number)]} for number in ids],
            "vector": vectors,
        }
    )


def _write(path: Path, **options: Any) -> lance.LanceDataset:
    return lance.write_dataset(_rows(), path, max_rows_per_file=20, **options)


def _rows_change(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    dataset.insert(_rows(1000, 10))
    dataset.delete("id < 5 or id between 20 and 39")
    dataset.update({"text": "'new'"}, where="id % 7 = 0")
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_rows(50, 30))
    lance.write_dataset(_rows(0, 10), path, mode="overwrite")


def _columns_change(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    dataset.add_columns({"twice": "id * 2", "half": "id / 2"})
    dataset.alter_columns({"path": "text", "name": "words"})
    dataset.alter_columns({"path": "twice", "data_type": pa.int32()})
    dataset.drop_columns(["half", "place.x"] if options.get("data_storage_version") != "2.0" else ["half"])
    dataset.merge(pa.table({"id": pa.array(range(ROWS)), "more": [str(n) for n in range(ROWS)]}), "id")


def _settings_change(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    dataset.update_config({"lance.auto_cleanup.interval": "100", "mine": "1"})
    dataset.delete_config_keys(["mine"])
    dataset.update_metadata({"who": "me", "why": "test"})
    dataset.update_schema_metadata({"k": "v"})
    dataset.update_field_metadata({"id": {"unit": "one"}})
    lance.dataset(path, version=2).restore()


def _index_kinds(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    for column, kind in (
        ("id", "BTREE"),
        ("text", "BITMAP"),
        ("text", "INVERTED"),
        ("id", "ZONEMAP"),
        ("text", "NGRAM"),
    ):
        dataset.create_scalar_index(column, kind, name=f"{column}_{kind.lower()}")
    dataset.create_index("vector", "IVF_FLAT", num_partitions=1)
    dataset.insert(_rows(1000, 10))
    dataset.optimize.optimize_indices()
    dataset.drop_index("text_ngram")


def _compaction(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_index("vector", "IVF_FLAT", num_partitions=1)
    dataset.delete("id % 3 = 0")
    dataset.optimize.compact_files()


def _deferred_compaction(path: Path, **options: Any) -> None:
    dataset = _write(path)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id % 3 = 0")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.insert(_rows(1000, 10))


def _branches(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    branch = dataset.create_branch("try")
    branch.delete("id = 3")
    branch.insert(_rows(1000, 10))
    dataset.shallow_clone(str(path / "clone"), dataset.version)


def _primary_key(path: Path, **options: Any) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
            pa.field("text", pa.string()),
        ]
    )
    table = pa.table({"id": range(10), "text": ["a"] * 10}, schema=schema)
    dataset = lance.write_dataset(table, path, **options)
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table)


def _rewritten_columns(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    dataset.create_scalar_index("id", "BTREE")
    source = pa.table({"id": pa.array([1, 2, 45]), "text": ["x", "y", "z"]})
    dataset.merge_insert("id").when_matched_update_all().execute(source)


def _detached(path: Path, **options: Any) -> None:
    dataset = _write(path, **options)
    fragment = lance.fragment.write_fragments(_rows(500, 5), str(path))
    lance.LanceDataset.commit(
        dataset, lance.LanceOperation.Append(fragment), read_version=dataset.version, detached=True
    )


STORIES: dict[str, Callable[..., None]] = {
    function.__name__.strip("_"): function
    for function in (
        _rows_change,
        _columns_change,
        _settings_change,
        _index_kinds,
        _compaction,
        _deferred_compaction,
        _branches,
        _primary_key,
        _rewritten_columns,
        _detached,
    )
}
OPTIONS: dict[str, dict[str, Any]] = {
    "addresses": {},
    "stable": {"enable_stable_row_ids": True},
    "old": {"data_storage_version": "2.0", "enable_v2_manifest_paths": False},
}


CASES = [(story, option) for story in STORIES for option in OPTIONS if (story, option) != ("detached", "old")]


@pytest.fixture(params=CASES, ids="-".join)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    story, option = request.param
    STORIES[story](tmp_path / "table", **OPTIONS[option])
    return tmp_path / "table"


def _manifests(root: Path) -> list[Path]:
    return sorted(root.rglob("_versions/*.manifest"))


def _messages_inside(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            values = [one for one in value.values() if isinstance(one, Message)]
        else:
            values = [value] if isinstance(value, Message) else list(value)
        for one in values:
            yield from _messages_inside(one)


def _strangers(message: Message) -> list[tuple[str, int]]:
    return [
        (one.DESCRIPTOR.name, field.field_number) for one in _messages_inside(message) for field in UnknownFieldSet(one)
    ]


def _sections(data: bytes) -> tuple[table_pb2.Manifest, table_pb2.IndexSection, bytes]:
    position = int.from_bytes(data[-16:-8], "little")
    manifest = table_pb2.Manifest.FromString(data[position + 4 : -16])

    def section(at: int) -> bytes:
        return data[at + 4 : at + 4 + int.from_bytes(data[at : at + 4], "little")]

    index = section(manifest.index_section) if manifest.HasField("index_section") else b""
    return manifest, table_pb2.IndexSection.FromString(index), section(manifest.transaction_section)


def test_what_pylance_wrote_is_written_back(table: Path) -> None:
    for path in _manifests(table):
        data = path.read_bytes()
        file = decode_manifest_file(data, str(path))
        assert file.transaction_error is None
        assert file.transaction is not None
        again = encode_manifest_file(file.manifest, file.transaction_bytes or b"")
        assert _sections(again) == _sections(data)
        assert len(again) == len(data)


def test_we_know_every_field(table: Path) -> None:
    for path in _manifests(table):
        manifest, index, transaction = _sections(path.read_bytes())
        assert _strangers(manifest) == []
        assert _strangers(index) == []
        assert _strangers(transaction_pb2.Transaction.FromString(transaction)) == []
        for entry in index.indices:
            if entry.index_details.type_url.endswith("FragmentReuseIndexDetails"):
                details = index_details_pb2.FragmentReuseDetails.FromString(entry.index_details.value)
                assert details.inline.versions
                assert _strangers(details) == []


def test_transactions_are_written_back(table: Path) -> None:
    for path in sorted(table.rglob("_transactions/*.txn")):
        data = path.read_bytes()
        transaction = decode_transaction(data, str(path))
        again = encode_transaction(transaction)
        # Not byte for byte: in a map, protobuf writes a key 0 that pylance leaves out.
        assert transaction_pb2.Transaction.FromString(again) == transaction_pb2.Transaction.FromString(data)


def _newest(root: Path) -> tuple[Path, ManifestFile]:
    attached = [path for path in (root / "_versions").glob("*.manifest") if not path.name.startswith("d")]
    path = max(attached, key=lambda one: (parse_manifest_name(one.name) or (0,))[0])
    return path, decode_manifest_file(path.read_bytes(), str(path))


def test_pylance_goes_on_where_we_wrote_the_manifest(table: Path) -> None:
    before = lance.dataset(table).to_table()
    path, file = _newest(table)
    assert (table / transaction_file_path(file.manifest.transaction_file)).exists()
    path.write_bytes(encode_manifest_file(file.manifest, file.transaction_bytes or b""))

    dataset = lance.dataset(table)
    dataset.validate()
    assert dataset.to_table() == before
    assert dataset.count_rows() == file.manifest.live_rows
    lance.write_dataset(dataset.head(2), table, mode="append")
    assert lance.dataset(table).count_rows() == before.num_rows + 2


def test_names_are_those_of_pylance(table: Path) -> None:
    for path in (table / "_versions").glob("*.manifest"):
        version, scheme = parse_manifest_name(path.name) or (0, "none")
        assert manifest_path(version, v2=scheme != "v1") == f"_versions/{path.name}"


def test_fragments_travel_as_json_both_ways(table: Path) -> None:
    _, file = _newest(table)
    theirs = [fragment.metadata for fragment in lance.dataset(table).get_fragments()]
    assert [fragment_to_json(ours) for ours in file.manifest.fragments] == [one.to_json() for one in theirs]
    for ours, metadata in zip(file.manifest.fragments, theirs, strict=True):
        assert fragment_from_json(metadata.to_json()) == ours
        assert FragmentMetadata.from_json(json.dumps(fragment_to_json(ours))) == metadata


def test_old_versions_that_were_cleaned_up_do_not_matter(tmp_path: Path) -> None:
    _rows_change(tmp_path / "t")
    lance.dataset(tmp_path / "t").cleanup_old_versions(timedelta(0))
    assert [parse_manifest_name(path.name) for path in _manifests(tmp_path / "t")] == [(6, "v2")]
