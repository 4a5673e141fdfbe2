"""Fragments as JSON, in the form of pylance's ``FragmentMetadata.to_json``: for users who distribute work themselves.

The documents of pylance and ours can be exchanged. Unknown protobuf fields do not travel this way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tablewright.checks import byte_string, check_text
from tablewright.errors import InvalidRequest
from tablewright.format.fragment.value import (
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    problems_of_fragment,
)

__all__ = ["fragment_from_json", "fragment_to_json"]

_TYPE_NAMES = {DeletionFileType.ARROW_ARRAY: "array", DeletionFileType.BITMAP: "bitmap"}
_TYPES = {name: file_type for file_type, name in _TYPE_NAMES.items()}


def fragment_to_json(fragment: Fragment) -> dict[str, Any]:
    """A document of plain lists, numbers and texts that ``json.dumps`` takes."""
    return {
        "id": fragment.id,
        "files": [_file_to_json(file) for file in fragment.files],
        "overlays": [],
        "physical_rows": fragment.physical_rows,
        "deletion_file": _deletion_to_json(fragment.deletion),
        "row_id_meta": _bytes_to_json("Inline", fragment.row_ids),
        "created_at_version_meta": _bytes_to_json("inline", fragment.created_at),
        "last_updated_at_version_meta": _bytes_to_json("inline", fragment.last_updated_at),
    }


def fragment_from_json(document: Mapping[str, Any] | str) -> Fragment:
    """The fragment in a document of this form, or in its text. Anything else is :class:`InvalidRequest`."""
    try:
        facts = json.loads(document) if isinstance(document, str) else document
        fragment = Fragment(
            id=_whole(facts["id"]),
            files=tuple(_file_from_json(file) for file in facts["files"]),
            physical_rows=_whole(facts["physical_rows"]),
            deletion=_deletion_from_json(facts.get("deletion_file")),
            row_ids=_bytes_from_json(facts.get("row_id_meta")),
            created_at=_bytes_from_json(facts.get("created_at_version_meta")),
            last_updated_at=_bytes_from_json(facts.get("last_updated_at_version_meta")),
        )
        if facts.get("overlays"):
            raise ValueError("it has data overlays, which we can't read")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidRequest(f"This is no JSON document of a fragment: {reason}.") from error
    problems = problems_of_fragment(fragment)
    if problems:
        raise InvalidRequest("This is no sound fragment: " + "; ".join(problems) + ".")
    return fragment


def _file_to_json(file: DataFile) -> dict[str, Any]:
    return {
        "fields": list(file.fields),
        "column_indices": list(file.column_indices),
        "file_major_version": file.file_major_version,
        "file_minor_version": file.file_minor_version,
        "file_size_bytes": file.file_size_bytes or None,
        "base_id": file.base_id,
        "path": file.path,
    }


def _file_from_json(facts: Mapping[str, Any]) -> DataFile:
    base_id = facts.get("base_id")
    return DataFile(
        path=check_text(facts["path"], "path"),
        fields=tuple(_whole(number) for number in facts["fields"]),
        column_indices=tuple(_whole(number) for number in facts["column_indices"]),
        file_major_version=_whole(facts["file_major_version"]),
        file_minor_version=_whole(facts["file_minor_version"]),
        file_size_bytes=_whole(facts.get("file_size_bytes") or 0),
        base_id=None if base_id is None else _whole(base_id),
    )


def _deletion_to_json(deletion: DeletionFile | None) -> dict[str, Any] | None:
    if deletion is None:
        return None
    return {
        "read_version": deletion.read_version,
        "id": deletion.id,
        "file_type": _TYPE_NAMES[deletion.file_type],
        "num_deleted_rows": deletion.num_deleted_rows,
        "base_id": deletion.base_id,
    }


def _deletion_from_json(facts: Mapping[str, Any] | None) -> DeletionFile | None:
    if facts is None:
        return None
    base_id = facts.get("base_id")
    return DeletionFile(
        file_type=_TYPES[facts["file_type"]],
        read_version=_whole(facts["read_version"]),
        id=_whole(facts["id"]),
        num_deleted_rows=_whole(facts["num_deleted_rows"]),
        base_id=None if base_id is None else _whole(base_id),
    )


def _bytes_to_json(arm: str, data: bytes | None) -> dict[str, list[int]] | None:
    return None if data is None else {arm: list(data)}


def _bytes_from_json(facts: Mapping[str, Any] | None) -> bytes | None:
    if facts is None:
        return None
    for arm, value in facts.items():
        if arm.lower() == "inline":
            return byte_string(value, arm)
    raise ValueError(f"sequences must be inline, this one is {', '.join(facts)}")


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return value
