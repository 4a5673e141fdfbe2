"""The journal of a cleanup: the versions and files that it is about to remove, kept while it is under way.

Cleanup removes manifests first, so that every version that is listed can be read whole. But once the manifests are
gone, nothing says that their files are dead rather than new. So both are written to ``_cleanup/{uuid}.json`` before. A
cleanup that ended leaves no journal; of one that was interrupted, the next one reads it and finishes the work. A tag or
branch does not begin to name a version that a journal lists. Other Lance clients ignore the directory.

A journal that is out of date does no harm: what a manifest names stays whatever a journal says, and names are random,
so that no writer uses one again.

Format: ``docs/format/table.md#cleanup-journal``.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

__all__ = ["JOURNAL_DIR", "Journal", "decode_journal", "encode_journal", "journal_path"]

JOURNAL_DIR = "_cleanup"
_FORMAT = "tablewright cleanup 1"


@dataclass(frozen=True, slots=True)
class Journal:
    """What a cleanup is about to remove: versions, and names of files that only they refer to."""

    versions: frozenset[int]
    names: frozenset[str]


def journal_path(uuid: UUID) -> str:
    """Where the journal of a cleanup is kept."""
    return f"{JOURNAL_DIR}/{uuid}.json"


def encode_journal(versions: Collection[int], names: Collection[str]) -> bytes:
    """The journal as its file holds it."""
    return json.dumps({"format": _FORMAT, "versions": sorted(versions), "names": sorted(names)}).encode()


def decode_journal(data: bytes) -> Journal | None:
    """The journal in a file; ``None`` for anything else, which is then left alone.

    >>> decode_journal(encode_journal([3], ["data/x.lance"]))
    Journal(versions=frozenset({3}), names=frozenset({'data/x.lance'}))
    >>> decode_journal(b"{}") is None
    True
    """
    try:
        document = json.loads(data)
        versions, names = document["versions"], document["names"]
        right = document["format"] == _FORMAT and all(isinstance(name, str) for name in names)
        if not right or not all(isinstance(version, int) for version in versions):
            return None
        return Journal(frozenset(versions), frozenset(names))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
