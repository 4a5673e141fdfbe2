"""A standalone Spark cluster on this machine: a master and two workers of one core each, on loopback only."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tablewright.engine.spark.session import embedded_environment

__all__ = ["standalone_cluster"]

WORKERS = 2
START_SECONDS_MAX = 180.0


@contextmanager
def standalone_cluster(memory: str = "1g", logs: Path | None = None) -> Iterator[str]:
    """The master's address, while the cluster runs. Its processes are ended by their ids.

    ``logs`` is where the logs of master, workers and executors are, which otherwise go with the cluster.
    """
    address = f"spark://127.0.0.1:{_free_port()}"
    port = address.rpartition(":")[2]
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="tablewright-cluster-") as temporary:
        folder = logs or Path(temporary)
        try:
            master = ["org.apache.spark.deploy.master.Master", "--port", port, "--webui-port", "0"]
            processes.append(_start([*master, "--host", "127.0.0.1"], Path(folder, "master.log"), "127.0.0.1"))
            _wait_for(int(port))
            for number in range(WORKERS):
                host = f"127.0.0.{number + 2}"
                worker = ["org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "1", "--memory", memory]
                place = ["--work-dir", f"{folder}/{number}", "--webui-port", "0", address]
                processes.append(_start([*worker, *place], Path(folder, f"{number}.log"), host))
            yield address
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait(30)


def _start(arguments: list[str], log: Path, host: str) -> subprocess.Popen[bytes]:
    home = str(Path(pyspark.__file__).parent)
    brief = {"SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}  # master and workers start processes and wait
    environment = {**os.environ, **embedded_environment(), **brief, "SPARK_HOME": home, "SPARK_LOCAL_IP": host}
    with log.open("wb") as output:
        return subprocess.Popen(
            [f"{home}/bin/spark-class", *arguments], env=environment, stdout=output, stderr=subprocess.STDOUT
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"No Spark master on port {port} after {START_SECONDS_MAX:g} s.")
