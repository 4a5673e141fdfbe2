"""The same change made twice: by us on one copy of a table, by pylance on another. And tables that are worth changing.

Two tables are *the same* when pylance can tell no difference: rows in order, ids, addresses, version columns,
fragments, schema, indices. They have the *same content* when only the place of rows may differ: a column that is
rewritten in place leaves its rows where they are, where pylance moves them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from tests.depth import deep

from tablewright.format.row_ids import decode_row_ids

from .referee import (
    UNDER_TEST,
    assert_same_dataset,
    everything,
    indices_of,
    lance,
    ours,
    state_of,
)

__all__ = [
    "SHAPES",
    "Look",
    "answers",
    "assert_indices_answer",
    "assert_indices_answer_as_a_scan",
    "assert_same_content",
    "assert_same_state",
    "content",
    "coverage",
    "go_on",
    "linked",
    "look",
    "outcome",
    "people",
    "shape_of",
    "some",
    "told",
    "twins",
    "update",
]

T = TypeVar("T")

STRUCT = pa.struct(
    [
        pa.field("a", pa.int64()),
        pa.field("B c", pa.string()),
        pa.field("inner", pa.struct([pa.field("z", pa.float64())])),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("must", pa.int32(), nullable=False),
        pa.field("CamelCase", pa.int32()),
        pa.field("with space", pa.string()),
        pa.field("größe", pa.float32()),
        pa.field("select", pa.int16()),
        pa.field("st", STRUCT),
        pa.field("l", pa.list_(pa.int64())),
        pa.field("v", pa.list_(pa.float32(), 4)),
        pa.field("d", pa.dictionary(pa.int32(), pa.string())),
        pa.field("ts", pa.timestamp("us")),
        pa.field("day", pa.date32()),
        pa.field("dec", pa.decimal128(10, 2)),
        pa.field("flag", pa.bool_(), metadata={"unit": "bits"}),
        pa.field("bin", pa.binary()),
    ],
    metadata={"made by": "the referee"},
)
ROWS, PER_FILE = 48, 12


def _person(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "x": None if i % 7 == 3 else i / 4,
        "s": None if i % 5 == 2 else f"it's row {i}",
        "must": i * 3,
        "CamelCase": None if i % 11 == 5 else i % 10,
        "with space": f"word {i % 6}",
        "größe": i * 0.5,
        "select": i % 3,
        "st": {"a": None if i % 9 == 4 else i * 100, "B c": f"b{i % 4}", "inner": {"z": i / 8}},
        "l": None if i % 6 == 1 else list(range(i % 4)),
        "v": [float(i), 1.0, -i / 2, 0.0],
        "d": None if i % 8 == 7 else f"kind {i % 3}",
        "ts": dt.datetime(2024, 1, 1) + dt.timedelta(days=i, microseconds=i),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=i),
        "dec": decimal.Decimal(i) / 4,
        "flag": None if i % 4 == 2 else i % 2 == 0,
        "bin": bytes([i % 256, 0, 255]),
    }


def people(start: int, stop: int) -> pa.Table:
    """Rows `start` to `stop` (exclusive): nulls, nested columns, names that need quotes."""
    rows = [_person(i) for i in range(start, stop)]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def _made(folder: Path, **options: Any) -> Any:
    return lance.write_dataset(people(0, ROWS), str(folder / "base.lance"), max_rows_per_file=PER_FILE, **options)


def _with_deletions(folder: Path, *, stable: bool) -> Any:
    """Rows are gone from three fragments, and one whole fragment."""
    dataset = _made(folder, enable_stable_row_ids=stable)
    dataset.delete("id in (1, 2, 14, 40, 41)")
    dataset.delete("id >= 24 and id < 36 or id = 3")
    return dataset


def _in_several_files(folder: Path, *, stable: bool) -> Any:
    """A column in its own file, columns replaced in place (their old ids are tombstones), deletions between."""
    dataset = _made(folder, enable_stable_row_ids=stable)
    dataset.add_columns({"extra": "id * 10", "more": "concat('m', cast(id as string))"})
    dataset.delete("id in (10, 25, 26)")
    for id, ids in ((0, [1, 3]), (2, [24, 30])):
        source = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([-1.0] * len(ids))})
        version = dataset.version
        patched, fields, offsets = dataset.get_fragment(id).update_columns(source, left_on="id", with_offsets=True)
        operation = lance.LanceOperation.Update(
            updated_fragments=[patched],
            fields_modified=fields,
            update_mode="rewrite_columns",
            updated_fragment_offsets={id: offsets},
        )
        dataset = lance.LanceDataset.commit(dataset, operation, read_version=version)
    return dataset


def _with_moved_rows(folder: Path) -> Any:
    """Stable row ids, and rows that no longer stand where they were written."""
    dataset = _made(folder, enable_stable_row_ids=True)
    dataset.update({"x": "x + 1000"}, where="id % 5 = 0")
    dataset.delete("id % 10 = 5")
    dataset.insert(people(ROWS, ROWS + 4))
    dataset.update({"s": "'again'"}, where="id in (0, 7, 49)")
    return dataset


def _compacted(folder: Path) -> Any:
    dataset = _with_moved_rows(folder)
    dataset.optimize.compact_files(target_rows_per_fragment=24)
    return dataset


SHAPES: dict[str, Callable[[Path], Any]] = {
    "addresses": lambda folder: _made(folder),
    "stable": lambda folder: _made(folder, enable_stable_row_ids=True),
    "v1-names": lambda folder: _made(folder, enable_v2_manifest_paths=False),
    "file-2.0": lambda folder: _made(folder, data_storage_version="2.0"),
    "file-2.1": lambda folder: _made(folder, data_storage_version="2.1", enable_stable_row_ids=True),
    "file-2.3": lambda folder: _made(folder, data_storage_version="2.3"),
    "deletions": lambda folder: _with_deletions(folder, stable=False),
    "deletions-stable": lambda folder: _with_deletions(folder, stable=True),
    "several-files": lambda folder: _in_several_files(folder, stable=False),
    "several-files-stable": lambda folder: _in_several_files(folder, stable=True),
    "moved-rows": _with_moved_rows,
    "compacted": _compacted,
}


def shape_of(uri: str) -> str:
    """The shape of a table, by the folder that pytest made for it."""
    return next(name for name in sorted(SHAPES, key=len, reverse=True) if f"/{name}" in uri)


def some(cases: Sequence[T], uri: str, step: int) -> Sequence[T]:
    """All cases for the plainest table; for each other shape its own part of them, so that each meets some shapes.

    A part is every `step`-th case; in CI half of that, and each case still meets another shape.
    """
    number = list(SHAPES).index(shape_of(uri))
    step = min(2 * step // deep(1, 2), len(SHAPES) - 1)
    return cases[number % step :: step] if number else cases


def linked(uri: str | Path, target: Path) -> str:
    """A copy that shares the files: no library ever changes one in place."""
    shutil.copytree(uri, target, copy_function=os.link)
    return str(target)


def twins(uri: str | Path, folder: Path, name: str = "twin") -> tuple[str, str]:
    """Two copies: one for us, one for pylance."""
    return linked(uri, folder / f"{name}-ours.lance"), linked(uri, folder / f"{name}-theirs.lance")


def update(dataset: Any, updates: dict[str, str], where: Any = None, mode: str = "auto", **options: Any) -> Any:
    """`update` with a write mode, which pylance does not have."""
    if type(dataset).__module__.split(".")[0] != "lance":
        options["write_mode"] = mode
    return dataset.update(updates, where=where, **options)


def outcome(action: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, BaseException | None]:
    """What the call returned, or what it raised; a panic of pylance's, which is no Exception, counts too."""
    try:
        return action(*arguments, **options), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return None, error


def content(uri: str | Path, key: str = "id") -> list[str]:
    """All rows as pylance reads them, by `key`, written out, with everything that does not depend on their place."""
    dataset = lance.dataset(str(uri))
    return _by_key(everything(dataset).to_pylist(), key, stable=dataset.has_stable_row_ids)


def _by_key(rows: list[dict[str, Any]], key: str, *, stable: bool) -> list[str]:
    placed = {"_rowaddr"} if stable else {"_rowaddr", "_rowid"}
    kept = [{name: value for name, value in row.items() if name not in placed} for row in rows]
    return [str(row) for row in sorted(kept, key=lambda row: row[key])]


@dataclass(frozen=True)
class Look:
    """A table as pylance tells it. One look serves many comparisons."""

    state: dict[str, Any]
    schema: pa.Schema

    def rows(self, key: str = "id") -> list[str]:
        """As `content` gives them."""
        return _by_key(self.state["rows"], key, stable=self.state["stable"])


def told(place: str | Path, read: pa.Table | None = None) -> Look:
    """What pylance alone tells about a table; `read` are its rows, if they were read before."""
    state = state_of(place, read=read)
    for fragment in state["fragments"]:  # row ids as numbers: how they are cut into segments is the writer's business
        if fragment["row_id_meta"] is not None:
            fragment["row_id_meta"] = decode_row_ids(bytes(fragment["row_id_meta"]["Inline"]), "").to_numpy().tolist()
    return Look(state, lance.dataset(str(place)).schema)


def look(place: str | Path | Look) -> Look:
    """Look at a table with both libraries: it is valid, and they see the same."""
    if isinstance(place, Look):
        return place
    return told(place, assert_same_dataset(place))


def coverage(uri: str | Path) -> dict[str, list[int]]:
    """Which fragments each index covers."""
    return {index["name"]: index["fragment_ids"] for index in indices_of(lance.dataset(str(uri)))}


def assert_same_content(mine: str | Look, theirs: str | Look, key: str = "id") -> None:
    """Same schema and field ids, same rows with the same ids and versions, wherever they stand; both are valid."""
    left, right = look(mine), look(theirs)
    assert left.state["version"] == right.state["version"]
    assert left.schema.equals(right.schema, check_metadata=True)
    assert left.state["field_ids"] == right.state["field_ids"]
    assert left.rows(key) == right.rows(key)


def assert_same_state(mine: str | Look, theirs: str | Look) -> None:
    """Nothing that pylance tells about the tables differs, and both libraries read both alike."""
    left, right = look(mine).state, look(theirs).state
    for name in left:
        assert left[name] == right[name], f"{name}: {left[name]} ≠ {right[name]}"


def go_on(mine: list[str], theirs: str, steps: Sequence[Callable[[Any], Any]], key: str = "id") -> None:
    """pylance goes on with tables of ours, we go on with pylance's, by the same steps; the content stays the same."""
    results = [step(ours.dataset(theirs)) for step in steps]
    truth = look(theirs)
    for place in mine:
        assert [step(lance.dataset(place)) for step in steps] == results, place
        assert_same_content(place, truth, key)


def answers(dataset: Any, filter: str, *, index: bool, key: str = "id") -> list[Any]:
    """The sorted keys of the rows that pylance finds, through its indices or without."""
    scanner = dataset.scanner(columns=[key], filter=filter, use_scalar_index=index)
    return sorted(scanner.to_table()[key].to_pylist())


def assert_indices_answer_as_a_scan(uri: str | Path, filters: Sequence[str], key: str = "id") -> dict[str, list[Any]]:
    """For pylance, and for us, every filter finds the same rows with the indices as without them: these rows."""
    there, here = lance.dataset(str(uri)), ours.dataset(str(uri))
    flat = {filter: answers(there, filter, index=False, key=key) for filter in filters}
    assert_indices_answer(uri, flat, key)
    if UNDER_TEST == "tablewright":
        for filter in filters:
            assert sorted(here.to_table(columns=[key], filter=filter)[key].to_pylist()) == flat[filter], filter
    return flat


def assert_indices_answer(uri: str | Path, expected: dict[str, list[Any]], key: str = "id") -> None:
    """pylance finds these rows for each filter, through its indices."""
    dataset = lance.dataset(str(uri))
    for filter, rows in expected.items():
        assert answers(dataset, filter, index=True, key=key) == rows, filter
