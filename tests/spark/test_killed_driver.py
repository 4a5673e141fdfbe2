"""The driver is killed with -9 amid a task, before its commit, or after it: the old version, or the new one.

The killed process has a JVM and Python workers of its own, which end with it. Its files are then in no version, and are
found by cleanup. The next change works.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.driver import driver
from tests.spark.faults import DriverFault, Faults, TaskFault, kill_this_process
from tests.spark.verbs import VERBS, clean_up, make_table, orphans, seen

from tablewright.testing import Pause

pytestmark = [pytest.mark.timeout(600), pytest.mark.share(1)]
COMMITS = {"write": 1, "merge": 1, "compaction": 2}


@pytest.mark.parametrize("moment", ["amid a task", "before the commit", "after the commit"])
@pytest.mark.parametrize("verb", COMMITS)
def test_a_driver_that_is_killed(tmp_path: Path, verb: str, moment: str) -> None:
    here, there = (make_table(tmp_path / f"{name}.lance") for name in ("here", "there"))
    VERBS[verb](here, "local")
    before, after = seen(there), seen(here)
    with driver("local[2,4]") as made:
        faults = _faults(str(tmp_path / "log"), verb, moment, made.id)
        with pytest.raises(EOFError):
            made.run(verb, there, faults)
        made.wait_for_the_end()
        assert not made.processes()
    assert made.process.exitcode == -9
    assert seen(there) == (after if moment == "after the commit" else before)
    left = orphans(there)
    assert moment != "before the commit" or left, "executors had written files"
    if moment != "after the commit":
        VERBS[verb](there, "local")
    clean_up(there)
    assert seen(there) == after and orphans(there) == set()


def _faults(log: str, verb: str, moment: str, process: int) -> Faults:
    last, kill = COMMITS[verb] - 1, Pause(kill_this_process)
    if moment == "amid a task":
        return Faults(log, TaskFault("kill driver", 0, 0, 0, driver=process))
    if moment == "before the commit":
        return Faults(log, driver=DriverFault(kill, last))
    # The hint about the newest version is written just after its manifest.
    return Faults(log, driver=DriverFault(kill, last, method="put"))
