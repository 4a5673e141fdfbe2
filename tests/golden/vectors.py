"""The golden deletion vectors as the tests use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tablewright.format.row_set import RowSet

HERE = Path(__file__).parent

# Valid and read by everybody, but Java would not write them so: runs as arrays (pypaimon), gaps instead of fillers.
READ_ONLY = {"dv32-runs-as-arrays.bin", "dv64-sparse-keys.bin"}


def described(format: str) -> dict[str, Any]:
    """What golden.json says about the files of a format."""
    return json.loads((HERE / format / "golden.json").read_text())


def golden_bytes(format: str, file: str) -> bytes:
    return (HERE / format / file).read_bytes()


def vector_of(positions: list[Any]) -> RowSet:
    """The vector of a description: numbers, and pairs of first and last numbers."""
    runs = [range(at[0], at[1] + 1) if isinstance(at, list) else [at] for at in positions]
    return RowSet.of([position for run in runs for position in run])


PAIMON = {entry["file"]: entry for entry in described("paimon")["files"] if entry["kind"] == "DELETION_VECTORS"}
