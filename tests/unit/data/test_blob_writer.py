"""Where the bytes of blobs go when rows are written again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablewright.data.blob_writer import BlobWriter
from tablewright.errors import StorageError
from tablewright.format.blobs import as_rows
from tablewright.format.field import BLOB, Field
from tablewright.format.schema import Schema
from tablewright.storage import Store, open_store

FIRST = "10000000000000000000000000000000"
SECOND = "01000000000000000000000000000000"
THIRD = "11000000000000000000000000000000"


def _schema(**thresholds: int) -> Schema:
    metadata = {f"{BLOB}-{key.replace('_', '-')}-threshold": str(value).encode() for key, value in thresholds.items()}
    blob = Field(id=0, name="b", logical_type="struct").with_metadata(
        {"ARROW:extension:name": b"lance.blob.v2", **metadata}
    )
    return as_rows(Schema(fields=(blob,)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"memory://{tmp_path.name}")


def _write(
    store: Store, schema: Schema, values: list[bytes | None]
) -> tuple[list[dict[str, object] | None], BlobWriter]:
    arrow = schema.to_arrow()
    rows = [None if value is None else {"kind": 0, "data": value} for value in values]
    writer = BlobWriter(store, "data/x.lance", schema)
    batch = pa.record_batch([pa.array(rows, arrow.field("b").type)], schema=arrow)
    placed = writer.placed(batch, writer.codec_schema(arrow))
    assert placed.schema.field("b").metadata == {b"ARROW:extension:name": b"lance.blob.v2"}
    writer.close()
    return placed["b"].to_pylist(), writer


def test_by_size(store: Store) -> None:
    schema = _schema(inline_size=3, dedicated_size=6)
    found, writer = _write(store, schema, [b"abc", b"abcd", None, b"", b"1234567", b"123456", b"x" * 8])
    facts = [row and (row["kind"], row["data"], row["blob_id"], row["blob_size"], row["position"]) for row in found]
    assert facts == [
        (0, b"abc", None, None, None),
        (1, None, 1, 4, 0),
        None,
        (0, b"", None, None, None),
        (2, None, 2, 7, 0),
        (1, None, 1, 6, 4),
        (2, None, 3, 8, 0),
    ]
    assert sorted(writer.paths) == sorted(f"data/x/{name}.blob" for name in (FIRST, SECOND, THIRD))
    assert store.get(f"data/x/{FIRST}.blob") == b"abcd123456"
    assert store.get(f"data/x/{SECOND}.blob") == b"1234567"


def test_dedicated_is_looked_at_first(store: Store) -> None:
    found, _ = _write(store, _schema(inline_size=100, dedicated_size=2), [b"ab", b"abc"])
    assert [row and row["kind"] for row in found] == [0, 2]


def test_a_full_pack_is_followed_by_another(store: Store) -> None:
    found, _ = _write(store, _schema(inline_size=0, pack_file_size=5), [b"abc", b"de", b"f", b"ghijkl"])
    assert [row and (row["blob_id"], row["position"]) for row in found] == [(1, 0), (1, 3), (2, 0), (3, 0)]
    assert store.get(f"data/x/{FIRST}.blob") == b"abcde"


def test_abort_removes_all(store: Store) -> None:
    _, writer = _write(store, _schema(inline_size=0), [b"abc"])
    assert list(store.list("data"))
    writer.abort()
    assert not list(store.list("data"))


def test_a_failed_put_is_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object may exist although the reply said no: it is removed too."""

    def fail(self: Store, path: str, data: bytes) -> None:
        raise StorageError("no reply")

    writer = BlobWriter(store, "data/x.lance", _schema(inline_size=0, dedicated_size=1))
    monkeypatch.setattr(type(store), "put", fail)
    arrow = _schema(inline_size=0, dedicated_size=1).to_arrow()
    batch = pa.record_batch([pa.array([{"kind": 0, "data": b"abc"}], arrow.field("b").type)], schema=arrow)
    with pytest.raises(StorageError):
        writer.placed(batch, writer.codec_schema(arrow))
    assert writer.paths == [f"data/x/{FIRST}.blob"]
