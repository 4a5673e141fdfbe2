"""Sizes as Paimon's options spell them: ``2 mb``, ``128mb``, ``1024``."""

from __future__ import annotations

import re

from tablewright.errors import InvalidRequest

__all__ = ["parse_size"]

_SIZE = re.compile(r"\s*([0-9]{1,19})\s*([a-z]*)\s*", re.IGNORECASE)
_POWERS = {
    "": 0,
    "b": 0,
    "bytes": 0,
    "k": 1,
    "kb": 1,
    "kibibytes": 1,
    "m": 2,
    "mb": 2,
    "mebibytes": 2,
    "g": 3,
    "gb": 3,
    "gibibytes": 3,
    "t": 4,
    "tb": 4,
    "tebibytes": 4,
}


def parse_size(text: str | None, default: int) -> int:
    """Bytes of a size; ``default`` where there is none. All units are powers of 1024.

    >>> parse_size("2 mb", 0), parse_size(None, 7)
    (2097152, 7)
    """
    if text is None:
        return default
    match = _SIZE.fullmatch(text)
    if match is None or match[2].lower() not in _POWERS:
        raise InvalidRequest(f"The table has an option of size {text!r}: a size looks like 2 mb.")
    unit: int = 1 << 10 * _POWERS[match[2].lower()]
    return int(match[1]) * unit
