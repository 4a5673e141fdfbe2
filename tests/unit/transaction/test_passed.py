"""The costs of compactions add up, and one line says them."""

from __future__ import annotations

from tablewright.transaction.passed import Passed


def test_nothing_was_passed() -> None:
    assert not Passed()
    assert Passed() + Passed() == Passed()


def test_costs_add_up() -> None:
    one = Passed(rewrites=1, rows=2, bytes_carried=3, seconds=0.5)
    assert one
    assert one + one == Passed(rewrites=2, rows=4, bytes_carried=6, seconds=1.0)
    assert str(one) == "rebased past 1 compaction: rows=2, bytes_carried=3, seconds=0.500; nothing ran again"
