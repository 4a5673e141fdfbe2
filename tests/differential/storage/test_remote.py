"""The codec reaches an object store by the options and places that the store gives it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from tablewright.storage import open_store


@pytest.mark.parametrize("key", ["table.lance", "a b/per%20cent", "ü/t"])
def test_the_codec_and_the_store_share_options_and_places(key: str, s3_bucket: str, s3_options: dict[str, str]) -> None:
    store = open_store(f"s3://{s3_bucket}/{key}", s3_options)
    codec = store.codec_location("data/0.lance")
    assert codec is not None and dict(codec.storage_options) == s3_options
    batch = pa.record_batch({"a": [1, 2, 3]})
    with LanceFileWriter(codec.uri, batch.schema, storage_options=dict(codec.storage_options)) as writer:
        writer.write_batch(batch)
    assert [info.path for info in store.list("data")] == ["data/0.lance"]
    data = store.get("data/0.lance")
    store.put("data/1.lance", data)
    other = store.codec_location("data/1.lance")
    assert other is not None
    reader = LanceFileReader(other.uri, storage_options=dict(other.storage_options))
    assert reader.read_all().to_table().to_pydict() == {"a": [1, 2, 3]}
