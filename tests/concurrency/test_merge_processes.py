"""Eight real processes upsert overlapping keys of one table: the result is that of the merges in version order.

Every version is in exactly one log. Replayed in the order of their versions, on a plain dict, the merges give the rows
of the table, and the numbers that each call reported: no key was doubled, and no merge was made of what was not there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.merger import COUNTS, KEYS, rows

import tablewright as tw

MERGER = Path(__file__).with_name("merger.py")
SOURCE = Path(tw.__file__).parents[1]
PROCESSES, UPSERTS = 8, int(os.environ.get("TABLEWRIGHT_RACE_UPSERTS", "100"))


def _race(uri: str, folder: Path) -> list[dict[str, Any]]:
    start = folder / "start"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "ignore"}
    logs = [folder / f"{number}.jsonl" for number in range(PROCESSES)]
    processes = [
        subprocess.Popen(
            [sys.executable, str(MERGER), uri, str(number), str(UPSERTS), str(start), str(log)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, log in enumerate(logs)
    ]
    try:
        deadline = time.monotonic() + 90
        while len(list(folder.glob("start.ready-*"))) < PROCESSES and time.monotonic() < deadline:
            time.sleep(0.05)
        start.touch()
        for process in processes:
            out, _ = process.communicate(timeout=280)
            assert process.returncode == 0, out[-3000:]
    finally:
        for process in processes:
            process.kill()
    return sorted(
        (json.loads(line) for log in logs for line in log.read_text().splitlines()), key=lambda line: line["version"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
def test_merges_equal_their_order_by_version(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(rows(list(range(0, KEYS, 3)), -1), uri, max_rows_per_file=20, enable_stable_row_ids=stable)
    model = dict.fromkeys(range(0, KEYS, 3), -1)
    lines = _race(uri, tmp_path)
    assert [line["version"] for line in lines] == list(range(2, 2 + PROCESSES * UPSERTS))
    for line in lines:
        known = [id for id in line["ids"] if id in model]
        new = [id for id in line["ids"] if id not in model] if line["kind"] != "update" else []
        changed = known if line["kind"] != "create" else []
        model |= dict.fromkeys([*changed, *new], line["mark"])
        assert [line[name] for name in COUNTS] == [len(new), len(changed), 0], line
    for table in (tw.dataset(uri).to_table(), lance.dataset(uri).to_table()):
        assert table.num_rows == len(model)
        assert dict(zip(table["id"].to_pylist(), table["by"].to_pylist(), strict=True)) == model
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    assert not unreferenced(tw.dataset(uri), paths)
    assert pa.types.is_int64(tw.dataset(uri).schema.field("id").type)
