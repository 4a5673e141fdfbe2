"""ARCHITECTURE.md is true: what it names exists, every package is in its table, and it stays short."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tablewright"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
WORDS_MAX = 2000

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and "`" in line.split("|")[1]
]
PATH = re.compile(r"[\w/]+(?:\.py|/)")
PACKAGES = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
MODULES = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def places(row: list[str]) -> list[Path]:
    """The packages and modules that a row of the table is about."""
    return [SOURCE / name for name in quoted(row[0])]


def defined(place: Path) -> set[str]:
    """The names that a module or the modules of a package define or import at their top."""
    found: set[str] = set()
    for path in [place] if place.is_file() else place.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                found.update(alias.asname or alias.name for alias in node.names)
            elif isinstance(node, ast.Assign):
                found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return found


def test_there_is_a_table() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists(row: list[str]) -> None:
    homes = places(row)
    for place in homes:
        assert place.exists(), f"there is no {place.relative_to(ROOT)}"
    names = set().union(*(defined(place) for place in homes))
    for cell in row[1:]:
        for name in quoted(cell):
            if PATH.fullmatch(name):
                assert any((home / name).exists() for home in (SOURCE, *homes)), f"{row[0]} has no {name}"
            elif name.isidentifier() and cell == row[-1]:
                assert name in names, f"{row[0]} has no {name}"


def test_every_package_has_a_row() -> None:
    named = {place.relative_to(SOURCE).parts[0] for row in ROWS for place in places(row)}
    assert set(PACKAGES) - named == set()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"(?:`|\*\*)([\w/]+\.py)(?:`|\*\*)", TEXT))))
def test_every_module_in_the_text_exists(name: str) -> None:
    assert (ROOT / name).exists() or any(f"/{module}".endswith(f"/{name}") for module in MODULES)


def test_it_takes_ten_minutes() -> None:
    assert len(TEXT.split()) < WORDS_MAX
