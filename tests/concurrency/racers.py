"""Real processes that run one script on one table: started together, waited for, their logs read.

Imports take longer than many a race. So one process imports what all of them need, and is forked before any of it has
begun to work: `python racers.py SCRIPT`, with the arguments of each racer as JSON on its standard input.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["race"]

_SOURCE = Path(__file__).parents[2] / "src"
_READY_SECONDS_MAX = 120


def race(
    script: str, uri: str, libraries: Sequence[str], amount: float, folder: Path, *, seconds_max: float, first: int = 0
) -> list[dict[str, Any]]:
    """Start the script once per library, let all go at the same moment, wait for them; the lines of all their logs.

    A script gets library, uri, its number (counted from ``first``), how much to do, the file that starts it, and its
    log. Each line says which library (``by``) and which log it is from.
    """
    start, name = folder / "start", Path(script).stem
    logs = [folder / f"{number}.jsonl" for number in range(len(libraries))]
    outputs = [log.with_suffix(".out") for log in logs]
    racers = [
        [str(output), library, uri, str(number), str(amount), str(start), str(log)]
        for number, (library, log, output) in enumerate(zip(libraries, logs, outputs, strict=True), first)
    ]
    # One thread for linear algebra: nobody here needs more, and a process that is to be forked should have no others.
    settings = {"PYTHONPATH": str(_SOURCE), "PYTHONWARNINGS": "ignore", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, __file__, script, *sorted(set(libraries))],
        env={**os.environ, **settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(racers) + "\n")
        process.stdin.flush()
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while len(list(folder.glob("start.ready-*"))) < len(racers) and time.monotonic() < deadline:
            assert process.poll() is None, f"a {name} died before the start:\n{_told(process, outputs)}"
            time.sleep(0.01)
        start.touch()
        codes = json.loads(process.communicate(timeout=seconds_max)[0])
    finally:
        _kill(process)
    for library, output, code in zip(libraries, outputs, codes, strict=True):
        assert code == 0, f"a {name} of {library} failed:\n{output.read_text()[-3000:]}"
    return [
        {**json.loads(line), "by": library, "log": log.name}
        for library, log in zip(libraries, logs, strict=True)
        if log.exists()
        for line in log.read_text().splitlines()
    ]


def _told(process: subprocess.Popen[str], outputs: Sequence[Path]) -> str:
    """What a process that has ended said, and its racers."""
    return "\n".join([process.communicate()[0], *(path.read_text() for path in outputs if path.exists())])[-3000:]


def _kill(process: subprocess.Popen[str]) -> None:
    """The whole group, which all racers are in."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main(script: str, libraries: Sequence[str]) -> None:
    """Fork a process for each racer, and say with which codes they ended, in order. One that fails ends all."""
    for library in libraries:
        importlib.import_module(f"{library}.fragment")
    importlib.import_module("pyarrow.dataset")
    racers = json.loads(sys.stdin.readline())
    numbers = {_fork(script, *racer): number for number, racer in enumerate(racers)}
    codes: list[int] = [0] * len(racers)
    for _ in racers:
        pid, status = os.wait()
        codes[numbers[pid]] = os.waitstatus_to_exitcode(status)
        if status:
            break
    print(json.dumps(codes))


def _fork(script: str, output: str, *arguments: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with open(output, "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
