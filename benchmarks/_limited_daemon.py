"""The daemon of Python workers that embedded sessions have, none of which may have more than 1 GiB of data.

See ``merge_memory.py``.
"""

from __future__ import annotations

import resource
import runpy

__all__ = ["WORKER_BYTES_MAX"]

WORKER_BYTES_MAX = 1 << 30

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (WORKER_BYTES_MAX, WORKER_BYTES_MAX))
    runpy.run_module("tablewright.engine.spark.daemon", run_name="__main__")
