"""Real processes on one table: four of ours, four of pylance, up to 25 appends each. Nothing lost, nothing doubled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.concurrency.racers import race
from tests.depth import deep

import tablewright as tw

APPENDER = str(Path(__file__).with_name("appender.py"))
APPENDS = deep(10, 25)


def _race(uri: str, libraries: list[str], folder: Path) -> None:
    """Let one appender for each name go, and wait for all."""
    race(APPENDER, uri, libraries, APPENDS, folder, seconds_max=180, first=1)


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
