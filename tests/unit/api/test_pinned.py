"""What is pinned to a version: moved by jobs, and by nothing else."""

from __future__ import annotations

import pytest

import tablewright as tw
from tablewright.api.pinned import Pinned, move, run_on, scan_defaults, table_of
from tablewright.errors import InvalidRequest
from tablewright.jobs.delete import DeleteJob
from tablewright.testing import memory_world


def test_a_job_moves_it_to_the_version_that_it_made() -> None:
    ds = tw.write_dataset({"id": [1, 2]}, memory_world(seed=1))
    assert run_on(ds, DeleteJob(predicate="id = 1")) == {"num_deleted_rows": 1}
    assert (ds.version, ds.count_rows(), table_of(ds).snapshot.version) == (2, 1, 2)


def test_a_job_that_fails_does_not() -> None:
    ds = tw.write_dataset({"id": [1, 2]}, memory_world(seed=1))
    with pytest.raises(InvalidRequest):
        run_on(ds, DeleteJob(predicate="nothing = 1"))
    assert ds.version == 1


def test_the_engine_that_was_asked_for_stays() -> None:
    ds = tw.dataset(tw.write_dataset({"id": [1]}, memory_world(seed=1))._world, engine="local")
    ds.insert({"id": [2]})
    assert (ds.version, table_of(ds).engine) == (2, "local")


def test_moving_shows_another_version_to_arrow_too() -> None:
    world = memory_world(seed=1)
    ds = tw.write_dataset({"id": [1]}, world)
    other = tw.dataset(world, default_scan_options={"batch_size": 7})
    ds.add_columns({"n": "id"})
    move(other, table_of(ds).snapshot)
    assert (other.schema.names, scan_defaults(other)) == (["id", "n"], {"batch_size": 7})
    assert isinstance(other, Pinned)
