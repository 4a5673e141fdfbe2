"""Functions of other libraries that take a ``pyarrow.dataset.Dataset``, Scanner or Fragment, given ours.

Many call C++ code behind the Python object. A wrong object would end the process, so each library is tried in a child.
A case is right if it gives the rows of the table, or raises where that is written here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_SETTING = """
import json, sys
import pyarrow as pa, pyarrow.compute as pc, pyarrow.dataset as pads, pyarrow.acero as acero
import tablewright as tw

place = sys.argv[1]
rows = {"id": list(range(10)), "s": [None, *"abcdefghi"]}
ds = tw.write_dataset(rows, place + "/t.lance", max_rows_per_file=4)
ds.delete("id = 5")
scan = ds.scanner(filter="id > 3")
fragment = ds.get_fragment(1)
above = pc.field("id") > 3

def case(name, run):
    print(json.dumps([name, "began"]), flush=True)
    try:
        outcome = run()
    except Exception as error:
        outcome = type(error).__name__
        print(repr(error), file=sys.stderr)
    print(json.dumps([name, outcome]), flush=True)

def ids(table):
    return sorted(table["id"].to_pylist())
"""

_CASES = {
    "pyarrow": """
def written(_, name):
    return ids(pads.dataset(place + name).to_table())

other = pads.dataset(pa.table({"id": [1, 7], "n": [10, 70]}))
case("Scanner.from_dataset", lambda: ids(pads.Scanner.from_dataset(ds).to_table()))
case("filter", lambda: ids(pads.Scanner.from_dataset(ds, filter=above, batch_size=2).to_table()))
case("count_rows", lambda: pads.Scanner.from_dataset(ds, filter=above).count_rows())
case("columns", lambda: pads.Scanner.from_dataset(ds, columns=["s"]).head(3)["s"].to_pylist())
case("write_dataset", lambda: written(pads.write_dataset(ds, place + "/a", format="parquet"), "/a"))
case("write_dataset of a scanner", lambda: written(pads.write_dataset(scan, place + "/b", format="parquet"), "/b"))
case("a list of datasets", lambda: ids(pads.dataset([ds, ds]).to_table()))
case("another dataset's join", lambda: ids(other.join(ds, "id").to_table()))
case("join", lambda: ids(ds.join(other, "id", join_type="inner").to_table()))
case("join_asof", lambda: ds.sort_by("id").join_asof(other, "id", [], 0).to_table()["n"].to_pylist())
case("ScanNodeOptions", lambda: ids(acero.Declaration("scan", acero.ScanNodeOptions(ds)).to_table()))
case("replace_schema", lambda: ids(ds.replace_schema(pa.schema([("id", pa.int64())])).to_table()))
case("pa.table", lambda: ids(pa.table(ds)))
case("InMemoryDataset", lambda: pads.InMemoryDataset(ds))
case("from_fragment", lambda: pads.Scanner.from_fragment(fragment))
case("from_fragment with a schema", lambda: pads.Scanner.from_fragment(fragment, schema=ds.schema))
case("FileSystemDataset", lambda: pads.FileSystemDataset([fragment], ds.schema, pads.ParquetFileFormat(), None))
case("methods of the base", lambda: ids(pads.Dataset.replace_schema(ds, ds.schema).to_table()))
case("fragments of the base", lambda: len(list(pads.Dataset.get_fragments(ds))))
case("partition_expression", lambda: str(pads.Dataset.partition_expression.__get__(ds)))
case("never opened", lambda: pads.Scanner.from_dataset(tw.LanceDataset.__new__(tw.LanceDataset)).to_table())
pairs = [(ds, pads.Dataset), (scan, pads.Scanner), (fragment, pads.Fragment)]
case("isinstance", lambda: [isinstance(ours, theirs) for ours, theirs in pairs])
narrow = tw.dataset(place + "/t.lance", default_scan_options={"filter": "id > 3"})
case("default scan options", lambda: pads.Scanner.from_dataset(narrow).to_table())
ds.add_columns({"twice": "id * 2"})
case("the version it moved to", lambda: pads.Scanner.from_dataset(ds).to_table().column_names)
""",
    "lance": """
import lance
case("write_dataset", lambda: ids(lance.write_dataset(ds, place + "/a").to_table()))
case("write_dataset of a scanner", lambda: ids(lance.write_dataset(scan, place + "/b").to_table()))
case("write_dataset of a fragment", lambda: lance.write_dataset(fragment, place + "/c"))
theirs = lance.write_dataset(ds, place + "/d")
merge = theirs.merge_insert("id").when_not_matched_insert_all()
case("insert", lambda: [theirs.insert(ds), ids(theirs.to_table())][1])
case("merge_insert", lambda: merge.execute(ds)["num_inserted_rows"])
case("write_fragments", lambda: sum(f.physical_rows for f in lance.fragment.write_fragments(ds, place + "/e")))
""",
    "lancedb": """
import lancedb
db = lancedb.connect(place + "/db")
case("create_table", lambda: ids(db.create_table("a", ds).to_arrow()))
case("create_table of a scanner", lambda: ids(db.create_table("b", scan).to_arrow()))
case("add", lambda: [db.open_table("a").add(scan), db.open_table("a").count_rows()][1])
""",
    "duckdb": """
import duckdb
case("by name", lambda: duckdb.sql("select sum(id), count(*) from ds where id > 3").fetchall())
case("a scanner by name", lambda: duckdb.sql("select sum(id), count(*) from scan").fetchall())
case("from_arrow", lambda: ids(pa.table(duckdb.from_arrow(ds).filter("id > 3").arrow())))
link = duckdb.connect()
case("register", lambda: link.register("t", ds).sql("select count(*) from t").fetchall())
""",
    "polars": """
import polars
case("scan_pyarrow_dataset", lambda: ids(polars.scan_pyarrow_dataset(ds).filter(polars.col("id") > 3).collect()
     .to_arrow()))
case("DataFrame", lambda: ids(polars.DataFrame(ds).to_arrow()))
case("from_arrow", lambda: ids(polars.from_arrow(ds).to_arrow()))
""",
    "deltalake": """
import os
import deltalake
def written(_, name):
    return ids(deltalake.DeltaTable(place + name).to_pyarrow_table())

case("write_deltalake", lambda: written(deltalake.write_deltalake(place + "/a", ds), "/a"))
case("of a scanner", lambda: written(deltalake.write_deltalake(place + "/b", scan), "/b"))
sys.stdout.flush()
os._exit(0)  # deltalake 1.6.6 and pyarrow abort now and then when a process ends, also with tables of pyarrow alone
""",
    "datafusion": """
import datafusion
context = datafusion.SessionContext()
context.register_dataset("t", ds)
case("count", lambda: context.sql("select count(*) as n from t").to_pydict())
case("a filter", lambda: ids(context.sql("select id from t where id > 3 and s is not null").to_arrow_table()))
case("from_arrow", lambda: ids(context.from_arrow(ds).to_arrow_table()))
""",
    "pandas": """
import pandas
case("to_pandas", lambda: sorted(ds.to_pandas()["id"].tolist()))
case("from_arrow", lambda: sorted(pandas.DataFrame.from_arrow(ds)["id"].tolist()))
""",
    "pyiceberg": """
import pyiceberg.io.pyarrow as iceberg
case("pyarrow_to_schema", lambda: len(iceberg.visit_pyarrow(ds.schema, iceberg._ConvertToIcebergWithoutIDs()).fields))
case("_dataframe_to_data_files", lambda: list(iceberg._dataframe_to_data_files(None, ds, None)))
""",
}

ALL, ABOVE = [0, 1, 2, 3, 4, 6, 7, 8, 9], [4, 6, 7, 8, 9]
_EXPECTED: dict[str, dict[str, Any]] = {
    "pyarrow": {
        "count_rows": 5,
        "filter": ABOVE,
        "columns": [None, "a", "b"],
        "write_dataset of a scanner": ABOVE,
        "a list of datasets": sorted(ALL * 2),
        "another dataset's join": [1, 7],
        "join": [1, 7],
        "join_asof": [None, 10, None, None, None, None, 70, None, None],
        "InMemoryDataset": "TypeError",
        "from_fragment": "TypeError",
        "from_fragment with a schema": "TypeError",
        "FileSystemDataset": "TypeError",
        "fragments of the base": 1,
        "partition_expression": "true",
        "never opened": "InvalidRequest",
        "isinstance": [True, True, True],
        "default scan options": "UnsupportedFeature",
        "the version it moved to": ["id", "s", "twice"],
    },
    "lance": {
        "write_dataset of a scanner": ABOVE,
        "write_dataset of a fragment": "TypeError",
        "insert": sorted(ALL * 2),
        "merge_insert": 0,
        "write_fragments": 9,
    },
    "lancedb": {"create_table of a scanner": ABOVE, "add": 14},
    "duckdb": {"by name": [[34, 5]], "a scanner by name": [[34, 5]], "from_arrow": ABOVE, "register": [[9]]},
    "polars": {"scan_pyarrow_dataset": ABOVE, "from_arrow": "TypeError"},
    "deltalake": {"of a scanner": ABOVE},
    "datafusion": {"count": {"n": [9]}, "a filter": ABOVE},
    "pandas": {"from_arrow": "AttributeError"},
    "pyiceberg": {"pyarrow_to_schema": 2, "_dataframe_to_data_files": "AttributeError"},
}


@pytest.mark.parametrize("library", _CASES)
def test_a_library_that_takes_datasets(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    script = tmp_path / "cases.py"
    script.write_text(_SETTING + _CASES[library])
    child = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, timeout=300, check=False)
    outcomes = dict(json.loads(line) for line in child.stdout.splitlines() if line.startswith("["))
    assert child.returncode == 0, f"{list(outcomes.items())[-1:]}\n{child.stderr}"
    assert outcomes == {name: _EXPECTED[library].get(name, ALL) for name in outcomes}, child.stderr
    assert outcomes
