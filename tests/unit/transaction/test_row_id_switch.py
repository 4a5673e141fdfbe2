"""Stable row ids switched on: what the version that does it holds, and what is refused."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.fragment import DataFile, Fragment, FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import Manifest
from tablewright.format.manifest_problems import problems_of_manifest
from tablewright.format.row_ids import decode_row_ids, decode_versions
from tablewright.format.schema import Schema
from tablewright.format.transaction import Merge, decode_transaction, encode_transaction
from tablewright.transaction.apply import apply
from tablewright.transaction.row_id_switch import enable_row_ids, enables_row_ids, switched_on

UUID = "00000000-0000-4000-8000-000000000001"


def _manifest(fragments: int, *, first: int = 0, rows: int = 10) -> Manifest:
    file = DataFile(path="a.lance", fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=2)
    values = [Fragment(id=first + i, files=(file,), physical_rows=rows) for i in range(fragments)]
    return Manifest(
        schema=Schema.from_arrow(pa.schema([("id", pa.int64())])),
        fragments=FragmentList(list(FragmentList.of(values).raw), "a manifest"),
        version=7,
        max_fragment_id=first + fragments - 1 if fragments else None,
    )


def _applied(manifest: Manifest) -> tuple[Manifest, bytes]:
    transaction = enable_row_ids(manifest, UUID)
    data = encode_transaction(transaction)
    assert enables_row_ids(decode_transaction(data, "a transaction"))
    return apply(manifest, transaction, timestamp_ns=1, transaction_file="t.txn"), data


@pytest.mark.parametrize("fragments", [0, 3])
def test_rows_take_their_addresses(fragments: int) -> None:
    before = _manifest(fragments, first=2)
    after, data = _applied(before)
    assert problems_of_manifest(after) == ()
    read = decode_manifest_file(encode_manifest_file(after, data), "m").manifest
    assert (read.stable_row_ids, read.reader_flags, read.writer_flags) == (True, 2, 2)
    assert read.next_row_id == ((before.max_fragment_id or 0) + 1 << 32 if fragments else 0)
    for fragment, old in zip(read.fragments, before.fragments, strict=True):
        assert fragment.row_ids is not None and fragment.created_at == fragment.last_updated_at
        ids = decode_row_ids(fragment.row_ids, "", 10).to_numpy()
        assert np.array_equal(ids, np.arange(10, dtype=np.uint64) + np.uint64(fragment.id << 32))
        assert decode_versions(fragment.created_at or b"", "", 10).runs == ((10, 8),)
        assert replace(fragment, row_ids=None, created_at=None, last_updated_at=None) == old
    operation = decode_transaction(data, "t").operation
    assert isinstance(operation, Merge) and operation.schema == before.schema and operation.preserves_nullability
    carried = [(fragment.id, fragment.row_ids) for fragment in operation.fragments]
    assert carried == [(fragment.id, fragment.row_ids) for fragment in read.fragments]


def test_ten_thousand_fragments_cost_little() -> None:
    before = _manifest(10_000)
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        after, data = _applied(FreshManifest(before))
        encode_manifest_file(after, data)
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 1


def FreshManifest(manifest: Manifest) -> Manifest:
    """With nothing decoded and no facts known."""
    return replace(manifest, fragments=FragmentList(list(manifest.fragments.raw), "a manifest"))


def test_what_can_not_be_switched_on() -> None:
    with pytest.raises(CommitConflict, match="on already"):
        switched_on(switched_on(_manifest(1)))
    with pytest.raises(InvalidRequest, match="used up its fragment ids"):
        enable_row_ids(replace(_manifest(1), max_fragment_id=2**32 - 1), UUID)
    with pytest.raises(InvalidRequest, match="Fragment 0 does not say how many rows"):
        enable_row_ids(_manifest(1, rows=0), UUID)
    import uuid

    reuse = IndexMetadata(uuid=uuid.uuid4(), name="__lance_frag_reuse", fields=(), dataset_version=1)
    with pytest.raises(InvalidRequest, match="optimize_indices"):
        enable_row_ids(replace(_manifest(1), indices=(reuse,)), UUID)
