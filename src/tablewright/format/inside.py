"""Paths that are read from a table's files: they must name something below the directory that they are relative to."""

from __future__ import annotations

__all__ = ["stays_inside"]


def stays_inside(path: str) -> bool:
    """Whether a path that was read from a file can be an object's, and does not lead out of its directory.

    >>> stays_inside("part/0001.lance"), stays_inside("../0001.lance"), stays_inside("/etc/passwd"), stays_inside("")
    (True, False, False, False)
    """
    return "\0" not in path and not {"", ".", ".."}.intersection(path.split("/"))
