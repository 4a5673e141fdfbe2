"""``blob_mode`` of ``to_pandas``."""

from __future__ import annotations

from typing import Any

import pytest

from tablewright.api.blob_modes import blob_handling_of
from tablewright.errors import InvalidRequest, UnsupportedFeature


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(None, {}), ("bytes", {"blob_handling": "all_binary"}), ("descriptions", {"blob_handling": "blobs_descriptions"})],
)
def test_modes(mode: str | None, expected: dict[str, Any]) -> None:
    assert blob_handling_of(mode) == expected


def test_what_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="blob_mode='lazy'"):
        blob_handling_of("lazy")
    with pytest.raises(InvalidRequest, match="Invalid blob_mode: all"):
        blob_handling_of("all")
    with pytest.raises(TypeError, match="blob_mode"):
        blob_handling_of(1)  # type: ignore[arg-type]
