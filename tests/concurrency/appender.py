"""A process that appends: `python appender.py LIBRARY URI NUMBER APPENDS START_FILE`.

Waits for the start file, then commits `APPENDS` fragments of three rows each, as one version each. The ids tell who
wrote them: number * 1,000,000 + append * 1,000 + position.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

import pyarrow as pa


def main(library_name: str, uri: str, number: int, appends: int, start: Path) -> None:
    """Append until done. Any error ends the process with a traceback."""
    library = importlib.import_module(library_name)
    fragment = importlib.import_module(f"{library_name}.fragment")
    Path(f"{start}.ready-{number}").touch()
    while not start.exists():
        time.sleep(0.005)
    for append in range(appends):
        ids = [number * 1_000_000 + append * 1_000 + position for position in range(3)]
        rows = pa.table({"id": pa.array(ids, pa.int64()), "who": [library_name] * 3})
        if append % 2:
            library.write_dataset(rows, uri, mode="append")
        else:
            dataset = library.dataset(uri)
            operation = library.LanceOperation.Append(fragment.write_fragments(rows, uri))
            library.LanceDataset.commit(uri, operation, read_version=dataset.version, max_retries=200)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
