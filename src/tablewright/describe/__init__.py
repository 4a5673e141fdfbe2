"""Reports on tables and their files: the command ``tablewright describe`` prints them; here, of bytes at hand."""

from tablewright.describe.files import KINDS, describe_file
from tablewright.describe.report import Report

__all__ = ["KINDS", "Report", "describe_file"]
