"""``make bench``: run the named workloads, one module each, and say which kept their promise.

A workload is a module of this folder with ``run() -> bool``: it prints its figures, which are ratios measured side by
side in one run, and returns whether they keep what it promises. ``python -m benchmarks NAME…`` runs only those; one
with ``BY_DEFAULT = False`` has to be named. Options such as ``--only`` go to the workloads whose ``run`` takes them.
Memory is touched first (:mod:`._memory`), which takes a minute on a machine that has just started.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

from benchmarks._memory import touch_memory


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
    if not given["report"]:
        print(f"memory: {touch_memory():.1f} us a page", flush=True)
    kept: dict[str, bool] = {}
    for name in names or known:
        workload = importlib.import_module(f"benchmarks.{name}")
        if names or getattr(workload, "BY_DEFAULT", True):
            print(f"── {name}", flush=True)
            taken = inspect.signature(workload.run).parameters
            asked = {option: value for option, value in given.items() if option in taken and value is not None}
            kept[name] = bool(workload.run(**asked))
    for name, good in kept.items():
        print(f"{'kept  ' if good else 'BROKEN'} {name}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
