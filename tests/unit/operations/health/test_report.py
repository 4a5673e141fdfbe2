"""Health as text and as plain values."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

import tablewright as tw
from tablewright.operations.health import TableHealth
from tablewright.operations.health.values import CompactionOutlook


@pytest.fixture
def health() -> TableHealth:
    ds = tw.write_dataset({"id": range(1000), "x": range(1000)}, "memory://health-report", mode="overwrite")
    ds.delete("id < 300")
    return ds.health()


def test_the_text_has_every_section(health: TableHealth) -> None:
    text = str(health)
    assert text == repr(health)
    assert "700 live, 300 deleted (30 %)" in text
    for part in ("deletion files", "manifest", "versions", "reclaimable", "read overhead", "Growth by version"):
        assert part in text
    assert "compact: 1 fragment with more than 10 % deleted rows" in text
    assert "ds.optimize.compact_files(materialize_deletions_threshold=0.1)" in text
    assert max(map(len, text.splitlines())) < 180


def test_plain_values_are_json(health: TableHealth) -> None:
    plain = json.loads(json.dumps(health.to_dict()))
    assert plain["rows"] == {"live": 700, "deleted": 300, "physical": 1000, "deleted_share": 0.3}
    assert plain["bytes"]["dead_share"] == pytest.approx(0.3, abs=0.001)
    assert plain["versions"]["reclaimable_bytes"] == health.versions.reclaimable_bytes
    assert plain["manifest"]["total"] == health.manifest.total
    assert plain["worst_fragments"][0]["deleted_rows"] == 300
    assert plain["recommendations"][0]["action"] == "compact"
    assert "fragments" not in plain


def test_it_can_be_pickled(health: TableHealth) -> None:
    assert str(pickle.loads(pickle.dumps(health))) == str(health)


def test_it_is_frozen(health: TableHealth) -> None:
    with pytest.raises(FrozenInstanceError):
        health.version = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        health.rows.live = 3  # type: ignore[misc]


def test_a_compaction_is_shown(health: TableHealth) -> None:
    plan = CompactionOutlook(
        tasks=1, fragments_before=2, fragments_after=1, rows_written=5, bytes_read=2048, bytes_freed=1024
    )
    shown = str(replace(health, compaction=plan))
    assert "read 2.00 KiB in 1 task, make 1 out of 2 fragments, free 1.00 KiB after a cleanup" in shown
    assert "do nothing" in str(replace(health, compaction=replace(plan, tasks=0)))
    assert "tablewright_table_compaction_read_bytes" in replace(health, compaction=plan).to_openmetrics()


def test_only_the_worst_fragments_are_shown() -> None:
    ds = tw.write_dataset({"id": range(100)}, "memory://health-worst", mode="overwrite", max_rows_per_file=10)
    ds.delete("id % 10 <= id / 10")
    worst = ds.health(sample=False).worst_fragments
    assert [each["fragment_id"] for each in worst] == sorted(
        (each["fragment_id"] for each in worst), key=lambda number: -number
    )
    assert len(worst) == 5
