"""Bytes and frozen values: every document of a Lance table, without any input or output."""
