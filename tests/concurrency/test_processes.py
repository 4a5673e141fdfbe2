"""Real processes on one table: four of ours, four of pylance, 25 appends each. Nothing lost, nothing doubled."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import tablewright as tw

APPENDER = Path(__file__).with_name("appender.py")
SOURCE = Path(tw.__file__).parents[1]
APPENDS = 25


def _race(uri: str, libraries: list[str], folder: Path) -> None:
    """Start one appender for each name, let them go at the same moment, and wait for all."""
    start = folder / "start"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "ignore"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(APPENDER), library, uri, str(number), str(APPENDS), str(start)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, library in enumerate(libraries, 1)
    ]
    try:
        deadline = time.monotonic() + 90
        while len(list(folder.glob("start.ready-*"))) < len(processes) and time.monotonic() < deadline:
            assert all(process.poll() is None for process in processes), "an appender died before the start"
            time.sleep(0.01)
        start.touch()
        endings = [(process.communicate(timeout=180)[0], process.returncode) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for library, (output, code) in zip(libraries, endings, strict=True):
        assert code == 0, f"an appender of {library} failed:\n{output[-3000:]}"


def _judge(uri: str, libraries: list[str]) -> None:
    there, here = lance.dataset(uri), tw.dataset(uri)
    there.validate()
    here.validate()
    wanted = Counter(
        number * 1_000_000 + append * 1_000 + position
        for number in range(1, len(libraries) + 1)
        for append in range(APPENDS)
        for position in range(3)
    )
    found = there.to_table()
    assert Counter(found["id"].to_pylist()) == wanted
    assert here.to_table().equals(found)
    versions = [entry["version"] for entry in here.versions()]
    assert versions == list(range(1, len(libraries) * APPENDS + 2))
    assert [entry["version"] for entry in there.versions()] == versions
    before = 0
    for version in versions[1:]:
        rows = tw.dataset(uri, version=version).count_rows()
        assert rows == before + 3, f"version {version} is not one append"
        before = rows
    ids = [fragment.fragment_id for fragment in there.get_fragments()]
    assert ids == list(range(len(libraries) * APPENDS))
    addresses = here.to_table(columns=["_rowid", "_rowaddr", "_row_created_at_version"])
    assert addresses.equals(there.to_table(columns=["_rowid", "_rowaddr", "_row_created_at_version"]))
    assert len(set(addresses["_rowid"].to_pylist())) == len(wanted)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("maker", "stable"), [("tablewright", False), ("lance", True)], ids=["addresses", "stable"])
def test_eight_processes_append_to_one_table(tmp_path: Path, maker: str, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    schema = pa.schema([("id", pa.int64()), ("who", pa.string())])
    {"tablewright": tw, "lance": lance}[maker].write_dataset([], uri, schema=schema, enable_stable_row_ids=stable)
    libraries = ["tablewright", "lance"] * 4
    _race(uri, libraries, tmp_path)
    _judge(uri, libraries)
