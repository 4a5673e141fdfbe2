"""What a caller asks of a new index, checked as far as no table is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tablewright.checks import check_flag, check_text, listed, whole_number
from tablewright.errors import InvalidRequest, WrongType
from tablewright.format.index_kinds import BLOOMFILTER, BTREE, ZONEMAP, IndexKind

__all__ = ["IndexRequest"]

_SETTINGS: Mapping[str, tuple[str, ...]] = {
    BTREE.name: ("zone_size",),
    ZONEMAP.name: ("rows_per_zone",),
    BLOOMFILTER.name: ("number_of_items", "probability"),
}
"""The parameters of each kind, under pylance's names."""

_WHOLE = ("zone_size", "rows_per_zone", "number_of_items")
_ROWS_MAX = (1 << 32) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest:
    """An index on one column. Without a ``name`` it is called after the column.

    ``replace``: an index of this name goes. ``train``: rows are indexed now; else the index is empty, and
    ``optimize_indices`` fills it. ``fragment_ids``: only these fragments are indexed. ``settings`` are the kind's own.

    >>> IndexRequest(column="id", kind=ZONEMAP, settings={"rows_per_zone": 0})
    Traceback (most recent call last):
        ...
    tablewright.errors.InvalidRequest: Invalid user input: rows_per_zone must be at least 1, got 0.
    """

    column: str
    kind: IndexKind
    name: str | None = None
    replace: bool = True
    train: bool = True
    fragment_ids: tuple[int, ...] | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text(self.column, "column")
        check_flag(self.replace, "replace")
        check_flag(self.train, "train")
        if self.name is not None:
            _check_name(check_text(self.name, "name"))
        if self.fragment_ids is not None:
            for id in listed(self.fragment_ids, "fragment_ids"):
                whole_number(id, "each of fragment_ids")
        _check_settings(self.kind, self.settings)


def _check_name(name: str) -> None:
    if not name:
        raise InvalidRequest("An index needs a name that is not empty; leave it out to call it after its column.")
    if name.startswith("__lance_"):
        raise InvalidRequest(f"Names of indices that begin with __lance_ belong to the format: {name!r} is refused.")


def _check_settings(kind: IndexKind, settings: Mapping[str, Any]) -> None:
    known = _SETTINGS.get(kind.name, ())
    unknown = sorted(set(settings) - set(known))
    if unknown:
        there = f"It has {', '.join(known)}." if known else "It has none."
        raise InvalidRequest(f"{kind.name} has no parameter {', '.join(unknown)}. {there}")
    for name, value in settings.items():
        if name in _WHOLE:
            whole_number(value, name, minimum=1, maximum=_ROWS_MAX)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongType(f"Invalid user input: {name} must be a number, got {value!r}.")
        elif not 0.0 < value < 1.0:
            raise InvalidRequest(f"Invalid user input: {name} must be between 0 and 1, got {value}.")
