"""Every codec of the table's metadata: what is written comes back, and arbitrary bytes raise only our errors."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable, TablewrightError, UnsupportedFeature
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.fragment import (
    Fragment,
    FragmentList,
    decode_fragment,
    encode_fragment,
    fragment_from_json,
    fragment_to_json,
)
from tablewright.format.fragment.facts import facts_of
from tablewright.format.index import IndexMetadata, decode_index_section, encode_index_section
from tablewright.format.manifest import Manifest
from tablewright.format.manifest_problems import problems_of_manifest
from tablewright.format.naming import decode_hint, parse_manifest_name
from tablewright.format.proto import table_pb2
from tablewright.format.roaring import decode_bitmap, encode_bitmap
from tablewright.format.transaction import Transaction, decode_transaction, encode_transaction
from tablewright.testing.strategies import (
    OPERATION_NAMES,
    bitmaps,
    fragments,
    indices,
    manifests,
    transactions,
    unknown_fields,
)

PATH = "some/file"


# ------------------------------------------------------------------------------------------------------ round trips


@given(fragments())
def test_a_fragment_comes_back(fragment: Fragment) -> None:
    data = encode_fragment(fragment)
    assert decode_fragment(data, PATH) == fragment
    assert encode_fragment(decode_fragment(data, PATH)) == data


@given(fragments())
def test_a_fragment_comes_back_from_json_but_for_what_json_does_not_hold(fragment: Fragment) -> None:
    files = tuple(replace(file, unknown=b"") for file in fragment.files)
    deletion = fragment.deletion and replace(fragment.deletion, unknown=b"")
    plain = replace(fragment, files=files, deletion=deletion, unknown=b"", clustering_id=None)
    assert fragment_from_json(fragment_to_json(fragment)) == plain


@given(st.lists(indices(), max_size=3), unknown_fields())
def test_an_index_section_comes_back(entries: list[IndexMetadata], unknown: bytes) -> None:
    data = encode_index_section(entries, unknown)
    assert decode_index_section(data, PATH) == (tuple(entries), unknown)


@pytest.mark.parametrize("name", OPERATION_NAMES)
def test_a_transaction_comes_back(name: str) -> None:
    @given(transactions(name))
    def check(transaction: Transaction) -> None:
        data = encode_transaction(transaction)
        assert decode_transaction(data, PATH) == transaction
        assert encode_transaction(decode_transaction(data, PATH)) == data

    check()


@given(manifests(), st.binary(max_size=30))
def test_a_manifest_file_comes_back(manifest: Manifest, transaction_bytes: bytes) -> None:
    data = encode_manifest_file(manifest, transaction_bytes)
    file = decode_manifest_file(data, PATH)
    assert replace(file.manifest, reader_flags=0, writer_flags=0) == manifest
    assert (file.transaction_bytes or b"") == transaction_bytes
    assert encode_manifest_file(file.manifest, transaction_bytes) == data


@given(manifests())
def test_values_survive_pickling(manifest: Manifest) -> None:
    assert pickle.loads(pickle.dumps(manifest)) == manifest


@given(bitmaps())
def test_a_bitmap_comes_back(data: bytes) -> None:
    assert encode_bitmap(decode_bitmap(data)) == data


# --------------------------------------------------------------------------------------------------- arbitrary bytes

DECODERS: dict[str, Callable[[bytes], Any]] = {
    "fragment": lambda data: decode_fragment(data, PATH),
    "index section": lambda data: decode_index_section(data, PATH),
    "transaction": lambda data: decode_transaction(data, PATH),
    "manifest file": lambda data: decode_manifest_file(data, PATH),
    "framed manifest": lambda data: decode_manifest_file(_framed(data), PATH),
}


def _framed(message: bytes) -> bytes:
    """Any bytes as the manifest of an otherwise perfect file."""
    return len(message).to_bytes(4, "little") + message + bytes(8) + b"\0\0\2\0LANC"


def _error_of(decode: Callable[[bytes], Any], data: bytes) -> TablewrightError | None:
    try:
        decode(data)
    except (CorruptTable, UnsupportedFeature) as error:
        return error
    return None


def _only_our_errors(decode: Callable[[bytes], Any], data: bytes) -> None:
    error = _error_of(decode, data)
    assert error is None or PATH in str(error)
    assert not isinstance(error, CorruptTable) or error.path == PATH


@pytest.mark.parametrize("what", DECODERS)
def test_arbitrary_bytes_raise_only_our_errors(what: str) -> None:
    @given(st.binary(max_size=60))
    def check(data: bytes) -> None:
        _only_our_errors(DECODERS[what], data)

    check()


@st.composite
def _damaged(draw: st.DrawFn, sound: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that were sound until some were changed, cut off, or put in twice."""
    data = bytearray(draw(sound))
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["change", "cut", "double", "flip"])):
            case "change":
                data[at] = draw(st.integers(0, 255))
            case "cut":
                del data[at:]
            case "double":
                data[at:at] = data[at : at + 8]
            case _:
                data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


SOUND: dict[str, Callable[[], st.SearchStrategy[bytes]]] = {
    "fragment": lambda: fragments().map(encode_fragment),
    "index section": lambda: st.lists(indices(), max_size=2).map(encode_index_section),
    "transaction": lambda: transactions().map(encode_transaction),
    "manifest file": lambda: manifests().map(lambda manifest: encode_manifest_file(manifest, b"\x12\x01a")),
}


@pytest.mark.parametrize("what", SOUND)
def test_damaged_bytes_raise_only_our_errors(what: str) -> None:
    @given(_damaged(SOUND[what]()))
    def check(data: bytes) -> None:
        _only_our_errors(DECODERS[what], data)

    check()


@given(_damaged(manifests().map(lambda manifest: encode_manifest_file(manifest, b""))))
def test_whatever_is_read_can_be_looked_at_or_raises_our_errors(data: bytes) -> None:
    def look(data: bytes) -> None:
        manifest = decode_manifest_file(data, PATH).manifest
        assert problems_of_manifest(manifest) == ()
        for fragment in manifest.fragments:
            assert manifest.fragments.by_id(fragment.id) == fragment

    _only_our_errors(look, data)


@given(st.binary(max_size=80) | _damaged(bitmaps()))
def test_a_damaged_bitmap_is_refused_or_sound(data: bytes) -> None:
    try:
        bitmap = decode_bitmap(data)
    except ValueError:
        return
    values = bitmap.to_array()
    assert sorted(set(values)) == list(values)
    assert len(values) == len(bitmap)


@given(st.text(max_size=30), st.binary(max_size=30))
def test_names_and_hints_never_raise(name: str, data: bytes) -> None:
    assert parse_manifest_name(name) is None
    assert decode_hint(data) is None or b"version" in data


# ------------------------------------------------------------------------------------- unknown fields, and the columns


@given(manifests(max_fragments=2), st.data())
def test_unknown_fields_survive_a_commit(manifest: Manifest, data: st.DataObject) -> None:
    """A writer that knows nothing new appends a fragment: all that it did not know is still there."""
    manifest = replace(manifest, version=min(manifest.version, 1 << 40))
    file = decode_manifest_file(encode_manifest_file(manifest, b""), PATH)
    highest = file.manifest.max_fragment_id or 0
    assume(highest < (1 << 32) - 1)
    minor = int(manifest.data_storage_version[2:])
    new = data.draw(fragments(version=(2, minor), bases=(None,), row_ids=manifest.stable_row_ids))
    grown = replace(
        file.manifest,
        fragments=file.manifest.fragments.appended([replace(new, id=highest + 1)]),
        max_fragment_id=highest + 1,
        version=manifest.version + 1,
    )
    after = decode_manifest_file(encode_manifest_file(grown, b""), PATH).manifest
    assert after.unknown == manifest.unknown
    assert list(after.fragments.raw[:-1]) == list(manifest.fragments.raw)
    assert after.indices == manifest.indices
    assert after.base_paths == manifest.base_paths
    assert after.writer == manifest.writer


@given(st.lists(fragments(), max_size=6))
def test_columns_say_what_the_values_say(values: list[Fragment]) -> None:
    facts = facts_of([encode_fragment(value) for value in values])
    assert not facts.broken.any()
    assert not facts.refused.any()
    assert facts.ids.tolist() == [value.id for value in values]
    assert facts.physical_rows.tolist() == [value.physical_rows for value in values]
    assert facts.deleted_rows.tolist() == [value.deleted_rows for value in values]
    assert facts.has_deletion.tolist() == [value.deletion is not None for value in values]
    assert facts.has_row_ids.tolist() == [value.row_ids is not None for value in values]
    files = [(row, file) for row, value in enumerate(values) for file in value.files]
    assert facts.file_versions == {(file.file_major_version, file.file_minor_version) for _, file in files}
    bases = {file.base_id for _, file in files} | {value.deletion.base_id for value in values if value.deletion}
    assert facts.base_ids == bases - {None}


@given(st.lists(fragments(), max_size=6, unique_by=lambda fragment: fragment.id), st.data())
def test_a_changed_list_says_what_a_new_one_says(values: list[Fragment], data: st.DataObject) -> None:
    ids = [value.id for value in values]
    dropped = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    kept = [fragment_id for fragment_id in ids if fragment_id not in dropped]
    changed_ids = data.draw(st.lists(st.sampled_from(kept), unique=True)) if kept else []
    changed = {fragment_id: replace(data.draw(fragments()), id=fragment_id) for fragment_id in changed_ids}

    ours = FragmentList.of(values).replaced(changed, dropped).sorted_by_id()
    model = sorted((changed.get(value.id, value) for value in values if value.id in kept), key=lambda value: value.id)
    plain = FragmentList.of(model)
    assert list(ours) == model
    assert ours == plain
    assert ours.total_live_rows == sum(value.live_rows for value in model)
    for name in ("ids", "physical_rows", "deleted_rows", "has_deletion", "has_row_ids", "deletion_base"):
        assert getattr(ours.facts, name).tolist() == getattr(plain.facts, name).tolist()
    assert ours.facts.base_ids == plain.facts.base_ids
    assert ours.facts.file_versions == plain.facts.file_versions
    assert all(ours.has(value.id) and ours.by_id(value.id) == value for value in model)
    assert not any(ours.has(fragment_id) for fragment_id in dropped)


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_columns_of_arbitrary_bytes_agree_with_protobuf(messages: list[bytes]) -> None:
    """What the columns call sound, protobuf reads alike; what protobuf refuses, they may call either."""
    facts = facts_of(messages)
    for row, message in enumerate(messages):
        if facts.broken[row]:
            continue
        try:
            parsed = table_pb2.Fragment.FromString(message)
        except Exception:
            continue
        assert int(facts.ids[row]) == parsed.id
        assert int(facts.physical_rows[row]) == parsed.physical_rows
        assert bool(facts.has_deletion[row]) == parsed.HasField("deletion_file")
        assert int(facts.deleted_rows[row]) == parsed.deletion_file.num_deleted_rows
