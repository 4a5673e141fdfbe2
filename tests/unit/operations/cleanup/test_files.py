from __future__ import annotations

from tablewright.operations.cleanup.files import CleanupExplanation, CleanupFile, CleanupReferencedBranch, stats_of


def file(kind: str, size: int = 1) -> CleanupFile:
    return CleanupFile(path=f"some/{kind}", kind=kind, size_bytes=size, reason="because")


def test_counted_by_kind() -> None:
    kinds = ["manifest", "data", "blob", "blob", "deletion", "transaction", "index", "index", "index"]
    stats = stats_of([file(kind, 10) for kind in kinds], failed_deletes=2)
    assert (stats.old_versions, stats.data_files_removed, stats.blob_files_removed) == (1, 3, 2)
    assert (stats.deletion_files_removed, stats.transaction_files_removed, stats.index_files_removed) == (1, 1, 3)
    assert (stats.bytes_removed, stats.failed_deletes) == (90, 2)
    assert str(stats).startswith("bytes_removed=90, old_versions=1, data_files_removed=3")


def test_an_explanation_can_be_read() -> None:
    explanation = CleanupExplanation(
        uri="here",
        read_version=9,
        removed_versions=(1, 2, 3, 7),
        kept_versions=(8, 9),
        stats=stats_of([file("data")]),
        candidate_files=(file("data"),),
        candidate_files_truncated=True,
        candidate_file_limit=1,
        referenced_branches=(CleanupReferencedBranch("b", 8),),
        waiting_files=2,
        waiting_bytes=34,
        warnings=("mind the gap",),
    )
    text = str(explanation)
    assert "removes versions 1-3, 7; keeps 8-9" in text
    assert "b (from 8)" in text
    assert "2 files (34 bytes) that no version names are younger than 7 days and stay" in text
    assert "some/data: because" in text
    assert "warning: mind the gap" in text
    assert "only the first 1 files" in text
