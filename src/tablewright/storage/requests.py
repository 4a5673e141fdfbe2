"""How many requests this process, and workers for it, have made to stores and data files: see ``analyze_plan``."""

from __future__ import annotations

import threading

__all__ = ["add_requests", "count_request", "requests_made"]

_lock = threading.Lock()
_made = 0


def count_request() -> None:
    """One more: an object was read, written, listed or removed, or rows of a data file were asked for."""
    global _made
    with _lock:
        _made += 1


def add_requests(number: int) -> None:
    """Add requests that a worker made for this process."""
    global _made
    with _lock:
        _made += number


def requests_made() -> int:
    """How many there were so far."""
    return _made
