"""The files behind tags and branches, as frozen values and as JSON.

Written as pylance writes them: two spaces of indent, these keys in this order. Older releases left some keys out, and
newer ones may add some: what is missing reads as ``None`` or empty, what is unknown survives a change.

Format: ``docs/format/table.md#tags-and-branches``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from tablewright.errors import CorruptTable, InvalidRequest

__all__ = ["Branch", "Tag", "decode_branch", "decode_tag", "encode_branch", "encode_tag", "texts"]

T = TypeVar("T")
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A name for a version. Times are nanoseconds since the epoch, ``None`` if an older release left them out."""

    branch: str | None
    version: int
    created_at_ns: int | None
    updated_at_ns: int | None
    manifest_size: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Where a branch began. ``identifier`` is the path from main: (version, random id) of each branching.

    ``manifest_size`` is that of the version it began from, ``created_at_s`` counts seconds since the epoch.
    """

    parent_branch: str | None
    identifier: tuple[tuple[int, str], ...]
    parent_version: int
    created_at_s: int
    manifest_size: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict)


def encode_tag(tag: Tag) -> bytes:
    """A tag as its file holds it."""
    document: dict[str, Any] = {"branch": tag.branch, "version": tag.version}
    if tag.created_at_ns is not None:
        document["createdAt"] = _time_text(tag.created_at_ns)
    if tag.updated_at_ns is not None:
        document["updatedAt"] = _time_text(tag.updated_at_ns)
    document |= {"manifestSize": tag.manifest_size, "metadata": dict(tag.metadata)}
    return _encode(document | dict(tag.unknown))


def decode_tag(data: bytes, path: str) -> Tag:
    """The tag in a file; :class:`CorruptTable` naming ``path`` for anything else."""
    return _decode(data, path, _tag_of)


def _tag_of(taken: _Taken) -> Tag:
    return Tag(
        branch=taken.optional("branch", str),
        version=taken.number("version"),
        created_at_ns=_time_ns(taken.optional("createdAt", str)),
        updated_at_ns=_time_ns(taken.optional("updatedAt", str)),
        manifest_size=taken.number("manifestSize"),
        metadata=texts(taken.optional("metadata", dict) or {}),
        unknown=taken.rest(),
    )


def encode_branch(branch: Branch) -> bytes:
    """The description of a branch as its file holds it."""
    document = {
        "parentBranch": branch.parent_branch,
        "identifier": {"version_mapping": [list(step) for step in branch.identifier]},
        "parentVersion": branch.parent_version,
        "createAt": branch.created_at_s,
        "manifestSize": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
    return _encode(document | dict(branch.unknown))


def decode_branch(data: bytes, path: str) -> Branch:
    """The description in a file; :class:`CorruptTable` naming ``path`` for anything else."""
    return _decode(data, path, _branch_of)


def _branch_of(taken: _Taken) -> Branch:
    identifier = taken.optional("identifier", dict) or {}
    return Branch(
        parent_branch=taken.optional("parentBranch", str),
        identifier=tuple((int(version), str(name)) for version, name in identifier.get("version_mapping", ())),
        parent_version=taken.number("parentVersion"),
        created_at_s=taken.number("createAt"),
        manifest_size=taken.number("manifestSize"),
        metadata=texts(taken.optional("metadata", dict) or {}),
        unknown=taken.rest(),
    )


class _Taken:
    """A JSON object whose keys are consumed one by one; :meth:`rest` returns those that are left."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._rest = dict(document)

    def optional(self, key: str, kind: type[T]) -> T | None:
        value = self._rest.pop(key, None)
        if value is not None and not isinstance(value, kind):
            raise ValueError(f"{key!r} is not a {kind.__name__}")
        return value

    def number(self, key: str) -> int:
        value = self.optional(key, int)
        if value is None or value < 0 or isinstance(value, bool):
            raise ValueError(f"{key!r} is not a number from 0 up")
        return value

    def rest(self) -> dict[str, Any]:
        return self._rest


def _encode(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2, ensure_ascii=False).encode()


def _decode(data: bytes, path: str, take: Callable[[_Taken], T]) -> T:
    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            raise ValueError("it is not a JSON object")
        return take(_Taken(document))
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise CorruptTable(path, (f"not the description of a tag or branch: {error}",)) from error


def texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    """``metadata`` if it maps text to text."""
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in metadata.items()):
        raise InvalidRequest("Metadata of tags and branches map text to text.")
    return dict(metadata)


def _time_text(time_ns: int) -> str:
    """RFC 3339 in UTC, with as many decimals as needed, in threes."""
    seconds, nanoseconds = divmod(time_ns, _NS)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    decimals = f".{nanoseconds:09}"
    while decimals.endswith("000"):
        decimals = decimals[:-3]
    return text + ("" if decimals == "." else decimals) + "Z"


def _time_ns(text: str | None) -> int | None:
    if text is None:
        return None
    body, offset = (text[:-1], "+00:00") if text.endswith(("Z", "z")) else (text[:-6], text[-6:])
    whole, _, decimals = body.partition(".")
    moment = datetime.fromisoformat(whole + offset)
    return int(moment.timestamp()) * _NS + int((decimals + "0" * 9)[:9] or 0)
