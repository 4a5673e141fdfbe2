"""pypaimon's rows and assigners, asked by :mod:`.keys`: runs in pypaimon's own environment."""

from __future__ import annotations

import json
import sys
from typing import Any


def rows(data: str, types: list[str]) -> list[list[Any]]:
    """The binary row of every row of an Arrow file, as hex, and its hash."""
    import pyarrow as pa
    from pypaimon.schema.data_types import AtomicType, DataField
    from pypaimon.table.row.generic_row import GenericRow, GenericRowSerializer
    from pypaimon.write.row_key_extractor import _bucket_from_hash, _hash_bytes_by_words

    with pa.OSFile(data) as file:
        table = pa.ipc.open_file(file).read_all()
    fields = [DataField(number, f"f{number}", AtomicType(kind)) for number, kind in enumerate(types)]
    found = []
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        row = GenericRowSerializer.to_bytes(GenericRow(list(values), fields))[4:]
        hash = _hash_bytes_by_words(row)
        found.append([row.hex(), hash, _bucket_from_hash(hash, 7)])
    return found


def many(requests: list[dict[str, Any]]) -> list[Any]:
    """The answers for several files."""
    return [rows(**request) for request in requests]


def assign(cases: list[dict[str, Any]]) -> list[Any]:
    """What pypaimon's assigner gives for hashes, one by one; the error where it has no bucket."""
    from pypaimon.index.dynamic_bucket import HashBucketAssigner, _PartitionIndex, compute_assigner

    found: list[Any] = []
    for case in cases:
        channels, assigners, existing = case["channels"], case["assigners"], case["existing"]
        partition_hash = case["partition_hash"]
        given: list[list[Any]] = []
        for channel in range(channels):
            assigner = HashBucketAssigner(
                None, channels, assigners, channel, case["target"], case["max_buckets"], snapshot=None
            )
            owned = {
                hash: int(bucket)
                for bucket, hashes in existing.items()
                for hash in hashes
                if compute_assigner(partition_hash, hash, channels, assigners) == channel
            }
            counts = {
                int(bucket): len(hashes)
                for bucket, hashes in existing.items()
                if hashes and int(bucket) % assigners == channel % assigners
            }
            assigner._partition_indexes[("p",)] = _PartitionIndex(owned, counts, case["target"])
            assigner.max_bucket_id = max([0, *map(int, existing)])
            own = [h for h in case["hashes"] if compute_assigner(partition_hash, h, channels, assigners) == channel]
            try:
                given.append([assigner.assign(("p",), partition_hash, hash) for hash in own])
            except RuntimeError as error:
                given.append([str(error)])
        found.append(given)
    return found


if __name__ == "__main__":
    request = json.load(sys.stdin)
    print(json.dumps(globals()[request.pop("do")](**request)))
