"""``TableHealth``: what was measured, as text, as plain values and as metrics.

Tests: ``tests/unit/operations/health/test_report.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from tablewright.format.manifest_sizes import ManifestSizes
from tablewright.operations.health import openmetrics, text
from tablewright.operations.health.values import HealthFacts

__all__ = ["TableHealth"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TableHealth(HealthFacts):
    """The health of one version of a table. ``print`` shows it as a table of text."""

    def actions(self) -> tuple[str, ...]:
        """The names of the recommended actions, in order; empty if there is nothing to do."""
        return tuple(each.action for each in self.recommendations if each.action != "none")

    def to_dict(self) -> dict[str, Any]:
        """As plain values that ``json.dumps`` takes. Fragments are those of :attr:`worst_fragments`."""
        plain = {each.name: _plain(getattr(self, each.name)) for each in fields(self) if each.name != "fragments"}
        return {**plain, "worst_fragments": self.worst_fragments}

    def to_openmetrics(self) -> str:
        """As OpenMetrics text, for a file that a collector reads, or for an HTTP endpoint."""
        return openmetrics.encode(self)

    def __str__(self) -> str:
        return text.render(self)

    def __repr__(self) -> str:
        return str(self)


def _plain(value: Any) -> Any:
    if isinstance(value, ManifestSizes):
        return {**value.to_dict(), "total": value.total}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        derived = [name for name, each in vars(type(value)).items() if isinstance(each, property)]
        return {name: _plain(getattr(value, name)) for name in (*(each.name for each in fields(value)), *derived)}
    return value
