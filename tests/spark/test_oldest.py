"""The oldest PySpark of the declared range: what has to work on every one works on it, types included.

`make referee` makes the environment, `.venv-pyspark40`: PySpark alone, all other packages are those of `.venv`. It runs
the tests named here in a process and a session of their own. `TABLEWRIGHT_PYSPARK40` names another Python.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("TABLEWRIGHT_PYSPARK40", ROOT / ".venv-pyspark40" / "bin" / "python"))
MODULES = ("test_profile.py", "test_types.py", "test_versions.py")


@pytest.mark.timeout(600)
def test_the_oldest_pyspark(tmp_path: Path) -> None:
    assert PYTHON.exists(), f"{PYTHON} is missing: `make referee` makes it."
    options = [
        "-q",
        "-x",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'b'}",
    ]
    asked = [str(PYTHON), "-c", "import pyspark; print(pyspark.__version__)"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert version.startswith("4.0."), f"{PYTHON} has PySpark {version}"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
        environment.pop(name, None)
    run = subprocess.run(
        [str(PYTHON), "-m", "pytest", *options, *(f"tests/spark/{module}" for module in MODULES)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert int(re.findall(r"(\d+) passed", run.stdout)[0]) > 30
