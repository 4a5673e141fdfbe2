"""The command line ``tablewright``; ``python -m tablewright.cli`` is the same."""

from tablewright.cli.app import app

__all__ = ["app"]
