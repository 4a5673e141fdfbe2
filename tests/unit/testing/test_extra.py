"""The test kits without pytest and Hypothesis: those that need neither work, the others say what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _import(module: str) -> subprocess.CompletedProcess[str]:
    blocked = "import sys; sys.modules['hypothesis'] = None; sys.modules['pytest'] = None; "
    command = [sys.executable, "-c", f"{blocked}import {module}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_package_and_its_kits() -> None:
    assert _import("tablewright.testing, tablewright").returncode == 0


@pytest.mark.parametrize(
    ("module", "needs"),
    [("tablewright.testing.strategies", "hypothesis"), ("tablewright.testing.store_conformance", "pytest")],
)
def test_what_is_missing_is_named(module: str, needs: str) -> None:
    error = _import(module).stderr.splitlines()[-1]
    assert error == f'ModuleNotFoundError: {module} needs {needs}: pip install "tablewright[test]"'
