"""Tables with sequences in files of their own: pylance can't open them, and can after our next commit."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.unit.snapshot.test_external_sequences import LINEAGE, old_table

import tablewright as tw


def test_pylance_reads_them_after_our_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.lance"
    old_table(path, monkeypatch)
    with pytest.raises(ValueError, match="All fragments must have row ids"):
        lance.dataset(str(path))
    tw.dataset(str(path)).update({"id": "id + 1000"}, where="id = 4")
    theirs = lance.dataset(str(path))
    theirs.validate()
    assert theirs.to_table(columns=LINEAGE).equals(tw.dataset(str(path)).to_table(columns=LINEAGE))
