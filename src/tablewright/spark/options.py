"""Options of the data source: texts by name, as Spark brings them, become checked values.

Names are case-insensitive (SQL brings them in lower case). A name that is not known is an error that lists those that
are: an option with a typing error would otherwise silently change what is read or written. Values of unknown options,
and of ``storage.…``, are never printed: they may be credentials.

``columns`` is a list of names with commas in between, or JSON: a list of names, or an object of names and expressions.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tablewright.errors import InvalidRequest

__all__ = ["LATEST", "Place", "ReadOptions", "WriteOptions", "of_stream", "read_options", "write_options"]

STORAGE = "storage."
LATEST = "latest"
_PLACE = ("path", "branch")
_READ = ("columns", "filter", "version", "tag", "asof", "with_row_id", "with_row_address", "batch_size")
_STREAM = ("changes", "start_version", "max_versions_per_trigger")
_WRITE = ("stable_row_ids", "max_rows_per_file", "data_storage_version", "commit_message")
_OF_SPARK = ("checkpointlocation",)  # Spark's own, which a stream's writer gets too


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a table is. ``storage`` are the options of its store."""

    uri: str
    branch: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read, and of which version. ``start_version`` is a number or ``"latest"``, for streams."""

    place: Place
    columns: tuple[str, ...] | Mapping[str, str] | None = None
    filter: str | None = None
    version: int | None = None
    tag: str | None = None
    asof: str | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    batch_size: int | None = None
    changes: bool = False
    start_version: int | str | None = None
    max_versions_per_trigger: int | None = None

    def __post_init__(self) -> None:
        named = [name for name in ("version", "tag", "asof") if getattr(self, name) is not None]
        if len(named) > 1 or (self.place.branch is not None and self.tag is not None):
            raise InvalidRequest(
                f"The options {', '.join(named or ['branch', 'tag'])} name several versions: give one of version, tag "
                "and asof; version and asof may be on a branch."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write may choose; ``None`` is the default of :class:`~tablewright.operations.write.WriteSettings`."""

    place: Place
    stable_row_ids: bool = False
    max_rows_per_file: int | None = None
    data_storage_version: str | None = None
    commit_message: str | None = None


def of_stream(given: Mapping[str, str]) -> bool:
    """Whether options are those of a stream's reader for certain: a stream need not have any of its own.

    >>> of_stream({"path": "/t", "Changes": "true"}), of_stream({"path": "/t"})
    (True, False)
    """
    return any(name.lower() in _STREAM for name in given)


def read_options(given: Mapping[str, str], *, streams: bool = False) -> ReadOptions:
    """Options for reading; those of streams only where ``streams``.

    >>> read_options({"path": "/t", "columns": "id, text", "with_row_id": "true"}).columns
    ('id', 'text')
    >>> read_options({"path": "/t", "filters": "id > 3"})
    Traceback (most recent call last):
    tablewright.errors.InvalidRequest: Unknown option 'filters' for reading: did you mean 'filter'? Known options: ...
    """
    texts = _known(given, (*_PLACE, *_READ, *(_STREAM if streams else ())), "a stream" if streams else "reading")
    return ReadOptions(
        place=_place(texts),
        columns=_columns(texts.get("columns")),
        filter=texts.get("filter"),
        version=_number(texts, "version"),
        tag=texts.get("tag"),
        asof=texts.get("asof"),
        with_row_id=_flag(texts, "with_row_id"),
        with_row_address=_flag(texts, "with_row_address"),
        batch_size=_number(texts, "batch_size"),
        changes=_flag(texts, "changes"),
        start_version=_start(texts),
        max_versions_per_trigger=_number(texts, "max_versions_per_trigger"),
    )


def write_options(given: Mapping[str, str], *, streams: bool = False) -> WriteOptions:
    """Options for writing.

    >>> write_options({"PATH": "/t", "stable_row_ids": "true", "storage.aws_region": "eu"}).stable_row_ids
    True
    """
    texts = _known(given, (*_PLACE, *_WRITE), "writing", ignored=_OF_SPARK if streams else ())
    return WriteOptions(
        place=_place(texts),
        stable_row_ids=_flag(texts, "stable_row_ids"),
        max_rows_per_file=_number(texts, "max_rows_per_file"),
        data_storage_version=texts.get("data_storage_version"),
        commit_message=texts.get("commit_message"),
    )


def _known(
    given: Mapping[str, str], known: Collection[str], what: str, *, ignored: Collection[str] = ()
) -> dict[str, str]:
    """The options by lower-case names; an unknown one is an error."""
    texts = {name.lower(): value for name, value in given.items()}
    unknown = [name for name in texts if name not in known and name not in ignored and not name.startswith(STORAGE)]
    if not unknown:
        return texts
    name = unknown[0]
    if name in _WRITE or name in _READ or name in _STREAM:
        why = f"The option {name!r} does not belong to {what}."
    else:
        close = difflib.get_close_matches(name, known, n=1)
        why = f"Unknown option {name!r} for {what}" + (f": did you mean {close[0]!r}?" if close else ".")
    raise InvalidRequest(f"{why} Known options: {', '.join(known)}, {STORAGE}<name>.")


def _place(texts: Mapping[str, str]) -> Place:
    if not texts.get("path"):
        raise InvalidRequest('The table\'s path is missing: load("/path") or option("path", "/path").')
    storage = {name.removeprefix(STORAGE): value for name, value in texts.items() if name.startswith(STORAGE)}
    return Place(uri=texts["path"], branch=texts.get("branch"), storage=storage)


def _columns(text: str | None) -> tuple[str, ...] | dict[str, str] | None:
    if text is None:
        return None
    if not text.lstrip().startswith(("[", "{")):
        return tuple(name.strip() for name in text.split(","))
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"The option columns is no JSON: {error}.") from error
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    if isinstance(value, dict) and all(isinstance(expression, str) for expression in value.values()):
        return value
    raise InvalidRequest("The option columns is a JSON list of names, or an object of names and SQL expressions.")


def _number(texts: Mapping[str, str], name: str) -> int | None:
    text = texts.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal():
        hint = " A tag has an option of its own, tag." if name == "version" else ""
        raise InvalidRequest(f"The option {name} must be a whole number, got {text!r}.{hint}")
    number = int(text)
    if number < 1:
        raise InvalidRequest(f"The option {name} must be at least 1, got {number}.")
    return number


def _flag(texts: Mapping[str, str], name: str) -> bool:
    text = texts.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidRequest(f"The option {name} must be true or false, got {text!r}.")
    return text == "true"


def _start(texts: Mapping[str, str]) -> int | str | None:
    return LATEST if texts.get("start_version", "").strip().lower() == LATEST else _number(texts, "start_version")
