"""tools/found_tests.py: modules without a test that is found, and unit tests that ask a referee, are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import found_tests

CODE = '"""An idea."""\n\n\ndef f(): ...\n'


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_tests_of_every_module_here_are_found() -> None:
    assert list(found_tests.unproven(found_tests.ROOT)) == []


def test_unit_and_property_tests_here_ask_no_referee() -> None:
    assert list(found_tests.refereed(found_tests.ROOT)) == []


def test_a_module_without_a_test_is_named(tmp_path: Path) -> None:
    put(tmp_path, "src/tablewright/a/b.py", CODE)
    (line,) = found_tests.unproven(tmp_path)
    assert line.startswith("src/tablewright/a/b.py: there is no tests/unit/a/test_b.py")
    put(tmp_path, "tests/unit/a/test_b.py", "")
    assert list(found_tests.unproven(tmp_path)) == []


@pytest.mark.parametrize(
    "line",
    [
        "Tests: tests/unit/c.py",
        "Tests: tests/unit/c.py, tests/unit/d.py",
        "Tests: tests/unit/c.py,\ntests/unit/d.py",
        "Tests: ``tests/unit/c.py``, ``tests/unit/d.py``.",
        "Tests: ``tests/unit/c.py``,\n``tests/unit/d.py``.",
        "Tests: tests/unit",
    ],
)
def test_a_docstring_says_where_it_is_proven(tmp_path: Path, line: str) -> None:
    put(tmp_path, "src/tablewright/a.py", f'"""An idea.\n\n{line}\n\nMore.\n"""\n\nx = 1\n')
    put(tmp_path, "tests/unit/c.py", "")
    put(tmp_path, "tests/unit/d.py", "")
    assert list(found_tests.unproven(tmp_path)) == []


def test_what_needs_a_jvm_is_in_one_folder(tmp_path: Path) -> None:
    put(tmp_path, "src/tablewright/engine/spark/b.py", CODE)
    (line,) = found_tests.unproven(tmp_path)
    assert "no tests/unit/engine/spark/test_b.py or tests/spark/test_b.py" in line
    put(tmp_path, "tests/spark/test_b.py", "")
    assert list(found_tests.unproven(tmp_path)) == []


def test_what_a_docstring_names_exists(tmp_path: Path) -> None:
    put(tmp_path, "src/tablewright/a.py", '"""An idea.\n\nTests: tests/unit/c.py, tests/unit/d.py\n"""\n\nx = 1\n')
    put(tmp_path, "tests/unit/c.py", "")
    assert list(found_tests.unproven(tmp_path)) == ["src/tablewright/a.py: names tests/unit/d.py, which does not exist"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a/__init__.py", CODE),
        ("a/b_pb2.py", CODE),
        ("a.py", '"""Names."""\n\nfrom tablewright.b import c\n\n__all__ = ["c"]\n'),
    ],
)
def test_some_need_none(tmp_path: Path, path: str, code: str) -> None:
    put(tmp_path, f"src/tablewright/{path}", code)
    assert list(found_tests.unproven(tmp_path)) == []


@pytest.mark.parametrize("code", ["import lance", "from lance.file import x", "def f():\n    import lancedb"])
def test_a_referee_is_noticed(tmp_path: Path, code: str) -> None:
    put(tmp_path, "tests/unit/test_a.py", code)
    assert len(list(found_tests.refereed(tmp_path))) == 1


@pytest.mark.parametrize("names", ["tests.differential.x import y", "tests.differential import x"])
def test_also_through_a_helper(tmp_path: Path, names: str) -> None:
    put(tmp_path, "tests/property/test_a.py", f"from {names}")
    put(tmp_path, "tests/differential/x.py", "import tests.property.test_a\nimport lance")
    (line,) = found_tests.refereed(tmp_path)
    assert line.startswith("tests/property/test_a.py: imports tests.differential.x, and so lance")
