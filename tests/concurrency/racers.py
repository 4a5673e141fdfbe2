"""Real processes that run one script on one table: started together, waited for, their logs read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tablewright as tw

__all__ = ["race"]

_SOURCE = Path(tw.__file__).parents[1]
_READY_SECONDS_MAX = 90


def race(
    script: str, uri: str, libraries: Sequence[str], amount: float, folder: Path, *, seconds_max: float, first: int = 0
) -> list[dict[str, Any]]:
    """Start the script once per library, let all go at the same moment, wait for them; the lines of all their logs.

    A script gets library, uri, its number (counted from ``first``), how much to do, the file that starts it, and its
    log. Each line says which library (``by``) and which log it is from.
    """
    start, name = folder / "start", Path(script).stem
    environment = {**os.environ, "PYTHONPATH": str(_SOURCE), "PYTHONWARNINGS": "ignore"}
    logs = [folder / f"{number}.jsonl" for number in range(len(libraries))]
    processes = [
        subprocess.Popen(
            [sys.executable, script, library, uri, str(number), str(amount), str(start), str(log)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, (library, log) in enumerate(zip(libraries, logs, strict=True), first)
    ]
    try:
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while len(list(folder.glob("start.ready-*"))) < len(processes) and time.monotonic() < deadline:
            assert all(process.poll() is None for process in processes), f"a {name} died before the start"
            time.sleep(0.01)
        start.touch()
        endings = [(process.communicate(timeout=seconds_max)[0], process.returncode) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for library, (output, code) in zip(libraries, endings, strict=True):
        assert code == 0, f"a {name} of {library} failed:\n{output[-3000:]}"
    return [
        {**json.loads(line), "by": library, "log": log.name}
        for library, log in zip(libraries, logs, strict=True)
        if log.exists()
        for line in log.read_text().splitlines()
    ]
