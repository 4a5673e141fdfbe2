"""Where files lie, and where writers disagree about it."""

from __future__ import annotations

from typing import Any

import pytest

from tablewright.paimon.format.layout import bucket_directory, numbered, partition_directory
from tablewright.paimon.format.types import DataType, Field


@pytest.mark.parametrize(
    ("kind", "value", "directory"),
    [
        ("STRING", "Ulm", "k=Ulm/"),
        ("STRING", "a b", "k=a b/"),
        ("STRING", None, "k=__DEFAULT_PARTITION__/"),
        ("STRING", " ", "k=__DEFAULT_PARTITION__/"),
        ("INT", -5, "k=-5/"),
        ("STRING", "a/b", None),
        ("STRING", "50%", None),
        ("STRING", "a\nb", None),
        ("DATE", 1, None),
        ("DOUBLE", 1.0, None),
        ("BOOLEAN", True, None),
    ],
)
def test_partition_directory(kind: str, value: Any, directory: str | None) -> None:
    assert partition_directory([Field(id=0, name="k", type=DataType(root=kind))], [value]) == directory


def test_names() -> None:
    keys = [Field(id=n, name=name, type=DataType(root="INT")) for n, name in enumerate("ab")]
    assert partition_directory(keys, [1, None], "none") == "a=1/b=none/"
    assert bucket_directory("a=1/", 3) == "a=1/bucket-3" and bucket_directory("", -2) == "bucket-postpone"
    names = ["snapshot/snapshot-7", "schema/schema-0", "snapshot/LATEST", "snapshot/snapshot-7.tmp", "x/snapshot-x"]
    assert [numbered(name) for name in names] == [7, 0, None, None, None]
