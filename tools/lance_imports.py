"""The rule that keeps us independent: ``lance.file`` is imported in one module, no other part of ``lance`` anywhere.

Walks the syntax tree of every module in ``src``, so imports inside functions and ``import_module("lance…")``
count as well. Prints what breaks the rule and ends with status 1, or says that it holds.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
HOME = Path("tablewright/data/encoder.py")
ALLOWED = "lance.file"


def imported_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every dotted name that a module imports, with its line: also dynamic imports of literal names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "lance":
                yield from ((node.lineno, f"lance.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            callee = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if callee in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def violations(source: Path) -> Iterator[str]:
    """One line for each import that breaks the rule."""
    for path in sorted(source.rglob("*.py")):
        module = path.relative_to(source)
        for line, name in imported_names(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if name.split(".")[0] != "lance":
                continue
            codec = name == ALLOWED or name.startswith(ALLOWED + ".")
            if not codec:
                yield f"src/{module}:{line}: imports {name}; only {ALLOWED} may be used"
            elif module != HOME:
                yield f"src/{module}:{line}: imports {name}; only src/{HOME} may do that"


def main() -> int:
    """Check ``src`` and report."""
    found = list(violations(SOURCE))
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(f"lance: only {ALLOWED}, only in src/{HOME}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
