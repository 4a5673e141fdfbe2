"""A forked child says at once what it can't do; it never hangs. Every case runs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw

SCRIPT = """
import json, os, sys, warnings
warnings.filterwarnings("ignore", "lance is not fork-safe")
import tablewright as tw
path, parent, children = sys.argv[1:]
ds = tw.dataset(path)
exec(parent)
for child in json.loads(children):
    process = os.fork()
    if process == 0:
        try:
            exec(child)
            print("worked")
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(process, 0)
"""
MEMORY = "import pyarrow as pa; tw.write_dataset(pa.table({'a': [1]}), 'memory://forked')"
BATCHES = "rows = ds.to_batches(); next(rows)"


def said(path: Path, parent: str, *children: str) -> list[str]:
    """What each child prints after the parent has run its code: one line per child."""
    command = [sys.executable, "-c", SCRIPT, str(path), parent, json.dumps(children)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forks") / "t"
    tw.write_dataset(pa.table({"a": range(1000), "s": ["x"] * 1000}), path, max_rows_per_file=100)
    return path


def test_a_child_is_refused_after_use(table: Path) -> None:
    lines = said(
        table,
        f"ds.to_table(filter='a > 5'); {BATCHES}; {MEMORY}",
        "ds.to_table()",
        "tw.dataset(path).to_table()",
        "ds.take([1])",
        "ds.insert([{'a': 1, 's': 'y'}])",
        "ds.add_columns({'b': 'a'})",
        "tw.dataset(path).delete('a = -1')",
        "list(rows); ds.to_table()",
        "tw.dataset('memory://forked')",
        "ds.validate()",
    )
    assert len(lines) == 9
    for line in lines:
        assert line.startswith("ForkedProcess: This process was forked from one"), line
        assert "get_context('spawn')" in line


PLANNING = """
import threading
import tablewright.api.scanner as scanner
ds.to_table()
plan_scan, planning = scanner.plan_scan, threading.Event()

def slow_plan(*arguments):
    if threading.current_thread() is not threading.main_thread():
        planning.set()
        threading.Event().wait()
    return plan_scan(*arguments)

scanner.plan_scan = slow_plan
threading.Thread(target=ds.to_table, daemon=True).start()
planning.wait()
"""


def test_a_fork_while_another_thread_plans_does_not_hang(table: Path) -> None:
    (line,) = said(table, PLANNING, "ds.to_table()")
    assert line.startswith("ForkedProcess"), line


def test_a_child_works_where_nothing_runs_in_the_parent_yet(table: Path) -> None:
    lines = said(
        table,
        "ds.count_rows(), ds.schema, ds.versions()",
        "assert ds.to_table(filter='a >= 500').num_rows == 500",
        "assert tw.dataset(path).to_table().num_rows == 1000",
    )
    assert lines == ["worked", "worked"]


def test_a_child_may_always_look_at_local_metadata(table: Path) -> None:
    looks = "assert tw.dataset(path).count_rows() == 1000; ds.versions(); ds.tags.list()"
    assert said(table, "ds.to_table()", looks) == ["worked"]


POOL = """
import multiprocessing, os, sys
import tablewright as tw

def rows(path):
    return tw.dataset(path).to_table().num_rows

if __name__ == "__main__":
    path, method = sys.argv[1:]
    tw.dataset(path).to_table()
    with multiprocessing.get_context(method).Pool(1) as pool:
        print(pool.map(rows, [path]))
"""


@pytest.mark.parametrize(("method", "words"), [("spawn", "[1000]"), ("fork", "was forked from one")])
def test_pools(table: Path, tmp_path: Path, method: str, words: str) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    command = [sys.executable, str(script), str(table), method]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=dict(os.environ))
    assert words in done.stdout + done.stderr
    assert ("lance is not fork-safe" in done.stderr) == (method == "fork")
