"""How many requests this process, and workers for it, have made to stores and data files: see ``analyze_plan``.

Each one is in the log as well, at DEBUG.
"""

from __future__ import annotations

import threading

from tablewright.log import Log

__all__ = ["add_requests", "count_request", "log_request", "requests_made"]

_log = Log("storage")
_is_logged = _log.wants_debug
_lock = threading.Lock()
_made = 0


def count_request(verb: str = "ask", uri: str = "", path: str = "") -> None:
    """One more: an object is read, written or removed, or rows of a data file are asked for."""
    global _made
    if _is_logged():
        log_request(verb, uri, path)
    with _lock:
        _made += 1


def log_request(verb: str, uri: str, path: str) -> None:
    """A request that is not counted: a listing, which may be several."""
    _log.debug("request", "%(verb)s %(path)s", verb=verb, path=f"{uri}/{path}" if uri else path)


def add_requests(number: int) -> None:
    """Add requests that a worker made for this process."""
    global _made
    with _lock:
        _made += number


def requests_made() -> int:
    """How many there were so far."""
    return _made
