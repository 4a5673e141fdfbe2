"""The soak: eight writers, a compactor, a cleaner and a reader in processes of their own, on one table.

Every compaction that planned work commits, none reads its sources twice, no writer of ours runs again because of one.
The changes replayed in the order of their versions, on plain Python, give the rows of the table; every version that is
kept can be read at any moment; and after a last compaction and cleanup, the table has the size of a new one.
`make soak` lets them go on for the three minutes that were promised, CI for a part of that.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.racers import race
from tests.concurrency.soaker import FIRST_WRITER, MODULUS, ROWS, wide
from tests.depth import deep

import tablewright as tw

SOAKER = str(Path(__file__).with_name("soaker.py"))
SECONDS = {"tablewright": deep(6, 180), "both": deep(6, 180)}
WRITERS = 8


def _table(uri: str, *, stable: bool) -> None:
    rows = {
        "id": pa.array(range(ROWS), pa.int64()),
        "v": pa.array([0] * ROWS, pa.int64()),
        "wide": [wide(id) for id in range(ROWS)],
    }
    tw.write_dataset(pa.table(rows), uri, max_rows_per_file=ROWS // 8, enable_stable_row_ids=stable)


Row = dict[str, Any]


def _replayed(lines: list[dict[str, Any]]) -> dict[int, Row]:
    """The rows by id: all changes, one after the other."""
    rows: dict[int, Row] = {id: {"v": 0} for id in range(ROWS)}
    for line in sorted((line for line in lines if "change" in line), key=lambda line: line["version"]):
        match line["change"]:
            case "delete":
                for id in line["ids"]:
                    rows.pop(id, None)
            case "update":
                for id in set(line["ids"]) & rows.keys():
                    rows[id] = {**rows[id], "v": (rows[id]["v"] * 31 + line["plus"]) % MODULUS}
            case "append":
                rows |= {id: {"v": 0} for id in line["ids"]}
            case "upsert":
                rows |= {id: {**rows.get(id, {}), "v": line["plus"]} for id in line["ids"]}
            case "columns":
                rows = {id: {**row, line["name"]: id + 1} for id, row in rows.items()}
            case "drop":
                rows = {id: {name: v for name, v in row.items() if name != line["name"]} for id, row in rows.items()}
    return rows


def _size(path: Path) -> int:
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("libraries", ["tablewright", "both"])
def test_a_table_that_heals_while_people_write(tmp_path: Path, libraries: str) -> None:
    uri, stable = str(tmp_path / "table"), libraries == "tablewright"
    _table(uri, stable=stable)
    writers = ["tablewright"] * WRITERS if libraries == "tablewright" else ["tablewright", "lance"] * (WRITERS // 2)
    seconds = SECONDS[libraries]
    lines = race(SOAKER, uri, ["tablewright"] * FIRST_WRITER + writers, seconds, tmp_path, seconds_max=seconds + 300)

    compactions = [line for line in lines if "compaction" in line]
    committed = [line for line in compactions if line["version"] is not None]
    assert compactions and len(committed) >= 0.99 * len(compactions), compactions
    assert not any(line["read_twice"] for line in compactions)
    here = tw.dataset(uri)
    rewrites = {line["version"] for line in committed}
    again = [line for line in lines if "conflict" in line and (line["conflict"] == "Rewrite" or line["at"] in rewrites)]
    assert not again, again
    assert any("read" in line for line in lines) and any("cleaned" in line for line in lines)

    expected = _replayed(lines)
    for dataset in (here, lance.dataset(uri)):
        found = dataset.to_table(columns=[name for name in here.schema.names if name != "wide"]).to_pylist()
        assert len(found) == len(expected)
        assert {row.pop("id"): {k: v for k, v in row.items() if v is not None} for row in found} == expected
        dataset.validate()

    here.optimize.compact_files(materialize_deletions_threshold=0)
    here.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    copy = tmp_path / "copy"
    tw.write_dataset(here.to_table(), str(copy), enable_stable_row_ids=stable)
    assert _size(Path(uri)) <= 1.1 * _size(copy), (_size(Path(uri)), _size(copy))
