"""mypy sees rows: it refuses wrong code, and what ``typings/`` declares is in the libraries.

The reasons are in docs/design/0008-types-of-rows.md.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "typings"
SPLIT = re.compile(r"^_[a-z]+$")
"""A module of the stubs that holds a part of ``pyarrow`` itself."""

BOTH = {"_Tabular": (pa.RecordBatch, pa.Table)}
"""What a base class of the stubs declares, each of these classes has of its own."""

HEAD = """
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from pyroaring import BitMap
from datafusion import SessionContext

def check(
    batch: pa.RecordBatch,
    table: pa.Table,
    array: pa.Array,
    chunks: pa.ChunkedArray,
    schema: pa.Schema,
    floats: npt.NDArray[np.float64],
) -> None:
    {line}
"""

RIGHT = [
    "keys: pa.Array = batch.column('id').take(pc.sort_indices(batch, sort_keys=[('id', 'ascending')]))",
    "whole: pa.Array = table.column(0).combine_chunks()",
    "mask: pa.BooleanArray = pc.and_(pc.equal(array, 1), array.is_valid())",
    "inner: list[pa.Array] = array.flatten() if isinstance(array, pa.StructArray) else [array]",
    "unit: str = array.type.unit if at.is_timestamp(array.type) else ''",
    "rows: int = len(BitMap([1]))",
]
WRONG = [
    ("a misspelt method", "batch.colum('id')", "attr-defined"),
    ("a misspelt property", "batch.num_row", "attr-defined"),
    ("a column of a batch as one of a table", "chunks = batch.column(0)", "assignment"),
    ("a column of a table as one of a batch", "array = table.column(0)", "assignment"),
    ("a table for a batch", "batch = table", "assignment"),
    ("a table in a list of batches", "pa.Table.from_batches([table])", "list-item"),
    ("a chunked array in a batch", "pa.RecordBatch.from_arrays([chunks], names=['a'])", "list-item"),
    ("names for indices", "pc.take(batch, 'id')", "arg-type"),
    ("text for indices", "array.take(['a'])", "list-item"),
    ("floats for indices", "array.take(floats)", "arg-type"),
    ("a schema for a type", "pa.nulls(1, schema)", "arg-type"),
    ("a type for a schema", "batch.cast(pa.int64())", "arg-type"),
    ("any array for a mask", "pc.and_(array, array)", "call-overload"),
    ("members of any array", "array.flatten()", "attr-defined"),
    ("a parameter that only some types have", "schema.field(0).type.unit", "attr-defined"),
    ("an option that no function has", "batch.slice(begin=1)", "call-arg"),
    ("a function that is not there", "pc.tak(array, array)", "attr-defined"),
    ("text in a bitmap", "BitMap(['a'])", "list-item"),
    ("a misspelt method of DataFusion", "SessionContext().read_batches_([batch])", "attr-defined"),
]


@pytest.mark.slow
def test_mypy_refuses_wrong_rows(tmp_path: Path) -> None:
    cases = [(line, None) for line in RIGHT] + [(line, code) for _, line, code in WRONG]
    files = [tmp_path / f"case{number}.py" for number in range(len(cases))]
    for file, (line, _) in zip(files, cases, strict=True):
        file.write_text(HEAD.format(line=line))
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-pretty"]
    run = subprocess.run(
        [*command, "--no-incremental", "--no-error-summary", *map(str, files)], cwd=ROOT, capture_output=True, text=True
    )
    found: dict[str, list[str]] = {file.name: [] for file in files}
    for name, code in re.findall(r"(case\d+\.py):\d+: error: .*\[([a-z-]+)\]$", run.stdout, re.MULTILINE):
        found[name].append(code)
    expected = {file.name: [] if code is None else [code] for file, (_, code) in zip(files, cases, strict=True)}
    assert found == expected, run.stdout + run.stderr


# ---------------------------------------------------------------------------------------------- stubs and libraries
def stub_files() -> list[Path]:
    return sorted(STUBS.rglob("*.pyi"))


def library_of(stub: Path) -> ModuleType:
    *package, name = stub.relative_to(STUBS).with_suffix("").parts
    return importlib.import_module(".".join([*package, "lib" if SPLIT.match(name) else name]).removesuffix(".__init__"))


def missing(body: list[ast.stmt], library: Any, where: str) -> Iterator[str]:
    """What a stub declares and the library has not."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or is_protocol(node):
            continue
        found, path = getattr(library, node.name, None), f"{where}.{node.name}"
        if found is None:
            yield path
        elif isinstance(node, ast.ClassDef):
            for each in BOTH.get(node.name, (found,)):
                yield from missing(node.body, each, path)
        else:
            yield from missing_options(node, found, path)


def is_protocol(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether it is there for mypy only; a type in C takes part in the buffer protocol without a method."""
    if isinstance(node, ast.FunctionDef):
        return node.name == "__buffer__"
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


def missing_options(stub: ast.FunctionDef, function: Any, path: str) -> Iterator[str]:
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # in C, and says nothing
        return
    if stub.name.startswith("__") or any(each.kind is each.VAR_KEYWORD for each in known):
        return
    named = {each.name for each in known if each.kind is not each.POSITIONAL_ONLY}
    for each in (*stub.args.args, *stub.args.kwonlyargs):
        if each.arg not in ("self", "cls") and each.arg not in named:
            yield f"{path}({each.arg}=…)"


@pytest.mark.parametrize("stub", stub_files(), ids=lambda path: str(path.relative_to(STUBS)))
def test_stubs_declare_what_the_library_has(stub: Path) -> None:
    library = library_of(stub)
    assert list(missing(ast.parse(stub.read_text()).body, library, library.__name__)) == []
