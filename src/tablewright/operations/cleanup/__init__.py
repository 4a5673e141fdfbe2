"""Cleanup: removing old versions and the files that no version refers to any more.

Tests: ``tests/unit/operations/cleanup``, ``tests/concurrency/test_cleanup_faults.py``.
"""
