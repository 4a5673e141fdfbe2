"""Which data files hold which types. Which columns they list is asked of Lance, in tests/differential."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.format.file_layout import FILE_VERSIONS
from tablewright.format.schema import Schema, check_file_version, file_columns

STRUCT = pa.struct({"a": pa.int32(), "b": pa.int32()})
ROW = {"a": 1, "b": 2}


def packed(arrow: pa.DataType, spelling: str = "true", key: str = "packed") -> pa.Field:
    return pa.field("c", arrow, metadata={key: spelling})


FITS: dict[str, tuple[pa.Field | pa.DataType, Any, tuple[str, ...]]] = {
    # name: (type or field, value, versions that hold it)
    "int": (pa.int64(), 1, FILE_VERSIONS),
    "null": (pa.null(), None, FILE_VERSIONS),
    "text": (pa.large_string(), "x", FILE_VERSIONS),
    "decimal": (pa.decimal256(50, 2), decimal.Decimal("1.50"), FILE_VERSIONS),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "x", FILE_VERSIONS),
    "vector": (pa.list_(pa.float32(), 2), [1.0, 2.0], FILE_VERSIONS),
    "vector of vectors": (pa.list_(pa.list_(pa.float32(), 2), 1), [[1.0, 2.0]], FILE_VERSIONS),
    "vector of bool": (pa.list_(pa.bool_(), 2), [True, False], FILE_VERSIONS),
    "struct": (STRUCT, ROW, FILE_VERSIONS),
    "struct of structs": (pa.struct({"p": STRUCT, "q": pa.string()}), {"p": ROW, "q": "x"}, FILE_VERSIONS),
    "list": (pa.list_(pa.int32()), [1], FILE_VERSIONS),
    "list of structs": (pa.list_(STRUCT), [ROW], FILE_VERSIONS),
    "list of lists": (pa.large_list(pa.list_(pa.int8())), [[1]], FILE_VERSIONS),
    "list of vectors": (pa.list_(pa.list_(pa.float32(), 2)), [[1.0, 2.0]], FILE_VERSIONS),
    "map": (pa.map_(pa.string(), pa.list_(pa.int8())), [("a", [1])], ("2.2", "2.3")),
    "list of maps": (pa.list_(pa.map_(pa.string(), STRUCT)), [[("a", ROW)]], ("2.2", "2.3")),
    "packed": (packed(STRUCT), ROW, FILE_VERSIONS),
    "packed, new key": (packed(STRUCT, "TRUE", "lance-encoding:packed"), ROW, FILE_VERSIONS),
    "packed says no": (packed(STRUCT, "false"), ROW, FILE_VERSIONS),
    "packed on a number": (packed(pa.int64()), 1, FILE_VERSIONS),
    "packed says 1": (packed(STRUCT, "1"), ROW, ()),
    "packed says on": (packed(STRUCT, "on"), ROW, ()),
    "packed list": (packed(pa.list_(pa.int8())), [1], ()),
    "packed text": (packed(pa.struct({"a": pa.string()})), {"a": "x"}, ("2.2", "2.3")),
    "packed bool": (packed(pa.struct({"a": pa.bool_(), "b": pa.int8()})), {"a": True, "b": 1}, ()),
    "packed null": (packed(pa.struct({"a": pa.null(), "b": pa.int8()})), {"a": None, "b": 1}, ()),
    "packed list below": (packed(pa.struct({"a": pa.list_(pa.int8())})), {"a": [1]}, ()),
    "packed dictionary": (packed(pa.struct({"a": pa.dictionary(pa.int8(), pa.string())})), {"a": "x"}, ()),
    "packed vector": (packed(pa.struct({"a": pa.list_(pa.int8(), 2)})), {"a": [1, 2]}, ("2.0", "2.2", "2.3")),
    "packed bits": (packed(pa.struct({"a": pa.list_(pa.bool_(), 2)})), {"a": [True, False]}, ()),
    "packed struct below": (packed(pa.struct({"a": STRUCT, "b": pa.int8()})), {"a": ROW, "b": 1}, ("2.3",)),
    "packed empty": (packed(pa.struct([])), {}, ()),
    "packed in list": (pa.list_(pa.field("item", STRUCT, metadata={"packed": "true"})), [ROW], FILE_VERSIONS),
    "empty struct": (pa.struct([]), {}, ("2.0",)),
    "empty struct in list": (pa.list_(pa.struct([])), [{}], ("2.0",)),
    "empty struct in struct": (pa.struct({"e": pa.struct([]), "a": pa.int8()}), {"e": {}, "a": 1}, ("2.0",)),
    "fixed list of structs": (pa.list_(STRUCT, 2), [ROW, ROW], ()),
    "fixed list of text": (pa.list_(pa.string(), 2), ["a", "b"], ()),
    "fixed list of dictionary": (pa.list_(pa.dictionary(pa.int8(), pa.string()), 2), ["a", "b"], ()),
    "no bytes": (pa.binary(0), b"", ("2.2",)),
}
BESIDE = pa.field("z", pa.int64())


def table_with(kind: pa.Field | pa.DataType, value: Any) -> pa.Table:
    field = kind if isinstance(kind, pa.Field) else pa.field("c", kind)
    return pa.table([pa.array([value] * 3, field.type), pa.array([7, 8, 9])], schema=pa.schema([field, BESIDE]))


@pytest.mark.parametrize("name", FITS)
def test_each_kind_fits_the_versions_that_can_hold_it(name: str) -> None:
    kind, value, versions = FITS[name]
    schema = Schema.from_arrow(table_with(kind, value).schema)
    problems = {version: check_file_version(schema, version) for version in FILE_VERSIONS}
    assert tuple(version for version, found in problems.items() if not found) == tuple(versions)
    assert all("`c" in found[0] for found in problems.values() if found)


def test_reserved_names_and_versions() -> None:
    arrow = pa.schema({"_rowid": pa.uint64(), "id": pa.int64(), "s": pa.struct({"_rowaddr": pa.int8()})})
    assert check_file_version(Schema.from_arrow(arrow), "2.2") == (
        "The column _rowid is a reserved name and cannot be used in a Lance dataset",
    )
    for version in ("1.0", "2", "3.0", ""):
        with pytest.raises(InvalidRequest, match="Unknown data storage version"):
            file_columns(Schema(), version)
    assert file_columns(Schema(), "2.2") == ((), ())
