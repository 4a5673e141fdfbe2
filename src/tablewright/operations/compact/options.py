"""The options of a compaction: the argument, else the table's config (``lance.compaction.*``), else the default.

Tests: ``tests/unit/operations/compact/test_options.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tablewright.checks import whole_number
from tablewright.errors import InvalidRequest, UnsupportedFeature

__all__ = ["CONFIG_PREFIX", "CompactionOptions", "compaction_options"]

CONFIG_PREFIX = "lance.compaction."

_MODES = ("reencode", "try_binary_copy", "force_binary_copy")
_COUNTS = (
    "target_rows_per_fragment",
    "max_rows_per_group",
    "max_bytes_per_file",
    "num_threads",
    "batch_size",
    "io_buffer_size",
    "binary_copy_read_batch_bytes",
    "max_source_fragments",
    "max_source_rows",
    "max_source_bytes",
)
_SHARES = ("materialize_deletions_threshold", "materialize_columns_threshold")
_BOOLS = ("materialize_deletions", "defer_index_remap")
_NOT_IN_CONFIG = ("num_threads", "excluded_fragment_ids", "io_buffer_size")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """What is compacted, and into what.

    A fragment is written again alone if more than ``materialize_deletions_threshold`` of its rows are deleted, or if
    more than ``materialize_columns_threshold`` of its bytes belong to columns that were dropped or rewritten in place.
    Fragments with fewer rows than ``target_rows_per_fragment`` are written together with their neighbours. The
    ``max_source`` limits bound one run: whole tasks are taken, oldest first, until the next would exceed a limit.
    ``max_rows_per_group``, ``io_buffer_size`` and ``binary_copy_read_batch_bytes`` are accepted for pylance's sake and
    have no effect on files of version 2.

    >>> CompactionOptions(target_rows_per_fragment=1000).materialize_deletions_threshold
    0.1
    """

    target_rows_per_fragment: int = 1024 * 1024
    max_rows_per_group: int = 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    materialize_columns_threshold: float = 0.3
    defer_index_remap: bool = False
    num_threads: int | None = None
    batch_size: int | None = None
    io_buffer_size: int | None = None
    compaction_mode: str = "reencode"
    binary_copy_read_batch_bytes: int | None = None
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: tuple[int, ...] = ()
    data_storage_version: str | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if (value := getattr(self, name)) is not None:
                whole_number(value, name, minimum=1)
        for name in _SHARES:
            _check_share(name, getattr(self, name))
        for name in _BOOLS:
            if not isinstance(getattr(self, name), bool):
                raise InvalidRequest(f"{name} must be True or False, not {getattr(self, name)!r}.")
        for id in self.excluded_fragment_ids:
            whole_number(id, "excluded_fragment_ids")
        self._check_mode()

    def _check_mode(self) -> None:
        if self.compaction_mode not in _MODES:
            choices = ", ".join(map(repr, _MODES))
            raise InvalidRequest(f"compaction_mode must be one of {choices}, not {self.compaction_mode!r}.")
        if self.compaction_mode == "force_binary_copy":
            raise UnsupportedFeature(
                "compaction_mode='force_binary_copy': this release always encodes rows again. Use 'try_binary_copy' to "
                "allow that, or 'reencode'."
            )

    def to_dict(self) -> dict[str, Any]:
        """The options as JSON-able values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {"excluded_fragment_ids": list(self.excluded_fragment_ids)}


def compaction_options(config: Mapping[str, str], given: Mapping[str, Any]) -> CompactionOptions:
    """The options of a call: ``given`` where it is not ``None``, else what the table's config says.

    >>> compaction_options({"lance.compaction.target_rows_per_fragment": "500"}, {}).target_rows_per_fragment
    500
    """
    known = {each.name for each in fields(CompactionOptions)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise InvalidRequest(f"Invalid compaction option: {unknown[0]}. Known ones: {', '.join(sorted(known))}.")
    asked = {name: value for name, value in given.items() if value is not None}
    stored = {
        name: _parsed(name, config[CONFIG_PREFIX + name])
        for name in known.difference(_NOT_IN_CONFIG, asked)
        if CONFIG_PREFIX + name in config
    }
    if "excluded_fragment_ids" in asked:
        asked["excluded_fragment_ids"] = _ids(asked["excluded_fragment_ids"])
    return CompactionOptions(**(stored | asked))


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidRequest(f"{name} must be a share from 0 to 1, not {value!r}.")


def _ids(value: Any) -> tuple[int, ...]:
    try:
        return tuple(value)
    except TypeError:
        raise InvalidRequest(f"excluded_fragment_ids must be a list of fragment ids, not {value!r}.") from None


def _parsed(name: str, text: str) -> Any:
    """A value of the table's config, which are all texts."""
    try:
        if name in _COUNTS:
            return int(text)
        if name in _SHARES:
            return float(text)
        return _WORDS[text.strip().lower()] if name in _BOOLS else text
    except (ValueError, KeyError):
        raise InvalidRequest(
            f"The table's config has {CONFIG_PREFIX}{name} = {text!r}, which is no value for it. Correct it with "
            f"update_config, or give {name}=."
        ) from None
