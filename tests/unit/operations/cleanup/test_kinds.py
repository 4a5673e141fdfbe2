from __future__ import annotations

import pytest

from tablewright.operations.cleanup.kinds import classify

UUID = "12345678-1234-1234-1234-1234567890ab"


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("data/a.lance", "data", "data/a.lance"),
        ("data/.tmpX1", "data", "data/.tmpX1"),
        ("data/a/1.blob", "blob", "data/a.lance"),
        ("_deletions/0-1-2.arrow", "deletion", "_deletions/0-1-2.arrow"),
        ("_deletions/0-1-2.bin", "deletion", "_deletions/0-1-2.bin"),
        ("_deletions/0-1-2.arrow#17", "deletion", "_deletions/0-1-2.arrow#17"),
        (f"_indices/{UUID}/page.lance#17", "index", f"_indices/{UUID}/page.lance#17"),
        ("_transactions/1-x.txn", "transaction", "_transactions/1-x.txn"),
        (f"_indices/{UUID}/index.idx", "index", f"_indices/{UUID}"),
        (f"_indices/{UUID}/part/page.lance", "index", f"_indices/{UUID}"),
    ],
)
def test_kinds(path: str, kind: str, name: str) -> None:
    assert classify(path) == (kind, name)


@pytest.mark.parametrize(
    "path",
    [
        "_versions/1.manifest",
        "_versions/1.manifest#17",
        "data/notes.txt#17",
        "_versions/latest_version_hint.json",
        "_refs/tags/a.json",
        "data/a.parquet",
        "data/sub/a.lance",
        "data/data/a/1.blob",
        "data/a/1.txt",
        "data/a.lance.bak",
        "_deletions/readme",
        "_indices/not-a-uuid/index.idx",
        f"_indices/{UUID}",
        "_blobs/x.blob",
        "tree/b/data/a.lance",
        "x.lance",
    ],
)
def test_never_touched(path: str) -> None:
    assert classify(path) is None
