"""What is imported when: a fresh process pays for what it uses. Modules are compared, never times."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tablewright as tw
from tablewright import dataset as open_dataset

HEAVY = ("pyspark", "py4j", "datafusion", "lance", "pandas", "pyarrow", "obstore", "rich", "typer", "sqlite3")


def imported(script: str, *arguments: str) -> set[str]:
    """Which of the heavy packages a new process has imported after ``script``."""
    ask = f"\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script + ask, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.splitlines()[-1].split())


def test_the_package_alone_imports_nothing_heavy() -> None:
    assert imported("import tablewright as tw; tw.__version__, dir(tw), tw.errors.TablewrightError") == set()
    assert imported("from tablewright import errors; import tablewright.dataset, tablewright.commit") == set()


def test_looking_at_versions_needs_neither_codec_nor_datafusion_nor_spark(tmp_path: Path) -> None:
    tw.write_dataset([{"id": 1}, {"id": 2}], tmp_path / "table")
    script = "import sys, tablewright as tw; assert tw.dataset(sys.argv[1]).count_rows() == 2"
    used = imported(script, str(tmp_path / "table"))
    assert not used & {"pyspark", "py4j", "datafusion", "lance", "rich", "typer"}


def test_reading_needs_the_codec_and_a_filter_datafusion(tmp_path: Path) -> None:
    tw.write_dataset([{"id": 1, "s": "a"}, {"id": 2, "s": "b"}], tmp_path / "table")
    read = "import sys, tablewright as tw; ds = tw.dataset(sys.argv[1]); assert ds.to_table().num_rows == 2"
    assert imported(read, str(tmp_path / "table")) & {"pyspark", "datafusion", "lance"} == {"lance"}
    tw.write_dataset([{"id": 1}, {"id": 2}], tmp_path / "numbers")
    assert not imported(read, str(tmp_path / "numbers")) & {"pyspark", "datafusion", "lance"}, "few numbers need none"
    filtered = read + "; assert ds.to_table(filter='id > 1').num_rows == 1"
    assert imported(filtered, str(tmp_path / "table")) & {"pyspark", "datafusion", "lance"} == {"lance", "datafusion"}


def test_a_task_of_a_spark_worker_needs_none_of_the_public_names() -> None:
    script = "import tablewright.engine.spark.worker, sys; assert 'tablewright.api' not in sys.modules"
    assert not imported(script) & {"pyspark", "datafusion", "lance", "rich"}


@pytest.mark.parametrize("module", ["tablewright", "tablewright.dataset"])
def test_all_public_names_are_there(module: str) -> None:
    """The names that types are checked with, those of ``__all__``, and those that are imported late are the same."""
    loaded = sys.modules[module]
    assert set(loaded.__all__) <= set(dir(loaded))
    for name in loaded.__all__:
        assert getattr(loaded, name) is not None
    assert loaded.__file__ is not None
    tree = ast.parse(Path(loaded.__file__).read_text())
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname or alias.name for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    late = next(node for node in ast.walk(branch) if isinstance(node, ast.Dict))
    assert typed == {key.value for key in late.keys if isinstance(key, ast.Constant)}
    assert set(loaded.__all__) - {"__version__"} == typed
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        getattr(loaded, "no" + "thing")


def test_the_function_stays_in_front_of_the_module_of_its_name() -> None:
    script = (
        "from tablewright.dataset import LanceDataset\n"
        "import tablewright.dataset\n"
        "import tablewright as tw\n"
        "assert callable(tw.dataset) and callable(tablewright.dataset)\n"
    )
    imported(script)
    assert callable(open_dataset)
