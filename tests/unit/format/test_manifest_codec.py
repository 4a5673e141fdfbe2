from __future__ import annotations

import numpy as np
from tests.unit.format.samples import manifest, stable_fragment

from tablewright.format.manifest_codec import Sections, decode_manifest, encode_manifest
from tablewright.format.proto import table_pb2
from tablewright.format.row_ids import RowIdSequence, VersionSequence, encode_row_ids, encode_versions


def test_long_fragments_are_put_where_protobuf_puts_them() -> None:
    rows = 20_000
    versions = encode_versions(VersionSequence.constant(rows, 1).patched(np.arange(0, rows, 2), 7))
    ids = encode_row_ids(RowIdSequence.from_range(0, rows))
    long = stable_fragment(physical_rows=rows, row_ids=ids, last_updated_at=versions, created_at=None)
    sound = manifest(long, stable_row_ids=True, next_row_id=rows, config={"a": "b"})
    pieces = encode_manifest(sound, Sections(None, 7))
    assert len(pieces) > 1
    data = b"".join(pieces)
    assert data == table_pb2.ManifestShell.FromString(data).SerializeToString(deterministic=True)
    assert decode_manifest(data, "p")[0].fragments == sound.fragments
