"""Running an operation again: how often, how long, and what is not tried again."""

from __future__ import annotations

from typing import Any

import pytest

from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.testing.worlds import memory_world
from tablewright.transaction.retry import RetryOptions, with_retries


class Losing:
    """An operation that loses ``times`` races, then succeeds; each try takes ``seconds``."""

    def __init__(self, times: int, *, retryable: bool = True, seconds: float = 0.0) -> None:
        self.world, self.tries = memory_world(), 0
        self._times, self._retryable, self._seconds = times, retryable, seconds

    def __call__(self, attempt: int) -> str:
        assert attempt == self.tries
        self.tries += 1
        self.world.clock.sleep(self._seconds)
        if self.tries <= self._times:
            raise CommitConflict("Delete", "Update", 5, retryable=self._retryable, fragments=(1,))
        return "done"


def test_it_runs_until_it_commits() -> None:
    run = Losing(3)
    assert with_retries(run.world, run) == "done"
    assert run.tries == 4


def test_retries_run_out_and_the_last_conflict_is_the_cause() -> None:
    run = Losing(99)
    with pytest.raises(CommitConflict, match=r"Too many concurrent writers. Attempted 2 retries") as caught:
        with_retries(run.world, run, RetryOptions(conflict_retries=2))
    assert (run.tries, caught.value.fragments, caught.value.version) == (3, (1,), 5)
    assert isinstance(caught.value.__cause__, CommitConflict)


def test_time_runs_out() -> None:
    run = Losing(99, seconds=20.0)
    with pytest.raises(CommitConflict, match="Too many concurrent writers"):
        with_retries(run.world, run, RetryOptions(retry_timeout_seconds=30.0))
    assert run.tries == 2


def test_without_retries_the_conflict_comes_as_it_is() -> None:
    run = Losing(1)
    with pytest.raises(CommitConflict, match="Please retry"):
        with_retries(run.world, run, RetryOptions(conflict_retries=0))
    assert run.tries == 1


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"conflict_retries": 2}, "conflict_retries=2"),
        ({"conflict_retries": 0}, "conflict_retries=0"),
        ({"retry_timeout_seconds": 30.0}, "retry_timeout=30 s"),
    ],
)
def test_the_error_names_the_arguments_that_try_longer(options: dict[str, Any], limit: str) -> None:
    run = Losing(99, seconds=20.0 if "retry_timeout_seconds" in options else 0.0)
    with pytest.raises(CommitConflict) as caught:
        with_retries(run.world, run, RetryOptions(**options, are_arguments=True))
    assert f"It ran with {limit}; a higher conflict_retries= or retry_timeout= tries longer" in str(caught.value)
    with pytest.raises(CommitConflict) as caught:  # an operation that has no such arguments does not name them
        with_retries(run.world, Losing(99), RetryOptions(**options))
    assert "conflict_retries" not in str(caught.value)


def test_what_can_not_be_retried_is_not() -> None:
    run = Losing(1, retryable=False)
    with pytest.raises(CommitConflict, match="Incompatible"):
        with_retries(run.world, run)
    assert run.tries == 1


def test_other_errors_pass() -> None:
    def fails(attempt: int) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        with_retries(memory_world(), fails)


@pytest.mark.parametrize("wrong", [{"conflict_retries": -1}, {"retry_timeout_seconds": -1.0}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        RetryOptions(**wrong)
