"""JSON columns come back as pylance shows them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa

from tablewright.data.encoder import DataFileReader
from tablewright.data.jsonb import decode_json_array
from tablewright.storage import open_store

VALUES = [
    '{"a":1}',
    "[1,2]",
    '"text"',
    "1.5",
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "0",
    "-1",
    "255",
    "256",
    "65536",
    "-129",
    "-32769",
    "2147483648",
    "9223372036854775807",
    "18446744073709551615",
    "0.1",
    "100.0",
    "1e16",
    "1.5e-7",
    "1.25e-5",
    "-0.0",
    "5e-324",
    "12345678901234567890123",
    '{"z":1,"a":{"deep":[[],{},null,"é\\n\\"\\u0007"]}}',
]


def test_as_pylance(tmp_path: Path) -> None:
    column = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array([*VALUES, None]))
    referee = lance.write_dataset(pa.table({"j": column}), tmp_path)
    (file,) = (tmp_path / "data").iterdir()
    reader = DataFileReader(open_store(str(tmp_path)), f"data/{file.name}")
    (batch,) = reader.read(0, len(VALUES) + 1, 100)
    decoded = decode_json_array(batch.column(0), column.type, "here")
    assert decoded.to_pylist() == referee.to_table()["j"].to_pylist()
