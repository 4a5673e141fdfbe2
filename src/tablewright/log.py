"""What happens, for Python's :mod:`logging`: loggers below ``tablewright``, silent until a program asks for them.

INFO is for commits, conflicts and what is done about them, and engines with the reason for them; DEBUG adds plans,
stages, files, and requests to stores. Every record has an ``event``, a name that stays the same between releases, and
the facts of its text as attributes, for programs that write records as JSON. No text holds a secret
(:mod:`tablewright.redact`). A record that no handler wants costs one comparison: its text is never made.
"""

from __future__ import annotations

import logging
from functools import partial

from tablewright.redact import redact

__all__ = ["Log"]

_ROOT = "tablewright"
logging.getLogger(_ROOT).addHandler(logging.NullHandler())


class Log:
    """The logger of one subject.

    ``text`` is a template of ``%(name)s`` for its facts. A fact that is no number becomes text when it is wanted.
    ``wants_info()`` and ``wants_debug()`` tell whether a record would be read at all, before its facts are made.

    >>> logger = logging.getLogger("tablewright.example")
    >>> logger.isEnabledFor(logging.INFO)
    False
    >>> Log("example").info("open", "opened %(table)s", table="s3://bucket/table")
    """

    __slots__ = ("_logger", "wants_debug", "wants_info")

    def __init__(self, subject: str) -> None:
        self._logger = logging.getLogger(f"{_ROOT}.{subject}")
        self.wants_info = partial(self._logger.isEnabledFor, logging.INFO)
        self.wants_debug = partial(self._logger.isEnabledFor, logging.DEBUG)

    def info(self, event: str, text: str, /, **facts: object) -> None:
        """What an operator wants to know."""
        if self.wants_info():
            self._send(logging.INFO, event, text, facts)

    def debug(self, event: str, text: str, /, **facts: object) -> None:
        """What helps to find out why."""
        if self.wants_debug():
            self._send(logging.DEBUG, event, text, facts)

    def _send(self, level: int, event: str, text: str, facts: dict[str, object]) -> None:
        plain = {name: _plain(value) for name, value in facts.items()}
        self._logger.log(level, text, plain, extra={"event": event, **plain}, stacklevel=3)


def _plain(value: object) -> int | float | str | None:
    return value if value is None or isinstance(value, int | float) else redact(str(value))
