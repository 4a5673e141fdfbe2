"""``IndexConfig``: a type of index with its parameters, as pylance has it.

Tests: ``tests/unit/api/test_index_verbs.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["IndexConfig"]


@dataclass
class IndexConfig:
    """A type of index and its parameters.

    >>> IndexConfig("zonemap", {"rows_per_zone": 100})
    IndexConfig(index_type='zonemap', parameters={'rows_per_zone': 100})
    """

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
