"""A shop window under pylance's name: what a lost race is called."""

from tablewright.errors import CommitConflict as CommitConflictError

__all__ = ["CommitConflictError"]
