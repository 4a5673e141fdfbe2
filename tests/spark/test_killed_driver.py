"""The driver is killed with -9 amid a task, before its commit, or after it: the old version, or the new one.

The killed process has a JVM and Python workers of its own, which end with it. Its files are then in no version, and are
found by cleanup. The next change works.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.spark.driver import driver
from tests.spark.faults import DriverFault, Faults, TaskFault, kill_this_process
from tests.spark.verbs import REPLAYED, VERBS, clean_up, make_table, orphans, seen

from tablewright.testing import Pause

pytestmark = [pytest.mark.timeout(600), pytest.mark.share(1)]
COMMITS = {"write": 1, "merge": 1, "compaction": 2, "index build": 1, "stream batch": 1}
MOMENTS = ("amid a task", "before the commit", "after the commit")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("verb", COMMITS)
def test_a_driver_that_is_killed(tmp_path: Path, verb: str, moment: str) -> None:
    here, there = (make_table(tmp_path / f"{name}.lance") for name in ("here", "there"))
    VERBS[verb](here, "local")
    before, after = seen(there), seen(here)
    _run_and_kill(verb, there, moment, tmp_path / "log", COMMITS[verb])
    assert seen(there) == (after if moment == "after the commit" else before)
    left = orphans(there)
    assert moment != "before the commit" or left, "executors had written files"
    if moment != "after the commit" or verb in REPLAYED:
        VERBS[verb](there, "local")
    clean_up(there)
    assert seen(there) == after and orphans(there) == set()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_query_whose_driver_is_killed(tmp_path: Path, moment: str) -> None:
    """Started again, it goes on from its checkpoint, which does not know whether the batch was committed."""
    here, there = (make_table(tmp_path / f"{name}.lance") for name in ("here", "there"))
    VERBS["stream batch"](here, "local")
    before, after, version = seen(there), seen(here), lance.dataset(there).version
    _run_and_kill("stream query", there, moment, tmp_path / "log", 1)
    assert seen(there) == (after if moment == "after the commit" else before)
    assert not list(Path(f"{there}.checkpoint", "commits").glob("[0-9]*"))
    with driver("local[2,4]") as made:
        assert made.run("stream query", there, Faults(str(tmp_path / "again"))) is None
    assert list(Path(f"{there}.checkpoint", "commits").glob("[0-9]*"))
    assert lance.dataset(there).version == version + 1
    clean_up(there)
    assert seen(there) == after and orphans(there) == set()


def _run_and_kill(verb: str, uri: str, moment: str, log: Path, commits: int) -> None:
    with driver("local[2,4]") as made:
        faults = _faults(str(log), moment, commits - 1, made.id)
        with pytest.raises(EOFError):
            made.run(verb, uri, faults)
        made.wait_for_the_end()
        assert not made.processes()
    assert made.process.exitcode == -9


def _faults(log: str, moment: str, last: int, process: int) -> Faults:
    kill = Pause(kill_this_process)
    if moment == "amid a task":
        return Faults(log, TaskFault("kill driver", 0, 0, 0, driver=process))
    if moment == "before the commit":
        return Faults(log, driver=DriverFault(kill, last))
    # The hint about the newest version is written just after its manifest.
    return Faults(log, driver=DriverFault(kill, last, method="put"))
