"""engine/memory.py: what is left of the machine's memory and of control groups, from the files that Linux writes."""

from __future__ import annotations

from pathlib import Path

from tablewright.engine.memory import available_bytes

MIB = 1 << 20


def system(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MACHINE = {"proc/meminfo": "MemTotal:  4096 kB\nMemFree: 100 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n"}


def test_the_machine_alone(tmp_path: Path) -> None:
    assert available_bytes(system(tmp_path, MACHINE)) == 2 * MIB


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) is None


def test_this_machine() -> None:
    found = available_bytes()
    assert found is None or 0 <= found < 1 << 60


def test_a_control_group_and_those_above_it(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/pod/job\n",
        "sys/fs/cgroup/pod/memory.max": f"{MIB}\n",
        "sys/fs/cgroup/pod/memory.current": f"{MIB // 2}\n",
        "sys/fs/cgroup/pod/memory.stat": f"anon 5\ninactive_file {MIB // 4}\nactive_file 9\n",
        "sys/fs/cgroup/pod/job/memory.max": "max\n",
        "sys/fs/cgroup/pod/job/memory.current": "5\n",
    }
    assert available_bytes(system(tmp_path, MACHINE | group)) == MIB * 3 // 4


def test_the_first_version_of_control_groups(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "12:cpu,cpuacct:/job\n11:memory:/job\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{MIB}\n",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": f"{2 * MIB}\n",
        "sys/fs/cgroup/memory/job/memory.stat": "total_inactive_file 0\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "7\n",
    }
    assert available_bytes(system(tmp_path, MACHINE | group)) == 0
