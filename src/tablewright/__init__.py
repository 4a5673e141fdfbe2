"""Tablewright: the write path of the Lance table format, whose bulk work runs on Spark."""
