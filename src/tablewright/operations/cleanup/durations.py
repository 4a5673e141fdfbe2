"""Time spans as table config spells them: ``14d``, ``3600s``, ``1h 30m``, ``2weeks``. Lance parses the same texts."""

from __future__ import annotations

import re
from datetime import timedelta

from tablewright.errors import InvalidRequest

__all__ = ["format_duration", "parse_duration"]

_SECONDS = {
    "nanos nsec ns": 1e-9,
    "micros usec us": 1e-6,
    "millis msec ms": 1e-3,
    "seconds second secs sec s": 1,
    "minutes minute mins min m": 60,
    "hours hour hrs hr h": 3600,
    "days day d": 86_400,
    "weeks week wks wk w": 604_800,
    "months month M": 2_630_016,
    "years year yrs yr y": 31_557_600,
}
_UNITS = {name: seconds for names, seconds in _SECONDS.items() for name in names.split()}
_PRINTED = {"year": 31_557_600, "month": 2_630_016, "day": 86_400, "h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"\s*([0-9]+)\s*([A-Za-z]+)\s*")


def parse_duration(text: str) -> timedelta:
    """The time span in a text of numbers with units.

    >>> parse_duration("1h 30m"), parse_duration("14days")
    (datetime.timedelta(seconds=5400), datetime.timedelta(days=14))
    """
    if text.strip() == "0":
        return timedelta(0)
    seconds, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _UNITS:
            break
        seconds, at = seconds + int(part[1]) * _UNITS[part[2]], part.end()
    if at < len(text) or not text.strip():
        raise InvalidRequest(f"{text!r} is no time span: write numbers with units, such as 14d, 3600s or 1h 30m.")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise InvalidRequest(f"The time span {text!r} is too long.") from None


def format_duration(seconds: int) -> str:
    """Whole seconds as a text that :func:`parse_duration` reads.

    >>> format_duration(3600), format_duration(14 * 86_400), format_duration(86_430)
    ('1h', '14days', '1day 30s')
    """
    parts = []
    for unit, length in _PRINTED.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}{'s' if count > 1 and len(unit) > 1 else ''}")
    return " ".join(parts) or "0s"
