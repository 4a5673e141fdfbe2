"""The data source as Spark's helper processes use it: by name, pickled, pinned to a version."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import pyspark_tablewright
import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.spark.source import TablewrightSource


@pytest.fixture
def table(tmp_path: Path) -> str:
    tw.write_dataset(pa.table({"id": pa.array([1, 2], pa.int64())}), tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


def ids(source: TablewrightSource, struct: StructType) -> list[int]:
    reader = source.reader(struct)
    return [id for part in reader.partitions() for batch in reader.read(part) for id in batch["id"].to_pylist()]


def test_where_spark_looks_for_it() -> None:
    assert pyspark_tablewright.DefaultSource is TablewrightSource
    assert TablewrightSource.name() == "tablewright"


def test_the_wheel_has_it() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert "src/pyspark_tablewright" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_looking_for_it_imports_no_table() -> None:
    script = (
        "import sys, pyspark_tablewright; loaded = [name for name in sys.modules if name.startswith('tablewright.')];"
        "assert not {'pandas', 'lance', 'datafusion', 'obstore'} & {*sys.modules};"
        "assert not [name for name in loaded if name.startswith(('tablewright.api', 'tablewright.storage'))], loaded"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.parametrize("given", ["schema of the table", "schema of the caller"])
def test_a_dataframe_shows_the_version_at_which_it_was_made(table: str, given: str) -> None:
    source = TablewrightSource({"path": table})
    struct = source.schema() if given == "schema of the table" else StructType().add("id", LongType())
    sent = pickle.loads(pickle.dumps(source))
    tw.dataset(table).insert([{"id": 3}])
    assert ids(sent, struct) == [1, 2]
    assert ids(TablewrightSource({"path": table}), struct) == [1, 2, 3]


def test_a_source_to_be_written_needs_no_table(tmp_path: Path) -> None:
    path = str(tmp_path / "new.lance")
    source = pickle.loads(pickle.dumps(TablewrightSource({"path": path, "commit_message": "first"})))
    write = source.writer(StructType().add("id", LongType()), overwrite=False)
    write.commit([write.write(iter([pa.record_batch({"id": pa.array([4], pa.int64())})]))])
    assert tw.dataset(path).to_table().to_pydict() == {"id": [4]}


def test_unknown_options_are_refused_by_the_reader_too(table: str) -> None:
    source = pickle.loads(pickle.dumps(TablewrightSource({"path": table, "fliter": "id > 1"})))
    with pytest.raises(InvalidRequest, match="did you mean 'filter'"):
        source.reader(StructType().add("id", LongType()))
