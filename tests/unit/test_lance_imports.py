"""tools/lance_imports.py: the rule that keeps us independent finds every way to break it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import lance_imports


def violations_of(tmp_path: Path, module: str, code: str) -> list[str]:
    path = tmp_path / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    return list(lance_imports.violations(tmp_path))


def test_the_rule_holds_here() -> None:
    assert list(lance_imports.violations(lance_imports.SOURCE)) == []


@pytest.mark.parametrize(
    "code",
    [
        "import lance",
        "import lance.dataset as d",
        "from lance import dataset",
        "from lance.file import LanceFileReader",
        "from lance import file",
        "import lance.file",
        "def f():\n    import lance.file",
        "import importlib\nimportlib.import_module('lance')",
        "__import__('lance.file')",
    ],
)
def test_elsewhere_every_import_counts(tmp_path: Path, code: str) -> None:
    assert len(violations_of(tmp_path, "tablewright/data/read.py", code)) == 1


@pytest.mark.parametrize("code", ["import lance", "from lance import dataset", "import lance.fragment"])
def test_the_one_module_may_import_the_codec_only(tmp_path: Path, code: str) -> None:
    assert len(violations_of(tmp_path, "tablewright/data/encoder.py", code)) == 1


@pytest.mark.parametrize("code", ["import lance.file", "from lance.file import LanceFileReader", "import lancelot"])
def test_the_codec_in_its_module_is_fine(tmp_path: Path, code: str) -> None:
    assert violations_of(tmp_path, "tablewright/data/encoder.py", code) == []
