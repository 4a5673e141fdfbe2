"""Random histories with tags, branches, restores, writers under way, crashes and cleanups, from a seed.

`run_history(seed)` plays one and checks it against an oracle that knows nothing of `operations/cleanup`: which files a
version needs is asked of snapshots, and which versions may go is written down here again. After every cleanup:

- no version that had to stay is missing, and every version that is listed has the rows that it had;
- no file of a writer under way is gone, if it is younger than seven days.

At the end all writers have ended and one cleanup with `delete_unverified` runs on each line: no file is left that no
version needs. `python -m tests.property.cleanup_history 2000` plays that many.

The cache of the process is off, tiny or large. Without it the table is in memory; with it on a disk, since nothing is
kept of the files of a table in memory.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tests.caches import BUDGETS, cached

import tablewright as tw
from tablewright.errors import InvalidRequest, TablewrightError, VersionNotFound
from tablewright.format.naming import deletion_path, transaction_file_path
from tablewright.storage import ObjectInfo, Store, open_store
from tablewright.testing import CrashAfter, CrashBefore, FaultyStore, SimulatedCrash, at_call, seeded_world
from tablewright.testing.worlds import SeededClock
from tablewright.world import World

__all__ = ["DatedStore", "run_history"]

STEPS = 14
DAY = 86_400.0
WEEK_NS = 7 * 86_400 * 10**9
KINDS = ("data/", "_deletions/", "_transactions/", "_indices/", "_cleanup/")
WEIGHTS = {
    "change": 9.0,
    "crash": 2.0,
    "tag": 2.0,
    "untag": 1.0,
    "branch": 2.0,
    "unbranch": 0.5,
    "restore": 1.0,
    "begin": 2.0,
    "commit": 2.0,
    "abandon": 0.5,
    "wait": 3.0,
    "clean": 4.0,
    "crash clean": 3.0,
}
"""How often each step comes."""

Line = str | None
Key = tuple[Line, int]


class DatedStore:
    """A store whose objects carry the time of the history's clock. What the codec writes is dated by :meth:`look`."""

    def __init__(self, store: Store, clock: SeededClock) -> None:
        self.inner, self._clock = store, clock
        self.written_ns: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        if name in ("delete_files", "delete_tree", "prune", "put_advice", "prepare", "sync"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def put(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)
        self.written_ns[path] = self._clock.now_ns()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        created = self.inner.put_if_absent(path, data)
        if created:
            self.written_ns[path] = self._clock.now_ns()
        return created

    def head(self, path: str) -> ObjectInfo:
        return self._dated(self.inner.head(path))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return map(self._dated, self.inner.list(prefix))

    def look(self) -> set[str]:
        """All paths that are there; those that are new are as old as this moment."""
        return {info.path for info in self.list("")}

    def _dated(self, info: ObjectInfo) -> ObjectInfo:
        return ObjectInfo(info.path, info.size, self.written_ns.setdefault(info.path, self._clock.now_ns()))


@dataclass
class History:
    """One history under way."""

    random: random.Random
    world: World
    dated: DatedStore
    next_id: int = 100
    names: int = 0
    pending: list[tuple[Line, int, list[Any], set[str]]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    # ---- asking the table

    def at(self, line: Line, world: World | None = None) -> tw.LanceDataset:
        main = tw.dataset(world or self.world)
        return main if line is None else main.checkout_version((line, None))

    def lines(self) -> list[Line]:
        return [None, *sorted(tw.dataset(self.world).branches.list())]

    def versions(self, line: Line) -> list[int]:
        return [entry["version"] for entry in self.at(line).versions()]

    def rows(self) -> dict[Key, list[int]]:
        """The ids in every version that is listed. Reading fails if a file is missing."""
        found = {}
        for line in self.lines():
            ds = self.at(line)
            for version in self.versions(line):
                at = ds.checkout_version((line, version)) if line else ds.checkout_version(version)
                found[line, version] = sorted(at.to_table(columns=["id"])["id"].to_pylist())
        return found

    def needed(self) -> set[str]:
        """Every file that some version needs, below the root of main."""
        root, found = self.world.store.location.uri.rstrip("/") + "/", set()
        for line in self.lines():
            ds = self.at(line)
            for version in self.versions(line):
                at = ds.checkout_version((line, version)) if line else ds.checkout_version(version)
                snapshot = at._snapshot
                here = "" if line is None else f"tree/{line}/"
                found.add(here + transaction_file_path(snapshot.manifest.transaction_file))
                for fragment in snapshot.fragments:
                    for file in fragment.files:
                        store, path = snapshot.data_place(file)
                        found.add(f"{store.location.uri}/{path}".removeprefix(root))
                    deletion = fragment.deletion
                    if deletion is not None:
                        store = snapshot.store_of(deletion.base_id)
                        found.add(f"{store.location.uri}/{deletion_path(fragment.id, deletion)}".removeprefix(root))
        return found

    def must_stay(self, line: Line, options: dict[str, Any], before: dict[Key, list[int]]) -> set[Key]:
        """Versions that a cleanup of `line` must not remove, by the words of the guide."""
        main = tw.dataset(self.world)
        listed = self.versions(line)
        stay = {key for key in before if key[0] != line}
        stay |= {(line, tag["version"]) for tag in main.tags.list().values() if tag["branch"] == line}
        stay |= {
            (line, each["parent_version"]) for each in main.branches.list().values() if each["parent_branch"] == line
        }
        stay.add((line, max(listed)))
        if "retain_versions" in options:
            stay |= {(line, version) for version in listed[-options["retain_versions"] :]}
        if options.get("older_than"):
            age_ns, now_ns = options["older_than"] // timedelta(microseconds=1) * 1000, self.world.clock.now_ns()
            ds = self.at(line)
            for version in listed:
                at = ds.checkout_version((line, version)) if line else ds.checkout_version(version)
                if at._snapshot.manifest.timestamp_ns > now_ns - age_ns:
                    stay.add((line, version))
        return stay

    # ---- steps

    def new_rows(self) -> dict[str, list[Any]]:
        count = self.random.randint(1, 4)
        self.next_id += count
        ids = list(range(self.next_id - count, self.next_id))
        return {"id": ids, "s": [f"row {number}" for number in ids]}

    def some_id(self, ds: tw.LanceDataset) -> int:
        ids = ds.to_table(columns=["id"])["id"].to_pylist()
        return self.random.choice(ids) if ids else 0

    def change(self, line: Line, world: World | None = None) -> None:
        """One change of rows through the public calls."""
        ds = self.at(line, world)
        match self.random.randrange(7):
            case 0 | 1:
                ds.insert(self.new_rows(), max_rows_per_file=2)
            case 2:
                tw.write_dataset(self.new_rows(), ds, mode="overwrite")
            case 3:
                ds.delete(f"id = {self.some_id(ds)}")
            case 4:
                ds.update({"s": "'u'"}, where=f"id = {self.some_id(ds)}", write_mode="rewrite_rows")
            case 5:
                ds.update({"s": "'c'"}, where=f"id = {self.some_id(ds)}", write_mode="rewrite_columns")
            case _:
                ds.optimize.compact_files(materialize_deletions_threshold=0.0)

    def crashed(self, action: Callable[[World], Any]) -> None:
        """The action in a process that dies at some storage call, if it comes to that."""
        fault = CrashBefore() if self.random.random() < 0.5 else CrashAfter()
        store = FaultyStore(self.dated, at_call(self.random.randrange(40), fault))  # type: ignore[arg-type]
        try:
            action(replace(self.world, store=store))
        except (SimulatedCrash, TablewrightError):
            return

    def step(self) -> None:
        self.dated.look()
        line = self.random.choice(self.lines())
        match self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]:
            case "change":
                self.note("change", line)
                self.change(line)
            case "crash":
                self.note("crash", line)
                self.crashed(lambda world: self.change(line, world))
            case "tag":
                self.names += 1
                ds, version = self.at(line), self.random.choice(self.versions(line))
                self.note("tag", line, version)
                self.told(lambda: ds.tags.create(f"t{self.names}", (line, version) if line else version))
            case "untag":
                tags = sorted(tw.dataset(self.world).tags.list())
                if tags:
                    tw.dataset(self.world).tags.delete(self.random.choice(tags))
            case "branch":
                self.names += 1
                ds, version = self.at(line), self.random.choice(self.versions(line))
                self.note("branch", line, version)
                self.told(lambda: ds.create_branch(f"b{self.names}", (line, version) if line else version))
            case "unbranch":
                if line is not None:
                    self.note("delete branch", line)
                    self.pending = [each for each in self.pending if each[0] != line]
                    self.told(lambda: tw.dataset(self.world).branches.delete(line))
            case "restore":
                version = self.random.choice(self.versions(line))
                self.note("restore", line, version)
                ds = self.at(line)
                (ds.checkout_version((line, version)) if line else ds.checkout_version(version)).restore()
            case "begin":
                self.begin(line)
            case "commit":
                self.commit()
            case "abandon":
                if self.pending:
                    self.pending.pop(self.random.randrange(len(self.pending)))
            case "wait":
                seconds = self.random.choice([60.0, 7200.0, 2 * DAY, 5 * DAY])
                self.note("wait", seconds)
                self.world.clock.sleep(seconds)
            case "clean":
                self.clean(line)
            case _:
                self.clean(line, crash=True)

    def told(self, action: Callable[[], Any]) -> None:
        """A refusal is fine: a version that a journal lists, a branch that others depend on."""
        try:
            action()
        except (VersionNotFound, InvalidRequest) as error:
            self.note("refused", str(error)[:80])

    def note(self, *words: Any) -> None:
        self.log.append(" ".join(map(str, words)))

    def begin(self, line: Line) -> None:
        """A writer writes its files, and commits them later."""
        ds, before = self.at(line), self.dated.look()
        fragments = tw.fragment.write_fragments(self.new_rows(), ds)
        files = {path for path in self.dated.look() - before if "/data/" in f"/{path}"}
        self.note("begin", line, ds.version)
        self.pending.append((line, ds.version, fragments, files))

    def commit(self) -> None:
        """A writer that is under way commits; one whose version was cleaned up, or overwritten, is refused."""
        if not self.pending:
            return
        line, version, fragments, files = self.pending.pop(self.random.randrange(len(self.pending)))
        if any(self.world.clock.now_ns() - self.dated.written_ns[path] >= WEEK_NS for path in files):
            return  # too slow: its files may be gone
        self.note("commit", line, version)
        try:
            operation = tw.LanceOperation.Append(fragments)
            tw.LanceDataset.commit(self.at(line), operation, read_version=version)
        except (TablewrightError, OSError) as error:
            self.note("refused", str(error)[:80])

    def clean(self, line: Line, *, crash: bool = False) -> None:
        options: dict[str, Any] = {"error_if_tagged_old_versions": False}
        if self.random.random() < 0.6:
            options["older_than"] = timedelta(seconds=self.random.choice([0, 1, 3600, 3 * DAY]))
        if "older_than" not in options or self.random.random() < 0.3:
            options["retain_versions"] = self.random.randint(1, 3)
        self.note("clean", line, options, "crash" if crash else "")
        before = self.rows()
        stay = self.must_stay(line, options, before)
        if crash:
            self.crashed(lambda world: self.at(line, world).cleanup_old_versions(**options))
        else:
            self.at(line).cleanup_old_versions(**options)
        after = self.rows()
        assert stay <= set(after), f"lost versions {stay - set(after)}"
        assert all(before[key] == ids for key, ids in after.items()), "a version has other rows"
        self.check_pending()

    def check_pending(self) -> None:
        now_ns, there = self.world.clock.now_ns(), self.dated.look()
        for _, _, _, files in self.pending:
            young = {path for path in files if now_ns - self.dated.written_ns[path] < WEEK_NS}
            assert young <= there, f"files of a writer under way are gone: {young - there}"

    def end(self) -> None:
        """All writers have ended: nothing may be left that no version needs."""
        self.pending.clear()
        self.world.clock.sleep(7200)
        before = self.rows()
        for _ in range(2):  # a branch that is cleaned up after its parent frees files of that
            for line in reversed(self.lines()):
                self.at(line).cleanup_old_versions(
                    timedelta(seconds=0), delete_unverified=True, error_if_tagged_old_versions=False
                )
        after = self.rows()
        assert all(before[key] == ids for key, ids in after.items()), "a version has other rows"
        described = tuple(f"tree/{line}/" for line in self.lines() if line)
        left = {
            info.path
            for info in self.dated.list("")
            if info.path.startswith(KINDS) or (info.path.startswith(described) and "/_versions/" not in info.path)
        }
        dead = left - self.needed()
        assert not dead, f"left behind: {sorted(dead)}"


def run_history(seed: int, budget: str = "off") -> list[str]:
    """Play a history; what happened, step by step. An assertion that fails names the seed and the steps.

    `budget` is one of `tests.caches.BUDGETS`.
    """
    with tempfile.TemporaryDirectory() as folder, cached(budget):
        place = f"memory://cleanup-history-{seed}-{time.monotonic_ns()}" if budget == "off" else folder
        return _played(seed, open_store(f"{place}/table", {} if budget == "off" else {"fsync": "false"}))


def _played(seed: int, store: Store) -> list[str]:
    clock = SeededClock(start_ns=1_800_000_000 * 10**9)
    dated = DatedStore(store, clock)
    history = History(random.Random(seed), seeded_world(dated, seed, clock), dated)  # type: ignore[arg-type]
    try:
        tw.write_dataset({"id": [1, 2, 3], "s": ["a", "b", "c"]}, history.world, max_rows_per_file=2)
        for _ in range(STEPS):
            history.step()
        history.end()
    except Exception as error:
        steps = "\n  ".join(history.log)
        raise AssertionError(f"history {seed}: {error!r}\n  {steps}") from error
    finally:
        for info in list(dated.inner.list("")):
            dated.inner.delete(info.path)
    return history.log


def main() -> None:
    """Play as many histories as the first argument says, from the seed that the second says."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began = time.monotonic()
    for seed in range(first, first + count):
        run_history(seed, list(BUDGETS)[seed % len(BUDGETS)])
    print(
        f"{count} histories from seed {first}: no reachable file was removed, no dead one left; "
        f"{time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
