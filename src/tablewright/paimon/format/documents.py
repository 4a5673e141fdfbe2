"""Named values of one stored document, checked as they are taken, with every problem collected.

Paimon's documents are JSON objects and Avro records: both arrive here as mappings. A reader takes the fields that it
knows, each with the type that it has to have; what is missing or of another type becomes one line in ``problems``, and
a harmless stand-in goes on. When all is taken, :func:`checked` raises everything at once. Fields that nobody took are
no problem: newer writers add some.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tablewright.errors import CorruptTable

__all__ = ["Fields", "checked", "json_object"]


def json_object(data: bytes, path: str) -> dict[str, Any]:
    """The JSON object in a file; :class:`CorruptTable` for anything else.

    >>> json_object(b'{"id": 1}', "snapshot-1")
    {'id': 1}
    """
    try:
        document = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorruptTable(path, (f"it is not JSON: {error}",)) from error
    if not isinstance(document, dict):
        raise CorruptTable(path, (f"it holds a JSON {type(document).__name__}, not an object",))
    return document


def checked(path: str, problems: Sequence[str]) -> None:
    """Raise what was found wrong, all together."""
    if problems:
        raise CorruptTable(path, tuple(problems))


class Fields:
    """One document's values by name. ``place`` says where it lies within its file.

    >>> problems = []
    >>> Fields({"id": "x"}, problems, "entry 3").whole("id")
    0
    >>> problems
    ["entry 3: id is 'x', not a whole number"]
    """

    def __init__(self, values: Mapping[str, Any], problems: list[str], place: str = "") -> None:
        self._values, self._problems = values, problems
        self._place = f"{place}: " if place else ""

    def whole(self, name: str, *, minimum: int | None = None) -> int:
        """A whole number that has to be there."""
        value = self._take(name, int, "a whole number")
        if value is not None and minimum is not None and value < minimum:
            self._problem(f"{name} is {value}, less than {minimum}")
        return 0 if value is None else int(value)

    def whole_or_none(self, name: str) -> int | None:
        """A whole number, if it is there."""
        value = self._take(name, int, "a whole number", required=False)
        return None if value is None else int(value)

    def text(self, name: str) -> str:
        """A text that has to be there."""
        return self._take(name, str, "a text") or ""

    def text_or_none(self, name: str) -> str | None:
        """A text, if it is there."""
        value: str | None = self._take(name, str, "a text", required=False)
        return value

    def binary(self, name: str) -> bytes:
        """Bytes that have to be there."""
        return self._take(name, bytes, "bytes") or b""

    def binary_or_none(self, name: str) -> bytes | None:
        """Bytes, if they are there."""
        value: bytes | None = self._take(name, bytes, "bytes", required=False)
        return value

    def texts(self, name: str, *, required: bool = True) -> tuple[str, ...]:
        """A list of texts; an absent one that is not required is empty."""
        return tuple(self._items(name, str, "texts", required=required) or ())

    def texts_or_none(self, name: str) -> tuple[str, ...] | None:
        """A list of texts, if it is there."""
        items = self._items(name, str, "texts", required=False)
        return None if items is None else tuple(items)

    def objects(self, name: str, *, required: bool = True) -> tuple[dict[str, Any], ...]:
        """A list of documents within this one."""
        return tuple(self._items(name, dict, "objects", required=required) or ())

    def object(self, name: str) -> dict[str, Any]:
        """A document within this one."""
        return self._take(name, dict, "an object") or {}

    def options(self, name: str) -> dict[str, str]:
        """A map from text to text."""
        values = self._take(name, dict, "an object", required=False) or {}
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in values.items()):
            self._problem(f"{name} holds something that is not text")
            return {}
        return dict(values)

    def _take(self, name: str, kind: type, expected: str, *, required: bool = True) -> Any:
        value = self._values.get(name)
        if value is None:
            if required:
                self._problem(f"{name} is missing")
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self._problem(f"{name} is {_short(value)}, not {expected}")
            return None
        return value

    def _items(self, name: str, kind: type, expected: str, *, required: bool) -> list[Any] | None:
        values: list[Any] | None = self._take(name, list, f"a list of {expected}", required=required)
        if values is not None and not all(isinstance(value, kind) for value in values):
            self._problem(f"{name} is {_short(values)}, not a list of {expected}")
            return None
        return values

    def _problem(self, text: str) -> None:
        self._problems.append(self._place + text)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
