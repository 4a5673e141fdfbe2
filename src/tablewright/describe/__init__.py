"""Files of tables, printed for people: ``tablewright describe PATH``, or :func:`describe_file` for bytes at hand."""

from tablewright.describe.files import KINDS, describe_file
from tablewright.describe.report import Report

__all__ = ["KINDS", "Report", "describe_file"]
