"""Every Python block of the guide runs, page by page (Spark's page in tests/spark)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = sorted(page.name for page in GUIDE.glob("*.md"))


def run(page: Path, **names: object) -> None:
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("name", [name for name in PAGES if name != "spark.md"])
def test_page(name: str) -> None:
    run(GUIDE / name)


def test_every_page_is_linked() -> None:
    index = (GUIDE / "index.md").read_text()
    assert all(f"({name})" in index for name in PAGES if name != "index.md")


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "docs/guide/index.md", "docs/guide/writers.md"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(target).exists(), target
