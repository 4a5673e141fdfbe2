"""engine/progress.py: a bar for people, nothing for pipes."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from tablewright.engine import progress as module
from tablewright.engine.progress import Progress


def terminal() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=True, width=80, color_system=None), text


def test_long_work_shows_a_bar_on_a_terminal() -> None:
    console, text = terminal()
    with Progress("Compacting", 4, show=True, console=console, delay_seconds=0.01) as bar:
        deadline = time.monotonic() + 10
        while not bar.visible and time.monotonic() < deadline:
            time.sleep(0.01)
        bar.update(3)
    assert "Compacting" in text.getvalue()
    assert "3/4" in text.getvalue()


def test_short_work_shows_nothing() -> None:
    console, text = terminal()
    with Progress("Writing", 2, show=True, console=console, delay_seconds=30) as bar:
        bar.update(2)
        assert not bar.visible
    assert text.getvalue() == ""


def test_the_total_may_become_known_later() -> None:
    console, text = terminal()
    with Progress("Reading", show=True, console=console, delay_seconds=0) as bar:
        deadline = time.monotonic() + 10
        while not bar.visible and time.monotonic() < deadline:
            time.sleep(0.01)
        bar.update(1, 12)
    assert "1/12" in text.getvalue()


@pytest.mark.parametrize(
    ("isatty", "environment", "expected"),
    [
        (True, {}, True),
        (True, {"CI": "true"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_wanted_only_where_a_person_looks(
    monkeypatch: pytest.MonkeyPatch, isatty: bool, environment: dict[str, str], expected: bool
) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return isatty

    monkeypatch.setattr(module.sys, "stderr", Stream())
    for name in ("CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert module.wanted() is expected
