from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.cache import process_cache
from tablewright.data.small import SmallFragments
from tablewright.operations.merge_insert.match import pairing
from tablewright.storage import identity

FRAGMENTS = 400


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(identity, "SETTLED_NS", 0)
    before = process_cache().bytes_max
    process_cache().clear()
    yield
    process_cache().resize(before)


class _Bundles:
    """How many bundles threads could share, and how many runs of small fragments were read, in the last merge."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = self.reads = 0
        spread, read = pairing.spread, SmallFragments.read

        def counted(function: Any, items: Any) -> Any:
            found = list(items)
            self.count += len(found)
            return spread(function, found)

        def reading(files: SmallFragments, start: int, stop: int) -> Any:
            self.reads += 1
            return read(files, start, stop)

        monkeypatch.setattr(pairing, "spread", counted)
        monkeypatch.setattr(SmallFragments, "read", reading)

    def of(self, ds: Any, number: int) -> tuple[int, int]:
        self.count = self.reads = 0
        rows = pa.table({"id": [number, FRAGMENTS + number], "text": ["new", "more"]})
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        return self.count, self.reads


@pytest.mark.parametrize("budget", [0, 1 << 24])
def test_small_fragments_in_the_cache_are_matched_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    """Looking up one key among many fragments that are in the cache is less work than two threads take to share it."""
    process_cache().resize(budget)
    rows = pa.table({"id": range(FRAGMENTS), "text": ["old"] * FRAGMENTS})
    ds = tw.write_dataset(rows, tmp_path / "t", max_rows_per_file=1)
    bundles = _Bundles(monkeypatch)
    cold = bundles.of(ds, 3)
    assert cold[0] == cold[1] > 1
    assert bundles.of(ds, 5) == ((1, 1) if budget else cold)
    found = sorted(ds.to_table().to_pylist(), key=lambda row: row["id"])
    expected = {number: "new" if number in (3, 5) else "old" for number in range(FRAGMENTS)}
    assert {row["id"]: row["text"] for row in found} == {**expected, FRAGMENTS + 3: "more", FRAGMENTS + 5: "more"}
    assert len(found) == FRAGMENTS + 2
