"""From options to versions of a table, on the driver.

A :class:`Pin` is a decided version, small enough to travel: a later process opens the same one again.

Tests: tests/unit/spark/test_places.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tablewright.api.locate import instant_ns, open_world
from tablewright.snapshot.reference import open_reference
from tablewright.snapshot.refs import branch_world
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.spark.options import Place, ReadOptions
from tablewright.world import World

__all__ = ["Pin", "open_pinned", "open_place", "open_version", "pin_of"]


class Pin(NamedTuple):
    """One version of a table: the branch (``None`` is main) and its number there."""

    branch: str | None
    version: int


def open_place(place: Place) -> World:
    """The world of a table, or of one of its branches. Nothing is read yet."""
    return branch_world(open_world(place.uri, place.storage), place.branch)


def open_version(options: ReadOptions) -> Snapshot:
    """The version that options name: the latest one if they name none."""
    if options.tag is not None:
        return open_snapshot(open_world(options.place.uri, options.place.storage), tag=options.tag)
    if options.place.branch is not None and options.asof is None:
        main = open_snapshot(open_world(options.place.uri, options.place.storage))
        return open_reference(main, (options.place.branch, options.version))
    asof_ns = None if options.asof is None else instant_ns(options.asof)
    return open_snapshot(open_place(options.place), options.version, asof_ns=asof_ns)


def pin_of(options: ReadOptions) -> Pin:
    """The version that options name now."""
    snapshot = open_version(options)
    return Pin(snapshot.branch, snapshot.version)


def open_pinned(place: Place, pin: Pin) -> Snapshot:
    """The version that was decided before."""
    return open_snapshot(open_place(replace(place, branch=pin.branch)), pin.version)
