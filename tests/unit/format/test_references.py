"""What a manifest refers to, compared with the decoded manifest."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

import tablewright as tw
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.fragment import FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import BasePath, Manifest
from tablewright.format.naming import data_path, deletion_path, manifest_path
from tablewright.format.references import decode_references, names_of_fragment
from tablewright.testing import memory_world


def manifest() -> Manifest:
    ds = tw.write_dataset({"id": [1, 2, 3]}, memory_world())
    ds.insert({"id": [4, 5]})
    ds.delete("id = 2")
    found: Manifest = ds._snapshot.manifest
    return found


def test_everything_that_a_version_refers_to() -> None:
    value = manifest()
    index = IndexMetadata(uuid=UUID(int=5), fields=(0,), name="i", dataset_version=1)
    value = replace(value, indices=(index,))
    found = decode_references(encode_manifest_file(value, b""), manifest_path(3))
    assert (found.version, found.timestamp_ns) == (3, value.timestamp_ns)
    assert found.fragments == tuple(value.fragments.raw)
    assert found.others.own == (f"_transactions/{value.transaction_file}", f"_indices/{UUID(int=5)}")
    names = [name for raw in found.fragments for name in names_of_fragment(raw, "x").own]
    expected = []
    for fragment in value.fragments:
        expected += [data_path(file.path) for file in fragment.files]
        expected += [deletion_path(fragment.id, fragment.deletion)] if fragment.deletion else []
    assert names == expected
    assert len(names) == 3


def test_what_lies_at_a_base_path_is_shared() -> None:
    value = manifest()
    fragments = [
        replace(
            fragment,
            files=tuple(replace(file, base_id=1) for file in fragment.files),
            deletion=None if fragment.deletion is None else replace(fragment.deletion, base_id=1),
        )
        for fragment in value.fragments
    ]
    index = IndexMetadata(uuid=UUID(int=5), fields=(0,), name="i", dataset_version=1, base_id=1)
    base = BasePath(id=1, path="/elsewhere", is_dataset_root=True)
    value = replace(value, fragments=FragmentList.of(fragments), indices=(index,), base_paths=(base,))
    found = decode_references(encode_manifest_file(value, b""), manifest_path(3))
    assert found.others.shared == (f"_indices/{UUID(int=5)}",)
    names = names_of_fragment(found.fragments[0], "x")
    path = fragments[0].files[0].path
    assert names.own == ()
    assert set(names.shared) >= {data_path(path), path}


def test_damage_and_features_that_we_do_not_know() -> None:
    value = manifest()
    data = encode_manifest_file(value, b"")
    with pytest.raises(CorruptTable):
        decode_references(data[:-20], manifest_path(3))
    with pytest.raises(CorruptTable, match="its name says 4"):
        decode_references(data, manifest_path(4))
    with pytest.raises(CorruptTable):
        names_of_fragment(b"\xff\xff\xff", "x")
    managed = replace(value, schema=replace(value.schema, metadata={"lance.blob.managed": b"true"}))
    with pytest.raises(UnsupportedFeature, match="managed blobs"):
        decode_references(encode_manifest_file(managed, b""), manifest_path(3))
