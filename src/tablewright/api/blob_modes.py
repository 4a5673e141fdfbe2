"""``blob_mode`` of ``to_pandas``, as pylance spells it."""

from __future__ import annotations

from typing import Any

from tablewright.checks import check_text
from tablewright.errors import InvalidRequest, UnsupportedFeature

__all__ = ["blob_handling_of"]

_MODES = {"descriptions": "blobs_descriptions", "bytes": "all_binary"}


def blob_handling_of(blob_mode: str | None) -> dict[str, Any]:
    """The scan option that stands for a ``blob_mode`` of ``to_pandas``."""
    if blob_mode is None:
        return {}
    if check_text(blob_mode, "blob_mode") == "lazy":
        raise UnsupportedFeature(
            "blob_mode='lazy' is not part of this release: use 'bytes' or 'descriptions', or read with pylance."
        )
    if blob_mode not in _MODES:
        raise InvalidRequest(f"Invalid blob_mode: {blob_mode}. Expected one of: bytes, descriptions, lazy.")
    return {"blob_handling": _MODES[blob_mode]}
