"""jobs/workloads.py: plans of real tables in the figures by which an engine is chosen."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.jobs.workloads import columns_work, compaction_work, keys_work, match_work, scan_work
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.compact.plan import plan_compaction
from tablewright.operations.delete import plan_delete
from tablewright.operations.merge_insert.clauses import Clauses
from tablewright.operations.merge_insert.plan import plan_merge
from tablewright.operations.merge_insert.source.kept import keep

ROWS, WIDTH = 3000, 16
TABLE = pa.table(
    {
        "id": pa.array(np.arange(ROWS)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * WIDTH, np.float32)), WIDTH),
    }
)


@pytest.fixture
def ds(tmp_path: Path) -> tw.LanceDataset:
    return tw.write_dataset(TABLE, tmp_path / "t.lance", max_rows_per_file=1000)


def test_a_scan_reads_the_columns_of_its_filter(ds: tw.LanceDataset) -> None:
    work = scan_work(plan_delete(ds._snapshot, "id = 1").search.scan)
    assert (work.rows, work.files, work.tasks, work.bytes_written) == (ROWS, 3, 1, 0)
    assert work.uses_threads and ROWS * 8 <= work.bytes_read < ROWS * 4 * WIDTH


def test_new_columns_are_read_and_written(ds: tw.LanceDataset) -> None:
    prepared = ds.prepare_add_columns({"double": "id * 2"})
    work = columns_work(prepared._plan, in_turn=False)
    assert (work.rows, work.files, work.tasks, work.threads_max) == (ROWS, 6, 3, None)
    assert work.bytes_read == work.bytes_written == ROWS * 8
    assert columns_work(prepared._plan, in_turn=True).threads_max == 1


def test_a_compaction_writes_what_it_reads(ds: tw.LanceDataset) -> None:
    plan = plan_compaction(ds._snapshot, CompactionOptions())
    work = compaction_work(plan, 1)
    assert work.bytes_read == work.bytes_written > ROWS * 4 * WIDTH
    assert (work.tasks, work.files, work.threads_max) == (1, 4, 1)


def test_a_merge_holds_its_keys_and_ships_its_rows(ds: tw.LanceDataset) -> None:
    plan = plan_merge(ds._snapshot, Clauses(when_matched="update"), "id", TABLE.schema, 0)
    source = keep(plan.fitted.schema, TABLE.to_batches())
    every = tuple(ds._snapshot.fragments.ids.tolist())
    match = match_work(plan, every, source.num_rows, source.nbytes)
    assert (match.rows, match.prepared_rows, match.shipped_bytes) == (ROWS, ROWS, source.nbytes)
    assert match_work(plan, ()).rows == 0
    keys = keys_work(plan, source, 0)
    assert (keys.shuffled_rows, keys.turns, keys.shipped_bytes) == (2 * ROWS, 1, 0)
    assert keys.held_bytes >= source.nbytes + ROWS * 8


def test_a_large_upsert_starts_no_session(tmp_path: Path) -> None:
    """50 MB: a JVM would take ten times as long to start as the merge takes."""
    script = f"""
    import sys
    import numpy as np, pyarrow as pa, tablewright as tw
    rows = 100_000
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(rows * 128, np.float32)), 128)
    source = pa.table({{"id": np.arange(rows), "vector": vectors}})
    ds = tw.write_dataset(source, {str(tmp_path / "t.lance")!r}, max_rows_per_file=rows // 4)
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute(source)["num_updated_rows"] == rows
    assert "pyspark" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=200)
