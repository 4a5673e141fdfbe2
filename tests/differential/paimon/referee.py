"""pypaimon 2.1, the referee for Paimon tables: one process in its own environment, asked line by line.

`make test` makes the environment, `.venv-pypaimon`; `TABLEWRIGHT_PYPAIMON` names another Python that has pypaimon.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["Pypaimon", "RefereeError", "pypaimon_python", "same_rows", "sorted_rows"]

ROOT = Path(__file__).parents[3]
SIDE = Path(__file__).with_name("pypaimon_side.py")


def pypaimon_python() -> str:
    """The Python that has pypaimon."""
    python = Path(os.environ.get("TABLEWRIGHT_PYPAIMON", ROOT / ".venv-pypaimon" / "bin" / "python"))
    if not python.exists():
        raise RuntimeError(f"{python} is not there: `make test` makes it, or TABLEWRIGHT_PYPAIMON names another.")
    return str(python)


class RefereeError(Exception):
    """What pypaimon said no to."""


class Pypaimon:
    """A warehouse, and pypaimon at work in it."""

    def __init__(self, directory: Path) -> None:
        self._letters, self._numbers = directory / "letters", itertools.count()
        self._letters.mkdir()
        self.warehouse = directory / "warehouse"
        self.warehouse.mkdir()
        command = [pypaimon_python(), "-W", "ignore", str(SIDE), str(self.warehouse)]
        self.database = "db"
        self._said = (directory / "stderr.txt").open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
        )

    def close(self) -> None:
        self._process.communicate()
        self._said.close()

    def use(self, database: str) -> None:
        """Tables are from now on those of this database."""
        self.database = database
        self._send("create_database", name=database)

    def path(self, name: str) -> str:
        """The directory of a table."""
        return str(self.warehouse / f"{self.database}.db" / name)

    def ask(self, verb: str, name: str, **request: Any) -> Any:
        """Let pypaimon do something with a table."""
        return self._send(verb, name=f"{self.database}.{name}", **request)

    def _send(self, verb: str, **request: Any) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps({"do": verb, **request}) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, f"pypaimon's process has ended: {Path(self._said.name).read_text()[-2000:]}"
        reply = json.loads(line)
        if "error" in reply:
            raise RefereeError(reply["error"] + "\n" + reply["traceback"])
        return reply["result"]

    def create(
        self,
        name: str,
        schema: pa.Schema,
        *,
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> str:
        """Make a table. Its directory."""
        self.ask(
            "create",
            name=name,
            schema=self._posted(schema.empty_table()),
            partition_keys=list(partition_keys),
            primary_keys=list(primary_keys),
            options=dict(options or {}),
        )
        return self.path(name)

    def append(self, name: str, rows: pa.Table, *, level: int | None = None) -> list[str]:
        """Commit rows. The names of the new data files."""
        return self.ask("append", name=name, data=self._posted(rows), level=level)

    def read(self, name: str, snapshot: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, as pypaimon sees them."""
        out = self._letters / f"{next(self._numbers)}.arrow"
        self.ask("read", name=name, snapshot=snapshot, out=str(out), columns=columns and list(columns))
        with pa.OSFile(str(out)) as file:
            return pa.ipc.open_file(file).read_all()

    def update_column(self, name: str, rows: pa.Table, columns: Sequence[str]) -> None:
        self.ask("update_column", name=name, data=self._posted(rows), columns=list(columns))

    def _posted(self, rows: pa.Table) -> str:
        path = self._letters / f"{next(self._numbers)}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
        return str(path)


def same_rows(actual: pa.Table, expected: pa.Table, key: str = "id") -> None:
    """Same columns and types, same rows; which file comes first is not part of a table."""
    assert actual.schema.equals(expected.schema, check_metadata=False), f"{actual.schema}\n≠\n{expected.schema}"
    assert sorted_rows(actual, key) == sorted_rows(expected, key)


def sorted_rows(table: pa.Table, key: str = "id") -> list[dict[str, Any]]:
    """The rows by their key, a NaN as its text."""
    rows = table.sort_by(key).to_pylist()
    return [{name: "NaN" if value != value else value for name, value in row.items()} for row in rows]
