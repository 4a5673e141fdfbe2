from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, subprocess, sys, warnings
import tablewright
tablewright.write_dataset([{"id": 1}], "memory://table")  # which imports the codec
before = list(warnings.filters)
subprocess.run([sys.executable, "-c", ""], preexec_fn=lambda: None)  # as PySpark starts its JVM
assert warnings.filters == before
print("started", file=sys.stderr)
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


def test_only_forks_that_go_on_are_warned_about() -> None:
    """The codec's own warning is held back where the fork only starts another program."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    before, started, after = done.stderr.partition("started\n")
    assert (before, bool(started)) == ("", True)
    assert "lance is not fork-safe" in after
