"""Kinds of files: found from bytes, or given. What is printed of each: ``tests/unit/cli/test_app.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablewright.describe import KINDS, describe_file
from tablewright.describe.files import kind_of
from tablewright.errors import InvalidRequest

GOLDEN = Path(__file__).parents[2] / "golden"
KIND_OF_GOLDEN = {
    "paimon/dv-empty.bin": "paimon-vectors",
    "paimon/dv-mixed.bin": "paimon-vectors",
    "paimon/dv32-runs.bin": "paimon-vectors",
    "paimon/dv64-two-bins.bin": "paimon-vectors",
    "paimon/hash-index-java.bin": "paimon-hashes",
    "paimon/index-manifest.avro": "paimon-index-manifest",
    "delta/dv-file-one.bin": "paimon-vectors",  # the same bytes: only its name tells Delta's from Paimon's
    "iceberg/two-blobs.puffin": "puffin",
}


@pytest.mark.parametrize("name", KIND_OF_GOLDEN)
def test_the_kind_is_found_from_the_bytes(name: str) -> None:
    assert kind_of((GOLDEN / name).read_bytes(), "some/file") == KIND_OF_GOLDEN[name]


def test_an_unknown_kind() -> None:
    with pytest.raises(InvalidRequest, match="paimon-hashes"):
        describe_file(b"", "x", "nonsense")
    assert set(KIND_OF_GOLDEN.values()) < set(KINDS)
