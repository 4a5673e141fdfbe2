"""Golden vectors: manifests, fragments and index details as bytes of pylance 14.0.2 decode and re-encode unchanged."""

from __future__ import annotations

from uuid import UUID

from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.fragment import DeletionFileType, decode_fragment, encode_fragment
from tablewright.format.index import IndexFile, decode_index_section, encode_index_section
from tablewright.format.proto import index_details_pb2, table_pb2
from tablewright.format.roaring import decode_bitmap, encode_bitmap
from tablewright.format.transaction import Delete, Overwrite, Update, decode_transaction, encode_transaction


def _bytes(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


MANIFEST_FILE = _bytes(
    """
    45000000 1224 64326333303931612d383631382d346165642d393266362d653138393935303235626534
             b2061c 121a 1202 6964 20ffffffffffffffffff01 2a05 696e743634 3001 3801
    7a000000 0a1a 1202 6964 20ffffffffffffffffff01 2a05 696e743634 3001 3801 1801
             3a0c 08e39ee8d706 10bcf0e1d803
             622a 302d64326333303931612d383631382d346165642d393266362d6531383939353032356265342e74786e
             6a0f 0a05 6c616e6365 1206 31342e302e32 7a0c 0a05 6c616e6365 1203 322e32 b80100
    4900000000000000 0000 0200 4c414e43
    """
)
FILE_NAME = ("11" * 28)[:50] + ".lance"
FRAGMENT = (
    _bytes("1247 0a38")
    + FILE_NAME.encode()
    + _bytes("120100 1a0100 2002 2802 30d702 1a0f 1002 18c2cfc3b6c2958eeb8a01 2001 2003")
)
REUSE_DETAILS = _bytes(
    """
    0a65 0a63 0804 1a5f 0a45 0300000000000000 00000000 3b300000010000070002000000010004000500
    01000000 3b3000000100000900010000000900 02000000 3b3000000100000900010000000900
    1204100a1802 12040801100a 12040802100a 1a040803101c
    """
)


def test_the_manifest_file_of_an_empty_table() -> None:
    assert len(MANIFEST_FILE) == 215
    file = decode_manifest_file(MANIFEST_FILE, "_versions/18446744073709551614.manifest")
    manifest = file.manifest
    assert manifest.version == 1
    assert manifest.schema.names == ("id",)
    assert len(manifest.fragments) == 0
    assert manifest.max_fragment_id is None
    assert manifest.timestamp_ns == 1794772835 * 10**9 + 991459388
    assert manifest.writer is not None
    assert (manifest.writer.library, manifest.writer.version) == ("lance", "14.0.2")
    assert manifest.transaction_file == "0-d2c3091a-8618-4aed-92f6-e18995025be4.txn"

    assert file.transaction is not None
    assert file.transaction.uuid == "d2c3091a-8618-4aed-92f6-e18995025be4"
    assert isinstance(file.transaction.operation, Overwrite)
    assert file.transaction.operation.schema == manifest.schema
    assert encode_transaction(file.transaction) == file.transaction_bytes
    assert encode_manifest_file(manifest, file.transaction_bytes or b"") == MANIFEST_FILE


def test_a_fragment_with_a_deleted_row() -> None:
    fragment = decode_fragment(FRAGMENT, "golden")
    assert (fragment.id, fragment.physical_rows, fragment.live_rows) == (0, 3, 2)
    (file,) = fragment.files
    assert (file.path, file.fields, file.column_indices, file.version, file.file_size_bytes) == (
        FILE_NAME,
        (0,),
        (0,),
        "2.2",
        343,
    )
    assert fragment.deletion is not None
    assert fragment.deletion.file_type is DeletionFileType.ARROW_ARRAY
    assert (fragment.deletion.read_version, fragment.deletion.num_deleted_rows) == (2, 1)
    assert encode_fragment(fragment) == FRAGMENT


def test_the_tail_of_a_stable_fragment() -> None:
    tail = _bytes("200a 2a06 0a040a02100a 3a0a 0a080a040a02100a1001 4a0a 0a080a040a02100a1001")
    fragment = decode_fragment(tail, "golden")
    assert fragment.physical_rows == 10
    assert fragment.row_ids == _bytes("0a040a02100a")
    assert fragment.created_at == fragment.last_updated_at == _bytes("0a080a040a02100a1001")
    assert encode_fragment(fragment) == tail


def test_a_delete_transaction() -> None:
    uuid = "d2c3091a-8618-4aed-92f6-e18995025be4"
    data = _bytes("0802 1224") + uuid.encode() + _bytes("aa0664 0a5c") + FRAGMENT + _bytes("1a04 69643d38")
    transaction = decode_transaction(data, "golden")
    assert (transaction.read_version, transaction.uuid) == (2, uuid)
    assert transaction.operation == Delete(updated_fragments=(decode_fragment(FRAGMENT, "golden"),), predicate="id=8")
    assert encode_transaction(transaction) == data


def test_the_offsets_of_an_update() -> None:
    entry = _bytes("5218 0804 1214 3a30000001000000000001001000000002000300")
    data = _bytes("e2061a") + entry
    operation = decode_transaction(data, "golden").operation
    assert isinstance(operation, Update)
    assert list(operation.updated_fragment_offsets[4]) == [2, 3]
    assert encode_transaction(decode_transaction(data, "golden")) == data


def test_the_file_entry_of_an_index() -> None:
    entry = _bytes("0a0f 706167655f646174612e6c616e6365 108160")
    message = table_pb2.IndexMetadata(uuid=table_pb2.Uuid(uuid=bytes(16)), name="i").SerializeToString()
    index = message + bytes((0x52, len(entry))) + entry
    section = bytes((0x0A, len(index))) + index
    (metadata,), unknown = decode_index_section(section, "golden")
    assert metadata.files == (IndexFile(path="page_data.lance", size_bytes=12289),)
    assert (metadata.uuid, unknown) == (UUID(int=0), b"")
    assert encode_index_section((metadata,)) == section


def test_details_of_indices() -> None:
    reuse = index_details_pb2.FragmentReuseDetails.FromString(REUSE_DETAILS)
    (version,) = reuse.inline.versions
    (group,) = version.groups
    assert version.dataset_version == 4
    assert [(one.id, one.physical_rows, one.num_deleted_rows) for one in group.old_fragments] == [
        (0, 10, 2),
        (1, 10, 0),
        (2, 10, 0),
    ]
    assert [(one.id, one.physical_rows) for one in group.new_fragments] == [(3, 28)]
    assert reuse.SerializeToString() == REUSE_DETAILS
    for text, metric, arm in (("4200", 0, "flat"), ("08014200", 1, "flat"), ("220408081004", 0, "pq")):
        vector = index_details_pb2.VectorDetails.FromString(_bytes(text))
        assert vector.metric == metric
        assert vector.HasField(arm)
        assert vector.SerializeToString() == _bytes(text)


def test_the_value_of_a_bitmap_index() -> None:
    value = _bytes("01000000 00000000 12000000 3a3000000100000000000000100000000300")
    assert list(decode_bitmap(value[12:])) == [3]
    assert encode_bitmap(decode_bitmap(value[12:])) == value[12:]


def test_roaring_vectors() -> None:
    for text, values in (
        ("3a30000001000000000001001000000001000200", [1, 2]),
        ("3b3000000100000400010000000400", [0, 1, 2, 3, 4]),
        ("3a3000000100000000000000100000000600", [6]),
        ("3a30000000000000", []),
    ):
        assert list(decode_bitmap(_bytes(text))) == values
        assert encode_bitmap(decode_bitmap(_bytes(text))) == _bytes(text)
