"""Schemas that pylance appends, and those that it refuses, in its words."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.unit.format.test_schema_match import DIFFERS, FITS, one, rows_of

from tablewright.errors import SchemaMismatch
from tablewright.format.schema import Schema, schema_differences


@pytest.mark.parametrize("name", FITS)
def test_what_lance_appends(name: str, tmp_path: Path) -> None:
    table, data = FITS[name]
    assert schema_differences(table, data) == ()
    assert schema_differences(Schema.from_arrow(table), data) == ()
    lance.write_dataset(rows_of(table), tmp_path / "t")
    assert lance.write_dataset(rows_of(data), tmp_path / "t", mode="append").count_rows() == 2


@pytest.mark.parametrize("name", DIFFERS)
def test_what_lance_refuses_in_its_words(name: str, tmp_path: Path) -> None:
    table, data = DIFFERS[name]
    differences = schema_differences(table, data)
    lance.write_dataset(rows_of(table), tmp_path / "t")
    with pytest.raises(OSError, match="Append with different schema") as refused:
        lance.write_dataset(rows_of(data), tmp_path / "t", mode="append")
    theirs = str(refused.value).removeprefix("Append with different schema: ").split(", location")[0]
    assert ", ".join(differences) == theirs
    assert str(SchemaMismatch(differences)).startswith("Append with different schema: ")


@pytest.mark.parametrize(
    ("table", "data", "words"),
    [
        (one(pa.uuid()), one(pa.binary(16)), "`c` should have extension type arrow.uuid but it was no extension type"),
        (one(pa.binary(16)), one(pa.uuid()), "`c` should have no extension type but it was extension type arrow.uuid"),
        (
            one(pa.string(), **{"ARROW:extension:name": "a.b", "ARROW:extension:metadata": "1"}),
            one(pa.string(), **{"ARROW:extension:name": "a.b", "ARROW:extension:metadata": "2"}),
            "`c` should have extension type a.b (1) but it was extension type a.b (2)",
        ),
    ],
)
def test_another_extension_type_is_refused_as_lances_file_writer_does(
    table: pa.Schema, data: pa.Schema, words: str, tmp_path: Path
) -> None:
    assert schema_differences(table, data) == (words,)
    lance.write_dataset(rows_of(table), tmp_path / "t")
    with pytest.raises(OSError, match="does not match the file schema"):
        lance.write_dataset(rows_of(data), tmp_path / "t", mode="append")
