"""What a LIKE pattern says that an index can be asked: how the text begins, or what is in it.

Tests: ``tests/unit/expressions/test_patterns.py``.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.types as at

from tablewright.expressions.queries import Contains, IsIn, StartsWith

__all__ = ["pattern_query"]

_WILD = re.compile(r"[%_\\]")


def pattern_query(pattern: str, kind: pa.DataType) -> tuple[StartsWith | Contains | IsIn, bool] | None:
    r"""The condition on a text column, and whether it says all that the pattern says; ``None`` if it says nothing.

    From a backslash on, which takes the meaning of the next character, the pattern is left to the filter.

    >>> pattern_query("ab%", pa.string()), pattern_query("%b%c%", pa.string())
    ((StartsWith(prefix='ab'), True), (Contains(text='b'), False))
    >>> pattern_query(r"a\_b%", pa.string()), pattern_query("_%", pa.string())
    ((StartsWith(prefix='a'), False), None)
    """
    if not (at.is_string(kind) or at.is_large_string(kind)):
        return None
    wild = _WILD.search(pattern)
    if wild is None:
        return IsIn(pa.array([pattern], kind)), True
    prefix, rest = pattern[: wild.start()], pattern[wild.start() :]
    if prefix:
        return StartsWith(prefix), not rest.strip("%")
    known = pattern if (escape := pattern.find("\\")) < 0 else pattern[:escape]
    longest = max(re.split("[%_]", known), key=len)
    if not longest:
        return None
    return Contains(longest), pattern.strip("%") == longest and pattern[:1] == "%" == pattern[-1:]
