"""Checks of what callers hand in: each returns the value in its plain form, or says what was given and expected."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tablewright.errors import InvalidRequest, WrongType

__all__ = ["byte_string", "check_callable", "check_flag", "check_text", "listed", "whole_number"]

_BYTE_MAX = 255


def whole_number(value: Any, name: str, *, minimum: int | None = 0, maximum: int | None = None) -> int:
    """An ``int`` out of anything that is one, numpy's included; truth values and floats are not.

    >>> whole_number("3", "limit")
    Traceback (most recent call last):
    tablewright.errors.WrongType: Invalid user input: limit must be a whole number, got '3' of type str.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise _wrong(value, name, "a whole number") from None
    if minimum is not None and number < minimum:
        expected = "non-negative" if minimum == 0 else f"at least {minimum}"
        raise InvalidRequest(f"Invalid user input: {name} must be {expected}, got {number}.")
    if maximum is not None and number > maximum:
        raise InvalidRequest(f"Invalid user input: {name} must be at most {maximum}, got {number}.")
    return number


def check_flag(value: Any, name: str) -> None:
    """Refuse what is neither ``True`` nor ``False`` (nor ``None``, which leaves it open)."""
    if value is not None and not isinstance(value, bool | np.bool_):
        raise _wrong(value, name, "True or False")


def check_text(value: Any, name: str) -> str:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise _wrong(value, name, "text")
    return value


def check_callable(value: Any, name: str, expected: str) -> None:
    """Refuse what can't be called; ``None`` leaves it open."""
    if value is not None and not callable(value):
        raise _wrong(value, name, expected)


def listed(value: Any, name: str) -> list[Any]:
    """The items of a list, or of another iterable that is no text."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _wrong(value, name, "a list")
    try:
        return list(value)
    except TypeError:  # numpy's arrays without dimensions say that they can be iterated
        raise _wrong(value, name, "a list") from None


def byte_string(value: Any, name: str) -> bytes:
    """Bytes, or a list of byte values as JSON holds them. A number is neither, though ``bytes(9)`` would take it."""
    if isinstance(value, bytes):
        return value
    return bytes(whole_number(byte, f"each byte of {name}", maximum=_BYTE_MAX) for byte in listed(value, name))


def _wrong(value: Any, name: str, expected: str) -> WrongType:
    given = repr(value)
    given = given if len(given) <= 80 else f"{given[:77]}..."
    return WrongType(f"Invalid user input: {name} must be {expected}, got {given} of type {type(value).__name__}.")
