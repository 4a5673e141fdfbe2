"""What becomes true in another thread's own time: awaited, and not slept for."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["assert_soon"]

_PATIENCE_SECONDS = 30


def assert_soon(holds: Callable[[], bool]) -> None:
    """Returns once it holds; fails if that takes longer than any busy machine would need."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)
