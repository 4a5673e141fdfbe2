"""Tests are found by path: that of ``src/tablewright/a/b.py`` is ``tests/unit/a/test_b.py``.

What needs a JVM is in one folder: the test of ``engine/spark/b.py`` may be ``tests/spark/test_b.py``. A module that is
proven elsewhere says so in its docstring, in a line ``Tests: tests/unit/a/test_c.py, tests/spark.``; after a comma it
may go on in the next line, and paths may be quoted. Modules that only import names for others need no test.

And unit and property tests ask no referee: they don't import pylance or LanceDB, nor test modules that do.

Prints what breaks a rule and ends with status 1, or says that both hold.

Tests: tests/unit/test_found_tests.py
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/tablewright")
UNREFEREED = (Path("tests/unit"), Path("tests/property"))
REFEREES = frozenset({"lance", "lancedb"})
GENERATED = "_pb2"
_LINE = re.compile(r"^Tests: (.+(?:,\n.+)*)$", re.MULTILINE)


def mirrored(module: Path) -> list[Path]:
    """Where the test of a module below ``src/tablewright`` is looked for."""
    inside = module.relative_to(PACKAGE)
    name = f"test_{inside.stem.strip('_')}.py"
    with_jvm = [Path("tests/spark") / name] if "spark" in inside.parts[:-1] else []
    return [Path("tests/unit") / inside.parent / name, *with_jvm]


def named_tests(docstring: str) -> list[str]:
    """The paths in the ``Tests:`` line of a docstring."""
    return [path.strip("`. \n") for line in _LINE.findall(docstring) for path in line.split(",")]


def unproven(root: Path) -> Iterator[str]:
    """Modules without a test that can be found, and tests that docstrings name and that do not exist."""
    for path in sorted((root / PACKAGE).rglob("*.py")):
        module = path.relative_to(root)
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        named = named_tests(ast.get_docstring(tree) or "")
        for test in named:
            if not (root / test).exists():
                yield f"{module}: names {test}, which does not exist"
        places = mirrored(module)
        if not named and _needs_test(path, tree) and not any((root / place).exists() for place in places):
            looked = " or ".join(map(str, places))
            yield f"{module}: there is no {looked}, and its docstring has no line `Tests: …`"


def _needs_test(path: Path, tree: ast.Module) -> bool:
    return path.stem != "__init__" and not path.stem.endswith(GENERATED) and _does_something(tree)


def _does_something(tree: ast.Module) -> bool:
    passive = (ast.Import, ast.ImportFrom, ast.Expr)
    return any(
        not isinstance(node, passive) and not (isinstance(node, ast.Assign) and _is_dunder(node.targets[0]))
        for node in tree.body
    )


def _is_dunder(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id.startswith("__")


def refereed(root: Path) -> Iterator[str]:
    """Unit and property tests that import a referee, directly or through other test modules."""
    for folder in UNREFEREED:
        for path in sorted((root / folder).rglob("*.py")):
            for way in _ways(root, path.relative_to(root), ()):
                yield f"{path.relative_to(root)}: imports {way}; tests with a referee live in tests/differential"


def _ways(root: Path, module: Path, seen: tuple[Path, ...]) -> Iterator[str]:
    for name in _imported(root / module):
        if name.split(".")[0] in REFEREES:
            yield name
        inner = Path(*name.split(".")).with_suffix(".py")
        if name.startswith("tests.") and inner not in seen and (root / inner).exists():
            yield from (f"{name}, and so {way}" for way in _ways(root, inner, (*seen, module)))


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update(
                (node.module, *(f"{node.module}.{alias.name}" for alias in node.names if "tests" in node.module))
            )
    return found


def main() -> int:
    """Check the repository and report."""
    found = [*unproven(ROOT), *refereed(ROOT)]
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print("tests: every module's are found, and unit and property tests ask no referee")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
