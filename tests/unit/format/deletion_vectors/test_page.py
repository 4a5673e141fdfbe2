"""The page about deletion vectors: its Python runs, and the modules that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "format" / "deletion-vectors.md"


def test_the_page_runs() -> None:
    text, names = PAGE.read_text(), dict[str, object]()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    for module in re.findall(r"`((?:format|paimon)/[\w/]+\.py)`", text):
        assert (ROOT / "src" / "tablewright" / module).exists(), module
