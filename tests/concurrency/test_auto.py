"""``optimize.auto`` in several processes at once, beside a writer: all succeed, and no row is lost or doubled."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow.compute as pc

import tablewright as tw

SCRIPT = """
import json, sys
import tablewright as tw

uri, role = sys.argv[1:]
sys.stdin.readline()


def insisting(change):
    # Two versions are kept: the one that was read may be cleaned up. Then nothing was written, and it is done again.
    while True:
        try:
            return change(tw.dataset(uri))
        except tw.errors.VersionNotFound:
            pass


if role == "write":
    for number in range(8):
        insisting(lambda ds: ds.insert({"id": [10_000 + number]}))
        insisting(lambda ds: ds.delete(f"id = {number * 7}"))
    print("[]")
else:
    reports = [tw.dataset(uri).optimize.auto(max_seconds=60).to_dict() for _ in range(3)]
    print(json.dumps(reports))
"""


def test_two_at_once_beside_a_writer(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    ds = tw.write_dataset({"id": range(600)}, uri, max_rows_per_file=10)
    with warnings.catch_warnings(action="ignore"):
        ds.update_config({"lance.auto_cleanup.retain_versions": "2"})
    roles = ["auto", "auto", "write"]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, uri, role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role in roles
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    ends = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], ends
    reports = [report for out, _ in ends for report in json.loads(out)]
    outcomes = {(step["action"], step["outcome"]) for report in reports for step in report["steps"]}
    assert ("compact", "done") in outcomes
    assert not {outcome for _, outcome in outcomes} - {"done"}, reports
    latest = tw.dataset(uri)
    latest.validate()
    ids = sorted(latest.to_table()["id"].to_pylist())
    expected = set(range(600)) - {number * 7 for number in range(8)} | {10_000 + number for number in range(8)}
    assert ids == sorted(expected)
    assert pc.count_distinct(latest.to_table()["id"]).as_py() == len(ids)
    assert len(latest.get_fragments()) < 60
