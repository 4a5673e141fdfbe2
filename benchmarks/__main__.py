"""``make bench``: run the named workloads, one module each, and say which kept their promise.

A workload is a module of this folder with ``run() -> bool``: it prints its figures, which are ratios measured side by
side in one run, and returns whether they keep what it promises. ``python -m benchmarks NAME…`` runs only those; one
with ``BY_DEFAULT = False`` has to be named. Options such as ``--only`` go to the workloads whose ``run`` takes them.
Memory is kept at hand meanwhile (:mod:`._memory`), which takes up to a minute before the first of them.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks._memory import kept_memory


def workloads() -> list[str]:
    """Every module here that is a workload, by name."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.name[0] != "_")


def main(arguments: list[str]) -> int:
    """Run the workloads asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only", help="rows of a workload, by name, with commas between")
    parser.add_argument("--warm", action="store_true", help="leave out what is measured in processes of its own")
    parser.add_argument("--rounds", type=int, help="how often a loop runs")
    parser.add_argument("--keep", help="versions that a loop keeps: a number, or an age such as 1m")
    parser.add_argument("--fsync", action="store_true", help="wait for the disk, where a loop asks")
    parser.add_argument("--rows", type=int, help="how large tables are, where a workload asks")
    parser.add_argument("--large", action="store_true", help="the largest table too, where a workload asks")
    parser.add_argument("--results", type=Path, help="a file to which figures are added, where a workload has parts")
    parser.add_argument("--minutes", type=float, help="begin nothing after that time, where a workload has parts")
    parser.add_argument("--report", action="store_true", help="run nothing: print what the file of results has")
    given = vars(parser.parse_args(arguments))
    names, known = given.pop("names"), workloads()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"No workload named {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    chosen = {name: importlib.import_module(f"benchmarks.{name}") for name in names or known}
    chosen = {name: each for name, each in chosen.items() if names or getattr(each, "BY_DEFAULT", True)}
    with nullcontext() if given["report"] else kept_memory():
        kept = {name: _run(name, workload, given) for name, workload in chosen.items()}
    for name, good in kept.items():
        print(f"{'kept  ' if good else 'BROKEN'} {name}")
    return 0 if all(kept.values()) else 1


def _run(name: str, workload: ModuleType, given: dict[str, Any]) -> bool:
    """Run a workload with those of the options that it takes: whether it kept its promise."""
    print(f"── {name}", flush=True)
    taken = inspect.signature(workload.run).parameters
    return bool(
        workload.run(**{option: value for option, value in given.items() if option in taken and value is not None})
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
