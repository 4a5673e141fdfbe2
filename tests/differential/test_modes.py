"""Every write mode and every kind of input: versions, fragments, row ids, and both libraries taking turns."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from .referee import (
    UNDER_TEST,
    assert_same_dataset,
    assert_same_rows,
    copy_of,
    everything,
    fragments_of,
    lance,
    lancedb_rows,
    numbers,
    ours,
    state_of,
)

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])


def _both(tmp_path: Path, steps: list[tuple[pa.Table, dict[str, Any]]]) -> tuple[str, str]:
    """The same writes by us at one place and by pylance at another."""
    mine, theirs = str(tmp_path / "ours.lance"), str(tmp_path / "theirs.lance")
    for table, options in steps:
        ours.write_dataset(table, mine, **options)
        lance.write_dataset(table, theirs, **options)
    return mine, theirs


@STABLE
@pytest.mark.parametrize("v2", [True, False], ids=["v2names", "v1names"])
def test_modes_one_after_another(tmp_path: Path, stable: bool, v2: bool) -> None:
    creation = {"enable_stable_row_ids": stable, "enable_v2_manifest_paths": v2}
    steps = [
        (numbers(0, 10), {"mode": "create", "max_rows_per_file": 4, **creation}),
        (numbers(10, 15), {"mode": "append"}),
        (numbers(15, 17).select(["s", "x", "id"]), {"mode": "append"}),
        (numbers(0, 0), {"mode": "append"}),
        (numbers(100, 103, text=False), {"mode": "overwrite"}),
        (numbers(103, 104, text=False), {"mode": "append", "commit_message": "one more"}),
        (numbers(0, 0), {"mode": "overwrite"}),
        (numbers(7, 9), {"mode": "append", "transaction_properties": {"who": "me"}}),
    ]
    mine, theirs = _both(tmp_path, steps)
    assert state_of(mine) == state_of(theirs)
    for version in range(1, len(steps) + 1):
        assert_same_dataset(mine, version=version)
        assert_same_dataset(theirs, version=version)
        left, right = lance.dataset(mine, version=version), lance.dataset(theirs, version=version)
        assert_same_rows(everything(left), everything(right))
    names = sorted(path.name for path in (tmp_path / "ours.lance/_versions").glob("*.manifest"))
    assert names == sorted(path.name for path in (tmp_path / "theirs.lance/_versions").glob("*.manifest"))
    assert_same_rows(lancedb_rows(mine), lance.dataset(theirs).to_table())
    changes = zip(lance.dataset(mine).get_transactions(), lance.dataset(theirs).get_transactions(), strict=True)
    for left, right in changes:
        assert type(left.operation) is type(right.operation)
        assert left.read_version == right.read_version
        assert left.transaction_properties == right.transaction_properties


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_any_mode_creates_a_missing_table(tmp_path: Path, mode: str) -> None:
    mine, theirs = _both(tmp_path, [(numbers(0, 5), {"mode": mode})])
    assert state_of(mine) == state_of(theirs)


@pytest.mark.parametrize("rows_per_file", [1, 7, 20, 21])
def test_files_roll_by_rows_as_pylance_rolls_them(tmp_path: Path, rows_per_file: int) -> None:
    mine, theirs = _both(tmp_path, [(numbers(0, 20), {"max_rows_per_file": rows_per_file})])
    assert state_of(mine) == state_of(theirs)
    assert_same_dataset(mine)


def test_files_roll_by_bytes_as_pylance_rolls_them(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).random(60_000 * 64, np.float32)
    rows = pa.table({"id": range(60_000), "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 64)})
    for library, name in ((ours, "ours.lance"), (lance, "theirs.lance")):
        library.write_dataset(rows.to_reader(max_chunksize=4096), str(tmp_path / name), max_bytes_per_file=4_000_000)
    mine, theirs = lance.dataset(str(tmp_path / "ours.lance")), lance.dataset(str(tmp_path / "theirs.lance"))
    assert_same_rows(mine.to_table(), rows)
    assert fragments_of(mine) == fragments_of(theirs)


@STABLE
@pytest.mark.parametrize("version", ["2.0", "2.2", *(pytest.param(v, marks=pytest.mark.slow) for v in ("2.1", "2.3"))])
def test_both_append_in_turn(tmp_path: Path, stable: bool, version: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 3), uri, enable_stable_row_ids=stable, data_storage_version=version)
    for turn, library in zip(range(1, 9), itertools.cycle((ours, lance, ours)), strict=False):
        library.write_dataset(numbers(3 * turn, 3 * turn + 3), uri, mode="append", max_rows_per_file=2)
        assert_same_dataset(uri)
    there = lance.dataset(uri)
    assert there.version == 9
    assert there.to_table(columns=["id"])["id"].to_pylist() == list(range(27))
    assert len(set(everything(there)["_rowid"].to_pylist())) == 27
    if version != "2.3":
        assert_same_rows(lancedb_rows(uri), there.to_table())


@STABLE
def test_an_open_dataset_is_told_and_stale_handles_append(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    first = ours.write_dataset(numbers(0, 3), uri, enable_stable_row_ids=stable)
    stale = ours.dataset(uri)
    lance.write_dataset(numbers(3, 6), uri, mode="append")
    assert (first.version, first.latest_version) == (1, 2)
    stale.insert(numbers(6, 9))
    assert (stale.version, stale.count_rows()) == (3, 9)
    newer = ours.write_dataset(numbers(9, 10), first, mode="append")
    assert newer.version == 4
    stale.checkout_latest()
    assert stale.version == 4
    assert stale.to_table(columns=["id"])["id"].to_pylist() == list(range(10))
    assert_same_dataset(uri)


@STABLE
def test_columns_left_out_of_an_append_read_null(tmp_path: Path, stable: bool) -> None:
    steps = [(numbers(0, 4), {"enable_stable_row_ids": stable}), (numbers(4, 6).select(["id"]), {"mode": "append"})]
    mine, theirs = _both(tmp_path, steps)
    assert state_of(mine) == state_of(theirs)
    assert_same_dataset(theirs)


def test_overwrite_changes_schema_and_keeps_what_pylance_keeps(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(numbers(0, 20), uri, max_rows_per_file=6, enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE")
    dataset.update_config({"owner": "me"})
    dataset.update_metadata({"note": "kept"})
    dataset.delete("id = 3")
    other = copy_of(uri, "copy.lance")
    table = pa.table({"new": [1.5, 2.5], "st": [{"a": 1}, {"a": 2}]})
    ours.write_dataset(table, uri, mode="overwrite")
    lance.write_dataset(table, other, mode="overwrite")
    assert state_of(uri) == state_of(other)
    assert_same_dataset(uri)
    ours.write_dataset(table, uri, mode="append")
    lance.write_dataset(table, other, mode="append")
    assert state_of(uri) == state_of(other)


def _inputs(table: pa.Table) -> dict[str, Any]:
    import pandas as pd
    import polars as pl

    plain = table.select(["id", "s"])
    return {
        "table": lambda: plain,
        "batch": lambda: plain.to_batches()[0],
        "reader": lambda: plain.to_reader(max_chunksize=3),
        "list of batches": lambda: plain.to_batches(max_chunksize=3),
        "generator of batches": lambda: (batch for batch in plain.to_batches(max_chunksize=3)),
        "dataset": lambda: pads.dataset(plain),
        "scanner": lambda: pads.dataset(plain).scanner(),
        "pandas": lambda: pd.DataFrame({"id": plain["id"].to_pylist(), "s": plain["s"].to_pylist()}),
        "polars": lambda: pl.from_arrow(plain),
        "dicts": lambda: plain.to_pylist(),
        "dict of columns": lambda: plain.to_pydict(),
    }


INPUTS = _inputs(numbers(0, 10))


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_of_every_kind(tmp_path: Path, name: str) -> None:
    """Written as pylance writes them; of a kind that only we take, as the plain table."""
    told = {"schema": numbers(0, 0).select(["id", "s"]).schema} if "batches" in name else {}
    uri, other = str(tmp_path / "ours"), str(tmp_path / "theirs")
    ours.write_dataset(INPUTS[name](), uri, **told)
    try:
        lance.write_dataset(INPUTS[name](), other, **told)
    except (TypeError, ValueError):
        expected = numbers(0, 10).select(["id", "s"])
    else:
        expected = lance.dataset(other).to_table()
    assert_same_rows(lance.dataset(uri).to_table(), expected)
    assert_same_dataset(uri)


@pytest.mark.parametrize("name", INPUTS)
def test_a_schema_that_is_given_is_the_tables(tmp_path: Path, name: str) -> None:
    schema = numbers(0, 0).select(["id", "s"]).schema
    ours.write_dataset(INPUTS[name](), str(tmp_path / "t"), schema=schema)
    if UNDER_TEST == "tablewright" or name != "polars":  # pylance forgets it there
        assert lance.dataset(str(tmp_path / "t")).schema.equals(schema, check_metadata=False)
    assert lance.dataset(str(tmp_path / "t")).to_table().to_pylist() == numbers(0, 10).select(["id", "s"]).to_pylist()


def test_a_dataset_of_ours_is_an_input_too(tmp_path: Path) -> None:
    source = ours.write_dataset(numbers(0, 10), str(tmp_path / "a"))
    copied = ours.write_dataset(source, str(tmp_path / "b"))
    assert_same_rows(copied.to_table(), numbers(0, 10))
    filtered = ours.write_dataset(source.scanner(filter="id > 6").to_reader(), str(tmp_path / "c"))
    assert filtered.count_rows() == 3


def test_auto_cleanup_options_become_the_same_config(tmp_path: Path) -> None:
    options = {"auto_cleanup_options": {"interval": 20, "older_than_seconds": 3600}}
    mine, theirs = _both(tmp_path, [(numbers(0, 3), options), (numbers(3, 5), {"mode": "append"})])
    assert state_of(mine) == state_of(theirs)
