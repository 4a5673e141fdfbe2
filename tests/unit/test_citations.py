"""A citation leads somewhere: every page of ``docs`` that code or documentation names exists, and so does the heading.

A citation is ``docs/….md``, with ``#anchor`` where it means one section; in Markdown also a relative link. Anchors are
those that GitHub makes of headings. What a reader of the repository can't open (notes that were kept outside it) may
not be cited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "docs", "tools", "benchmarks", "examples")
SUFFIXES = frozenset({".py", ".md", ".proto", ".pyi", ".toml", ".yml", ".yaml", ".sh"})

CITATION = re.compile(r"\bdocs/[\w./-]+?\.md(?:#[\w-]+)?")
LINK = re.compile(r"\]\(([^)\s:#]*\.md)?(#[\w-]+)?\)")
OUTSIDE = re.compile(r"[Ff]act\s+[Ss]heet|[Ss]pec/[\w./-]+|[Dd]esign\.md|[Dd]esign §|[Ss]pec §|§ ?\d")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


@cache
def anchors(page: str) -> set[str]:
    """The anchors of a Markdown page by GitHub's rule: lower case, punctuation out, spaces to hyphens, then -1, -2."""
    found: set[str] = set()
    counts: dict[str, int] = {}
    for heading in HEADING.findall(FENCE.sub("", page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = counts.get(slug, 0)
        counts[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def unresolved(text: str, where: Path, root: Path) -> Iterator[str]:
    """The citations in ``text`` that lead nowhere; ``where`` is the file that it is from."""
    targets = [(citation, root / citation.partition("#")[0], citation.partition("#")[2]) for citation in cited(text)]
    if where.suffix == ".md":
        targets += [
            (page + anchor, where.parent / page if page else where, anchor[1:])
            for page, anchor in LINK.findall(FENCE.sub("", text))
            if page or anchor
        ]
    for citation, page, anchor in targets:
        if not page.is_file():
            yield f"{citation}: there is no such file"
        elif anchor and anchor not in anchors(page.read_text()):
            yield f"{citation}: the page has no such heading, only {sorted(anchors(page.read_text()))}"


def cited(text: str) -> list[str]:
    return CITATION.findall(text)


def files() -> Iterable[Path]:
    inside = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")))
    return [
        path for path in (*inside, *sorted(ROOT.glob("*.md"))) if path.suffix in SUFFIXES and path != Path(__file__)
    ]


def test_every_citation_resolves() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path in files()
        for problem in unresolved(path.read_text(), path, ROOT)
    ]
    assert not broken, "\n".join(broken)


def test_code_cites_the_pages() -> None:
    """The search finds something: nearly every module of the format package says where its format is described."""
    modules = [path for path in files() if path.is_relative_to(ROOT / "src") and cited(path.read_text())]
    assert len(modules) > 60


def test_nothing_outside_the_repository_is_cited() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}" for path in files() for match in OUTSIDE.finditer(path.read_text())
    ]
    assert not found, "\n".join(found)


PAGE = """# A page
## What `it` does, in §-free words
```
# no heading
```
## Twice
## Twice
"""


def test_anchors_follow_githubs_rule() -> None:
    assert anchors(PAGE) == {"a-page", "what-it-does-in--free-words", "twice", "twice-1"}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.py", "see docs/page.md#twice-1", None),
        ("a.py", "see ``docs/page.md``.", None),
        ("a.py", "see docs/page.md#thrice", "docs/page.md#thrice: the page has no such heading"),
        ("a.py", "see docs/pages.md", "docs/pages.md: there is no such file"),
        ("docs/b.md", "[there](page.md#a-page), [here](#b)\n# B\n", None),
        ("docs/b.md", "[there](page.md#b)", "page.md#b: the page has no such heading"),
        ("docs/b.md", "[there](../page.md)", "../page.md: there is no such file"),
    ],
)
def test_the_check_can_fail(tmp_path: Path, name: str, text: str, problem: str | None) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    (tmp_path / name).write_text(text)
    found = list(unresolved(text, tmp_path / name, tmp_path))
    assert not found if problem is None else len(found) == 1 and found[0].startswith(problem)


@pytest.mark.parametrize("text", ["(fact sheet §2.1)", "Fact\nsheet", "spec/index-files.md", "design §3", "(§7.1)"])
def test_notes_outside_the_repository_are_noticed(text: str) -> None:
    assert OUTSIDE.search(text)
