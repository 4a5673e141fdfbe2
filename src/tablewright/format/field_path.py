"""Dotted column paths: ``a.b``, and `` a.`b.c` `` where a name holds a dot (a backtick inside is doubled)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tablewright.errors import InvalidRequest

__all__ = ["format_path", "parse_path"]

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def parse_path(path: str) -> tuple[str, ...]:
    """The names in a path, outermost first.

    >>> parse_path("doc.`page.no`")
    ('doc', 'page.no')
    """
    names: list[str] = []
    at = 0
    while True:
        part = _PART.match(path, at)
        if part is None:
            raise InvalidRequest(
                f"Invalid field path '{path}': a name is missing or a backtick stands alone at character {at}. "
                "Write a.b for a member, and `a.b` in backticks for a name with a dot."
            )
        names.append(part[2] if part[1] is None else part[1].replace("``", "`"))
        at = part.end()
        if at == len(path):
            return tuple(names)
        if path[at] != ".":
            raise InvalidRequest(f"Invalid field path '{path}': expected '.' at character {at}.")
        at += 1


def format_path(names: Iterable[str]) -> str:
    """The path of some names, with backticks where they are needed.

    >>> format_path(("doc", "page.no"))
    'doc.`page.no`'
    """
    return ".".join(
        f"`{name.replace('`', '``')}`" if not name or "." in name or "`" in name else name for name in names
    )
