"""Typed access to the fields of a stored document, collecting every problem.

Paimon's documents are JSON objects and Avro records: both arrive here as mappings. A reader takes the fields that it
knows, each with the type that it has to have; what is missing or of another type becomes one line in ``problems``, and
a default value is returned. At the end :func:`checked` raises all problems at once. Unknown fields are no problem:
newer writers add some.

Names of files are read by :meth:`Fields.file_name`, which refuses paths that lead out of their directory. The address
of a file that is elsewhere on purpose is read by ``address_or_none``.

Tests: ``tests/unit/paimon/test_hostile.py``, ``tests/unit/paimon/test_metadata.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tablewright.errors import CorruptTable
from tablewright.format.inside import stays_inside

__all__ = ["Fields", "checked", "json_object", "names_a_file"]

_DEPTH_MAX = 128
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BEFORE_THE_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?(?://[^/]*)?/")


def json_object(data: bytes, path: str) -> dict[str, Any]:
    """The JSON object in a file; :class:`CorruptTable` for anything else.

    >>> json_object(b'{"id": 1}', "snapshot-1")
    {'id': 1}
    """
    try:
        text = data.decode("utf-8")
        document = json.loads(text)
        if "\\u" in text:  # half a pair of surrogates is no character, and could never be written again
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CorruptTable(path, (f"it is not JSON: {error}",)) from error
    if not isinstance(document, dict):
        raise CorruptTable(path, (f"it holds a JSON {type(document).__name__}, not an object",))
    if _is_deeper_than(document, _DEPTH_MAX):
        raise CorruptTable(path, (f"its values are nested more than {_DEPTH_MAX} times",))
    return document


def names_a_file(text: str) -> bool:
    """Whether a text can be the path of a file below some directory, and does not lead out of it.

    >>> names_a_file("data-1.parquet"), names_a_file("../data-1.parquet"), names_a_file("/etc/passwd")
    (True, False, False)
    """
    return stays_inside(text) and not _CONTROL.search(text)


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

    def whole(self, name: str, *, minimum: int | None = None, maximum: int | None = None) -> int:
        """A whole number that has to be there."""
        value = self._take(name, int, "a whole number")
        if value is not None and minimum is not None and value < minimum:
            self._problem(f"{name} is {value}, less than {minimum}")
        if value is not None and maximum is not None and value > maximum:
            self._problem(f"{name} is {value}, more than {maximum}")
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

    def file_name(self, name: str) -> str:
        """The name of a file, which has to be there and to stay within its directory."""
        text: str | None = self._take(name, str, "a text")
        if text is not None and not names_a_file(text):
            self._problem(f"{name} is {_short(text)}, which names no file of its directory")
        return text or ""

    def file_name_or_none(self, name: str) -> str | None:
        """The name of a file, if it is there."""
        return None if self._values.get(name) is None else self.file_name(name)

    def address_or_none(self, name: str) -> str | None:
        """The address of a file that lies anywhere, if it is there: a URL, or an absolute path."""
        text = self.text_or_none(name)
        if text is not None:
            start = _BEFORE_THE_PATH.match(text)
            if start is None or not names_a_file(text[start.end() :]):
                self._problem(f"{name} is {_short(text)}, which is no address of a file")
        return text

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


def _is_deeper_than(document: Any, depth: int) -> bool:
    """Whether values are nested deeper than the limit; level by level, without recursion."""
    level = [document]
    for _ in range(depth):
        level = [
            part
            for value in level
            if isinstance(value, dict | list)
            for part in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
