"""How much memory this process may still take: the machine's, or less where a control group limits it (Linux).

Pages of files that nobody uses count as available: the system takes them back when memory is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["available_bytes"]

_ROOT = Path("/")


def available_bytes(root: Path = _ROOT) -> int | None:
    """Bytes that can be taken without swapping or being killed; ``None`` where the system does not say.

    ``root`` stands for the root of the file system.
    """
    known = [*_of_machine(root), *_of_groups(root)]
    return max(0, min(known)) if known else None


def _of_machine(root: Path) -> Iterator[int]:
    text = _text(root / "proc/meminfo")
    if text is not None:
        yield from (int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("MemAvailable:"))
    elif root == _ROOT and "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_groups(root: Path) -> Iterator[int]:
    """What each control group that this process is in leaves: limits of version 2 are inherited."""
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _left(root / "sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
            yield from _left(root / "sys/fs/cgroup/memory", path, limit, used, "total_inactive_file")


def _left(top: Path, path: str, limit: str, used: str, unused: str) -> Iterator[int]:
    group = top / path.lstrip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(top):
            return
        most, now = _text(folder / limit), _text(folder / used)
        if most is not None and now is not None and most.strip() != "max":
            yield int(most) - int(now) + _statistic(folder / "memory.stat", unused)


def _statistic(path: Path, name: str) -> int:
    lines = (_text(path) or "").splitlines()
    return next((int(value) for key, value in map(str.split, lines) if key == name), 0)


def _text(path: Path) -> str | None:
    """A small file of the system; ``None`` if this system has none."""
    return path.read_text() if path.is_file() else None
