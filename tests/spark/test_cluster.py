"""A standalone cluster on loopback: a master, two workers on 127.0.0.2 and 127.0.0.3, executors in other processes.

Nothing is shared but the path of the table. Executors are killed with -9 amid changes, then the same session runs a
small profile of the tests of this folder. All results are those of the local engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks._cluster import standalone_cluster
from tests.depth import DEPTH
from tests.spark.driver import PROFILE, SMALLER, Driver, driver
from tests.spark.faults import ALWAYS, Faults, TaskFault, read_log
from tests.spark.verbs import SECRET, VERBS, clean_up, make_table, orphans, seen

pytestmark = pytest.mark.timeout(1800)
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of all processes, and Spark's log of events."""
    folder = tmp_path_factory.mktemp("logs")
    (folder / "events").mkdir()
    return folder


@pytest.fixture(scope="module")
def on_cluster(logs: Path) -> Iterator[Driver]:
    """A driver whose executors are those of the cluster."""
    environment = {"TABLEWRIGHT_DEPTH": str(SMALLER * DEPTH), "TABLEWRIGHT_HYPOTHESIS": "brief"}
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    events["spark.eventLog.dir"] = (logs / "events").as_uri()
    with standalone_cluster(logs=logs) as address, driver(address, {**SETTINGS, **events}, environment) as made:
        yield made


@pytest.mark.share(1)
@pytest.mark.parametrize(
    ("verb", "stage", "call"),
    [
        ("merge", 1, 2),
        ("compaction", 0, 5),
        ("merge by shuffle", 0, 1),
        ("merge", 0, 0),
        ("index build", 0, 3),
        ("write", 0, 0),
        ("stream batch", 0, 0),
        ("stream batch", 2, 1),
    ],
)
def test_an_executor_that_is_killed(on_cluster: Driver, tmp_path: Path, verb: str, stage: int, call: int) -> None:
    """Its tasks run again on the other one or on its successor: the change happens once, and whole."""
    here, there = (make_table(tmp_path / f"{name}.lance") for name in ("here", "there"))
    VERBS[verb](here, "local")
    faults = Faults(str(tmp_path / "log"), TaskFault("kill executor", stage, 0, call))
    assert on_cluster.run(verb, there, faults) is None
    assert Path(f"{faults.log}-once").exists(), "no executor was killed"
    assert seen(there) == seen(here)
    calls = [(line.stage, line.partition, line.call) for line in read_log(faults.log)]
    assert calls.count((stage, 0, call)) > 1, "no task ran again"  # where a stage is repeated, attempts count from 0
    clean_up(there)
    assert seen(there) == seen(here) and orphans(there) == set()


def test_no_log_shows_credentials(on_cluster: Driver, tmp_path: Path, logs: Path) -> None:
    """They reach workers, which also fail: neither the error nor any log of Spark has them."""
    uri = make_table(tmp_path / "t.lance")
    assert on_cluster.run("update with credentials", uri, Faults(str(tmp_path / "log"))) is None
    defect = TaskFault("raise", 0, 0, 0, times=ALWAYS)
    error = on_cluster.run("update with credentials", uri, Faults(str(tmp_path / "log-2"), defect))
    assert error is not None and error.startswith("InternalError") and "a defect in a task" in error
    texts = {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    assert any(b"a defect in a task" in text for text in texts.values()), "logs have what workers said"
    assert any(b"SparkListenerTaskEnd" in text for text in texts.values()), "there is a log of events"
    for secret in (SECRET, "AKIA-not-to-be-seen"):
        assert secret not in error
        assert [path for path, text in texts.items() if secret.encode() in text] == []


def test_a_smaller_profile_on_the_cluster(on_cluster: Driver) -> None:
    """The last test here: the session ends with it."""
    status, printed = on_cluster.pytest(*PROFILE)
    assert status == 0, printed[-5000:]
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None and int(passed[1]) >= 21, printed[-2000:]
