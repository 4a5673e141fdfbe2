"""What the log says of engines: which one runs a piece of work, and why.

Tests: tests/unit/test_log.py
"""

from __future__ import annotations

from tablewright.engine.choose import Choice
from tablewright.log import Log

__all__ = ["log_choice"]

_log = Log("engine")


def log_choice(work: str, choice: Choice, tasks: int | None = None) -> None:
    """The engine of a piece of work, when it starts."""
    text = (
        "%(work)s: engine=%(engine)s, %(why)s"
        if tasks is None
        else "%(work)s: engine=%(engine)s, tasks=%(tasks)d, %(why)s"
    )
    _log.info("engine", text, work=work, engine=choice.engine.name, tasks=tasks, why=choice.why)
