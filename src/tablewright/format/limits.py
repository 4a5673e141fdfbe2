"""The limits of version, fragment, field and row numbers, and the error when one is used up.

Versions stay below 2**63: from there on a number is that of a detached version, which no reader takes for the latest.
Fragment ids have 32 bits, field ids 31, and the next row id must fit 64. None of them is ever given twice, so a table
whose high-water mark reached the limit, by use or by damage, can't grow.
"""

from __future__ import annotations

from tablewright.errors import UnsupportedFeature

__all__ = ["FIELD_ID_MAX", "FRAGMENT_ID_MAX", "NEXT_ROW_ID_MAX", "VERSION_MAX", "check_limit"]

VERSION_MAX = 2**63 - 1
FRAGMENT_ID_MAX = 2**32 - 1
FIELD_ID_MAX = 2**31 - 1
NEXT_ROW_ID_MAX = 2**64 - 1


def check_limit(what: str, number: int, limit: int) -> None:
    """Raise :class:`UnsupportedFeature` if a change needs a number above its limit.

    >>> check_limit("fragment id", 7, FRAGMENT_ID_MAX)
    >>> check_limit("fragment id", 2**32, FRAGMENT_ID_MAX)
    Traceback (most recent call last):
        ...
    tablewright.errors.UnsupportedFeature: The change needs the fragment id 4294967296, and the format ends at \
4294967295: this table has used all of them. Copy its rows into a new table with write_dataset.
    """
    if number > limit:
        raise UnsupportedFeature(
            f"The change needs the {what} {number}, and the format ends at {limit}: this table has used all of them. "
            "Copy its rows into a new table with write_dataset."
        )
