"""What the differential tests share: the two libraries, and what it means that a table is the same in both.

`ours` is Tablewright, `lance` is pylance 14, the referee. Because the two have the same face, the tests can be judged
themselves: `TABLEWRIGHT_UNDER_TEST=lance` runs them with pylance on both sides, where they have to pass as well.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import os
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

UNDER_TEST = os.environ.get("TABLEWRIGHT_UNDER_TEST", "tablewright")
ours = importlib.import_module(UNDER_TEST)

SYSTEM_COLUMNS = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]

__all__ = [
    "SYSTEM_COLUMNS",
    "UNDER_TEST",
    "assert_same_dataset",
    "assert_same_rows",
    "copy_of",
    "everything",
    "fragments_of",
    "indices_of",
    "lance",
    "lancedb_rows",
    "numbers",
    "opened",
    "ours",
    "state_of",
    "tree",
]


def opened(library: Any, uri: str, engine: Any) -> Any:
    """The newest version; ours works on this engine."""
    return library.dataset(uri, engine=engine) if library.__name__ == "tablewright" else library.dataset(uri)


def numbers(start: int, stop: int, *, text: bool = True) -> pa.Table:
    """Rows `start` to `stop` (exclusive) of a plain table: an id, a float with nulls, a text."""
    ids = list(range(start, stop))
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int64()),
        "x": pa.array([None if i % 7 == 3 else i / 4 for i in ids], pa.float64()),
    }
    if text:
        columns["s"] = pa.array([None if i % 5 == 2 else f"row {i}" for i in ids], pa.string())
    return pa.table(columns)


def assert_same_rows(actual: pa.Table, expected: pa.Table, *, metadata: bool = True) -> None:
    """Same columns, types, field and schema metadata, same values in the same order; NaN equals NaN."""
    assert actual.schema.equals(expected.schema, check_metadata=metadata), f"{actual.schema}\n≠\n{expected.schema}"
    assert actual.num_rows == expected.num_rows
    for name, left, right in zip(expected.column_names, actual.columns, expected.columns, strict=True):
        if not left.equals(right):
            assert _plain(left.to_pylist()) == _plain(right.to_pylist()), f"column {name}"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def everything(dataset: Any) -> pa.Table:
    """All columns and all system columns, in the table's order."""
    return dataset.to_table(columns=[*dataset.schema.names, *SYSTEM_COLUMNS])


def assert_same_dataset(uri: str | Path, **checkout: Any) -> pa.Table:
    """Both libraries see the same at `uri`: schema, rows, all system columns, fragments; and it is valid.

    Returns what pylance read: all columns and all system columns.
    """
    here, there = ours.dataset(str(uri), **checkout), lance.dataset(str(uri), **checkout)
    there.validate()
    assert here.version == there.version
    assert here.schema.equals(there.schema, check_metadata=True), f"{here.schema}\n≠\n{there.schema}"
    read = everything(there)
    assert here.count_rows() == there.count_rows() == read.num_rows
    assert_same_rows(here.to_table(), read.select(there.schema.names))
    assert_same_rows(here.to_table(columns=SYSTEM_COLUMNS), read.select(SYSTEM_COLUMNS))
    assert [f.metadata.to_json() for f in here.get_fragments()] == [f.metadata.to_json() for f in there.get_fragments()]
    return read


def indices_of(dataset: Any) -> list[dict[str, Any]]:
    """The indices of a dataset that pylance has open, in a stable order."""
    found = [{**index, "fragment_ids": sorted(index["fragment_ids"])} for index in dataset.list_indices()]
    return sorted(found, key=lambda index: (index["name"], index["fragment_ids"], str(index["uuid"])))


def fragments_of(dataset: Any, *, names: bool = False) -> list[dict[str, Any]]:
    """The fragments' metadata; file names, sizes and deletion ids, which differ from run to run, only with `names`."""
    found = [fragment.metadata.to_json() for fragment in dataset.get_fragments()]
    for fragment in found if not names else ():
        for file in fragment["files"]:
            del file["path"], file["file_size_bytes"]
        if fragment["deletion_file"] is not None:
            del fragment["deletion_file"]["id"]
    return found


def state_of(uri: str | Path, *, names: bool = False, read: pa.Table | None = None) -> dict[str, Any]:
    """Everything that pylance can tell about a table: compared between two copies that went the same way.

    `read` are its rows, if it was found valid and read before.
    """
    dataset = lance.dataset(str(uri))
    if read is None:
        dataset.validate()
        read = everything(dataset)
    return {
        "version": dataset.version,
        "field_ids": [_ids(field) for field in dataset.lance_schema.fields()],
        "fields": [_facts(field) for field in dataset.schema],
        "rows": read.to_pylist(),
        "fragments": fragments_of(dataset, names=names),
        "indices": [(index["name"], index["fields"], index["fragment_ids"]) for index in indices_of(dataset)],
        "config": dataset.config(),
        "metadata": dataset.metadata,
        "schema_metadata": dataset.schema_metadata,
        "stable": dataset.has_stable_row_ids,
        "storage_version": dataset.data_storage_version,
        "max_field_id": dataset.max_field_id,
    }


def _ids(field: Any) -> tuple[Any, ...]:
    return field.name(), field.id(), tuple(_ids(child) for child in field.children())


def _facts(field: pa.Field) -> tuple[Any, ...]:
    children = tuple(_facts(field.type.field(i)) for i in range(field.type.num_fields))
    return field.name, str(field.type), field.nullable, sorted((field.metadata or {}).items()), children


def copy_of(uri: str | Path, name: str) -> str:
    """A second table with the same files, beside the first."""
    target = Path(uri).parent / name
    shutil.copytree(uri, target)
    return str(target)


def tree(root: str | Path) -> dict[str, str]:
    """Every file below `root`, with a digest of the content: what "nothing was written" compares.

    Empty directories do not count: removing one could pull it away under another writer that just made it.
    """
    files = (path for path in sorted(Path(root).rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def lancedb_rows(uri: str | Path) -> pa.Table:
    """What LanceDB reads from the table at `uri`, whose directory must end in `.lance`."""
    import lancedb

    path = Path(uri)
    return lancedb.connect(str(path.parent)).open_table(path.stem).to_arrow()
