"""What the test kits need beyond the package itself."""

from __future__ import annotations

__all__ = ["missing"]


def missing(module: str, needs: str) -> ModuleNotFoundError:
    """The error for a module whose requirement is not installed.

    >>> print(missing("tablewright.testing.strategies", "hypothesis"))
    tablewright.testing.strategies needs hypothesis: pip install "tablewright[test]"
    """
    return ModuleNotFoundError(f'{module} needs {needs}: pip install "tablewright[test]"', name=needs)
