"""Suppress a false warning: the codec warns about every fork, also about those that can do no harm.

1. ``subprocess`` with a ``preexec_fn`` (which is how PySpark starts its JVM) forks and calls ``exec`` at once: nothing
   of this process goes on.
2. Spark's daemon of Python workers forks them after it has imported the codec, and before anyone has used it.

There the warning is suppressed; every other fork warns as before.
"""

from __future__ import annotations

import os
import sys
import warnings

__all__ = ["hold_back_false_warnings"]

_HARMLESS = frozenset({"subprocess", "pyspark.daemon"})
_held: list[warnings.catch_warnings] = []


def hold_back_false_warnings() -> None:
    """Call this once, after the codec was imported: hooks run in the reverse of the order of their registration."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)


def _before() -> None:
    if sys._getframe(1).f_globals.get("__name__") in _HARMLESS:
        held = warnings.catch_warnings()
        held.__enter__()
        warnings.filterwarnings("ignore", "lance is not fork-safe")
        _held.append(held)


def _after() -> None:
    while _held:
        _held.pop().__exit__(None, None, None)
