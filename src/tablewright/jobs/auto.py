"""``auto``: does what health recommends, within bounds, and says what it did and why.

1. Measure the newest version. Compact if that is recommended; with a bound of time in rounds that are committed one by
   one, so that what was done stays when time is over.
2. Measure again if something changed. Optimize indices if that is recommended, and clean up: as the table's
   ``lance.auto_cleanup.*`` say, else versions older than two weeks.

Whoever runs it every few hundred commits must not pay for the number of versions: measuring reads the manifests that
stay, and a cleanup, which has to read all of them once, begins only if the oldest version that may go is old enough.

Steps can run twice at a time: a group that another compaction took is dropped before its commit, and a cleanup never
takes what a version needs. So a run on a schedule may overlap another, in any process.

Tests: ``tests/unit/jobs/test_auto.py``, ``tests/concurrency/test_auto.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from tablewright.errors import CommitConflict, InvalidRequest, UnsupportedFeature
from tablewright.jobs.attempt import run_job
from tablewright.jobs.cleanup import clean_up, may_remove
from tablewright.jobs.compact import CompactJob
from tablewright.jobs.create_index import OptimizeIndicesJob
from tablewright.jobs.table import Table
from tablewright.operations.cleanup.files import CleanupStats
from tablewright.operations.compact.options import CompactionOptions, compaction_options
from tablewright.operations.compact.plan import plan_compaction
from tablewright.operations.create_index.merge import OptimizeOptions, plan_optimize
from tablewright.operations.health import TableHealth, measure_latest
from tablewright.operations.health.auto import (
    DONE,
    FAILED,
    SKIPPED,
    AutoOptions,
    AutoReport,
    AutoStep,
    cleanup_options_of,
    rounds_of,
)
from tablewright.operations.health.values import Recommendation
from tablewright.redact import redact
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import open_newest

__all__ = ["run_auto"]

_ERRORS_SHOWN = 3


def run_auto(table: Table, options: AutoOptions) -> tuple[Snapshot, AutoReport]:
    """Run on the newest version of a table. Returns the version after it, and what was done.

    Raises :class:`~tablewright.errors.VersionNotFound` if the table was dropped or replaced since it was opened.
    """
    return _Run(table, options).run()


class _Run:
    """One run. It remembers the newest version that it knows."""

    def __init__(self, table: Table, options: AutoOptions) -> None:
        self._table, self._options = table, options
        self._world = table.world
        self._begin = self._world.clock.monotonic()
        self._newest = open_newest(table.snapshot)
        self._old_files = False

    def run(self) -> tuple[Snapshot, AutoReport]:
        before = self._newest
        health, old_files = measure_latest(before, self._options.health)
        steps = [self._step(each, health) for each in health.recommendations if each.action == "compact"]
        if self._newest is not before:
            health, old_files = measure_latest(self._newest, self._options.health)
        self._old_files = old_files
        later = [each for each in health.recommendations if each.action in ("optimize_indices", "cleanup")]
        steps += [self._step(each, health) for each in later]
        report = AutoReport(
            uri=redact(before.location.uri),
            version_before=before.version,
            version_after=self._newest.version,
            steps=tuple(steps),
            seconds=self._world.clock.monotonic() - self._begin,
            reason="" if steps else health.recommendations[0].reason,
        )
        return self._newest, report

    def _is_late(self) -> bool:
        limit = self._options.max_seconds
        return limit is not None and self._world.clock.monotonic() - self._begin >= limit

    def _step(self, why: Recommendation, health: TableHealth) -> AutoStep:
        step = AutoStep(action=why.action, outcome=SKIPPED, reason=why.reason)
        if self._is_late():
            return replace(step, note=f"max_seconds={self._options.max_seconds} had passed")
        try:
            if why.action == "optimize_indices":
                return self._optimize_indices(step)
            return self._compact(step, health) if why.action == "compact" else self._clean_up(step)
        except UnsupportedFeature as error:
            return replace(step, note=str(error))
        except (CommitConflict, InvalidRequest) as error:  # the table was replaced, or its config is wrong
            return replace(step, outcome=FAILED, note=str(error))

    # ---- compaction

    def _compact(self, step: AutoStep, health: TableHealth) -> AutoStep:
        planned = self._newest
        options = self._compaction_options(planned, health)
        plan = plan_compaction(planned, options)
        if not plan.tasks:
            return replace(
                step, note=f"no group of fragments fits the limits, max_source_bytes={options.max_source_bytes}"
            )
        rounds = rounds_of(plan.tasks, timed=self._options.max_seconds is not None)
        figures: Counter[str] = Counter()
        errors: list[Exception] = []
        note = ""
        for number, tasks in enumerate(rounds):
            if number and self._is_late():
                note = f"ended after {number} of {len(rounds)} rounds, as max_seconds had passed"
                break
            job = CompactJob(options, self._world)
            done = run_job(job, self._table.at(planned), plan=replace(plan, tasks=tasks))
            figures.update(done.result.metrics.to_dict())
            errors += done.result.errors
            if done.snapshot.version > self._newest.version:
                self._newest = done.snapshot
        texts = list(dict.fromkeys(map(str, errors)))[:_ERRORS_SHOWN]
        outcome = DONE if figures["fragments_removed"] or not errors else _outcome(errors)
        return replace(step, outcome=outcome, note="; ".join([*filter(None, [note]), *texts]), figures=dict(figures))

    def _compaction_options(self, snapshot: Snapshot, health: TableHealth) -> CompactionOptions:
        given = {
            "materialize_deletions_threshold": health.deletion_limit,
            "target_rows_per_fragment": health.shape.target_rows,
            "max_source_bytes": self._options.max_bytes,
        }
        return compaction_options(snapshot.manifest.config, given)

    # ---- indices

    def _optimize_indices(self, step: AutoStep) -> AutoStep:
        """Indices of types that we do not build are skipped, and named in the note."""
        options = OptimizeOptions()
        plan = plan_optimize(self._newest, options)
        note = "; ".join(f"{name}: {why}" for name, why in plan.left_alone.items())
        if not plan.segments:
            return replace(step, note=note)
        done = run_job(OptimizeIndicesJob(options, self._world), self._table.at(self._newest), plan=plan)
        self._newest = done.snapshot
        files = [file for entry in done.result for file in entry.files]
        figures = {"indices": len(done.result), "bytes_written": sum(file.size_bytes for file in files)}
        return replace(step, outcome=DONE, note=note, figures=figures)

    # ---- cleanup

    def _clean_up(self, step: AutoStep) -> AutoStep:
        options = cleanup_options_of(self._newest.manifest.config)
        table = self._table.at(self._newest)
        stats = clean_up(table, options) if self._old_files or may_remove(table, options) else CleanupStats()
        note = "" if stats.old_versions else f"no version could go: older_than={options.older_than}"
        if options.retain_versions is not None:
            note += f", retain_versions={options.retain_versions}" if note else ""
        return replace(step, outcome=DONE, note=note, figures=asdict(stats))


def _outcome(errors: Sequence[Exception]) -> str:
    """Of a step that did nothing: what this release can't do is skipped, all else has failed."""
    return SKIPPED if all(isinstance(error, UnsupportedFeature) for error in errors) else FAILED
