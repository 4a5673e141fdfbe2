"""Scripts that need a session of their own run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def start(script: str, **environment: str) -> subprocess.Popen[str]:
    """Run ``script`` in a new Python, in a process group of its own as a terminal would have it."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def run(script: str, timeout_seconds: float = 500, **environment: str) -> str:
    """What ``script`` prints; fails with its errors if it fails."""
    process = start(script, **environment)
    out, errors = process.communicate(timeout=timeout_seconds)
    assert process.returncode == 0, errors[-5000:]
    return out
