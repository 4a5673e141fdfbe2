"""Re-exports under pylance's module name: the error of a lost race."""

from tablewright.errors import CommitConflict as CommitConflictError

__all__ = ["CommitConflictError"]
