"""Every Python block of the guide runs, page by page (Spark's page in tests/spark).

Where a block of ``text`` follows, it is what the block prints; ``…`` in it matches anything up to the end of the line.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
PAGES = sorted(page.name for page in GUIDE.glob("*.md"))


def run(page: Path, **names: object) -> None:
    for block, expected in BLOCK.findall(page.read_text()):
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, str(page), "exec"), names)
        if expected:
            pattern, output = re.escape(expected).replace("…", ".*"), printed.getvalue()
            assert re.fullmatch(pattern, output), f"{page.name} shows\n{expected}\nand not\n{output}"


@pytest.mark.parametrize("name", [name for name in PAGES if name != "spark.md"])
def test_page(name: str) -> None:
    run(GUIDE / name)


PYTHON = re.compile(r"```python[^\n]*\n(.*?)```", re.DOTALL)
WITH_CODE = sorted(str(page.relative_to(ROOT)) for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])


def _names(block: str) -> tuple[set[str], set[str]]:
    """The names that a block defines, and those that it uses."""
    defined: set[str] = set()
    used: set[str] = set()
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            defined.add(node.name)
    return defined, used


@pytest.mark.parametrize("page", WITH_CODE)
def test_a_page_uses_no_name_that_it_does_not_define(page: str) -> None:
    known = set(dir(builtins))
    for block in PYTHON.findall((ROOT / page).read_text()):
        defined, used = _names(block)
        known |= defined
        assert used <= known, f"{sorted(used - known)} in:\n{block}"


def test_every_page_is_linked() -> None:
    index = (GUIDE / "index.md").read_text()
    assert all(f"({name})" in index for name in PAGES if name != "index.md")


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "docs/guide/index.md", "docs/guide/writers.md"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(target).exists(), target
