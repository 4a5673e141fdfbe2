"""The public face on a store that a test owns: every call of this thread works in the world that stands here.

`write_dataset`, `dataset` and `commit` ask `open_world` for a store by its address. On stage it answers with the
thread's own world instead, so faults and races reach exactly the code that users run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.storage import Store, open_store
from tablewright.testing import Call, CrashAfter, DenyCreation, Fault, LoseReply, StaleList, seeded_world
from tablewright.world import World

__all__ = [
    "ADDRESS",
    "Judged",
    "copied",
    "has_effect",
    "history",
    "listing",
    "makes_sense",
    "new_store",
    "numbers",
    "on_stage",
    "set_up",
    "within",
]

ADDRESS = "memory://stage/table"
_MODULES = ("dataset", "pinned")
_thread = threading.local()
_names = iter(range(10**9))


def set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, in this test, tables are opened in the world of the thread."""
    for module in _MODULES:
        monkeypatch.setattr(f"tablewright.api.{module}.open_world", lambda *_, **__: _thread.world)


@contextmanager
def within(world: World) -> Iterator[None]:
    """Calls of this thread happen in `world`."""
    before = getattr(_thread, "world", None)
    _thread.world = world
    try:
        yield
    finally:
        _thread.world = before


def on_stage(store: Store, action: Callable[[], Any], seed: int = 0) -> Any:
    """Run `action` in a seeded world around `store`."""
    with within(seeded_world(store, seed)):
        return action()


def copied(store: Store) -> Store:
    """A memory store of its own with the same objects."""
    copy = new_store()
    for info in store.list(""):
        copy.put(info.path, store.get(info.path))
    return copy


def listing(store: Store) -> set[str]:
    """Every object, the hint aside, which is advice and may be old."""
    return {info.path for info in store.list("") if not info.path.endswith("latest_version_hint.json")}


def has_effect(call: Call) -> bool:
    """Whether a call changes a store. If not, to fail before it or after it is the same."""
    return call.method.startswith(("put", "delete"))


def makes_sense(fault: Fault, call: Call) -> bool:
    """Whether a fault at this call is one that no other fault at it stands for."""
    match fault:
        case DenyCreation():
            return call.method == "put_if_absent"
        case StaleList():
            return call.method == "list"
        case _:
            return has_effect(call) or isinstance(fault, LoseReply | CrashAfter)


class Judged:
    """What stores held and how the writer ended. Many faults come out at the same, and one of them tells for all."""

    def __init__(self) -> None:
        self._cases: set[tuple[frozenset[tuple[str, bytes]], type[BaseException] | None]] = set()

    def is_new(self, store: Store, error: BaseException | None) -> bool:
        """Whether no store of these contents was met after such an end; the hint, which is advice, does not count."""
        contents = frozenset((path, bytes(store.get(path))) for path in listing(store))
        case = contents, None if error is None else type(error)
        known = case in self._cases
        self._cases.add(case)
        return not known

    @property
    def endings(self) -> set[type[BaseException] | None]:
        """The kinds of errors met so far, and None for success."""
        return {ending for _, ending in self._cases}


def numbers(start: int, stop: int) -> pa.Table:
    """Rows `start` to `stop` (exclusive)."""
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "s": [f"row {i}" for i in range(start, stop)]})


def new_store() -> Store:
    """An empty memory store that nobody else uses."""
    return open_store(f"memory://stage-{next(_names)}/table")


def history(store: Store) -> list[list[int]]:
    """The ids in every version, as a fresh reader finds them; empty if there is no table. Each must be whole."""

    def read() -> list[list[int]]:
        dataset = tw.dataset(ADDRESS)
        dataset.validate()
        versions = [entry["version"] for entry in dataset.versions()]
        assert versions == list(range(1, dataset.version + 1))
        opened = [dataset.checkout_version(number) for number in versions[:-1]] + [dataset]
        return [each.to_table(columns=["id"])["id"].to_pylist() for each in opened]

    try:
        return on_stage(store, read)
    except tw.errors.TableNotFound:
        return []
