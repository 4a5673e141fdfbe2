"""Asks pypaimon for binary rows and buckets, in its own environment (see :mod:`.referee`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.differential.paimon.referee import pypaimon_python


def ask_pypaimon(verb: str, **request: Any) -> Any:
    """What :mod:`.keys_side` answers, in a process of pypaimon's."""
    command = [pypaimon_python(), "-W", "ignore", str(Path(__file__).with_name("keys_side.py"))]
    text = json.dumps({"do": verb, **request})
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
