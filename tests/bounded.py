"""A script in a child process that may not have more than so much memory: what hostile files ask for shows at once.

The limit is one on address space, so that an allocation fails which would only fill up later, and the machine that runs
the tests is never in danger. A script prints what it found; a child that was killed or crashed fails the test.
"""

from __future__ import annotations

import subprocess
import sys

__all__ = ["GIB", "run_bounded"]

GIB = 1 << 30

_LIMIT = """
import resource, sys
import tablewright.api.dataset, datafusion, pyarrow, numpy, pyroaring
from tablewright.data.encoder import load_codec
load_codec()
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {headroom}, used + {headroom}))
"""


def run_bounded(script: str, *arguments: str, headroom: int = 2 * GIB, timeout_s: float = 120) -> str:
    """What ``script`` prints when it may take ``headroom`` bytes more than the imports did."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMIT.format(headroom=headroom) + script, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
