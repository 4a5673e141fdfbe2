"""Compaction in steps, under pylance's names: plan, execute tasks wherever you like, commit the results.

Plans, tasks and results are small values without rows. They can be pickled, and written as JSON and read back, so that
tasks run on machines of your choice.

Tests: ``tests/unit/api/test_optimize.py``, ``tests/differential/test_compact.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tablewright.api.metadata import FragmentMetadata
from tablewright.api.pinned import Pinned, run_on, table_of
from tablewright.errors import CompactionIncomplete, InvalidRequest
from tablewright.format.fragment import Fragment
from tablewright.jobs.compact import Compacted, CompactJob
from tablewright.jobs.report import Report
from tablewright.operations.compact import plan as plans
from tablewright.operations.compact.metrics import CompactionMetrics, metrics_of_rewritten
from tablewright.operations.compact.options import CompactionOptions, compaction_options
from tablewright.operations.compact.task import Rewritten, group_task, rewrite_group
from tablewright.snapshot.snapshot import Snapshot, open_snapshot

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
    "compact",
    "options_for",
]


def _to_json(fragments: Sequence[Fragment]) -> list[dict[str, Any]]:
    return [FragmentMetadata.of(fragment).to_json() for fragment in fragments]


def _fragments(values: Sequence[Mapping[str, Any]]) -> tuple[Fragment, ...]:
    return tuple(FragmentMetadata.from_json(value).to_fragment() for value in values)


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"This is no JSON text of a {what}: {error}") from None


def options_for(dataset: Pinned, given: Mapping[str, Any] | None) -> CompactionOptions:
    """The options of a call on this table: its config fills in what was not given."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidRequest(f"Compaction options are a dict, not {given!r}.")
    return compaction_options(table_of(dataset).snapshot.manifest.config, given or {})


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """What a task made of its fragments, to be committed by :meth:`Compaction.commit`."""

    rewritten: Rewritten

    @property
    def read_version(self) -> int:
        """The version that the task was planned on."""
        return self.rewritten.read_version

    @property
    def original_fragments(self) -> list[FragmentMetadata]:
        """The fragments that are replaced."""
        return [FragmentMetadata.of(fragment) for fragment in self.rewritten.old_fragments]

    @property
    def new_fragments(self) -> list[FragmentMetadata]:
        """The new fragments; they get ids and row ids when they are committed."""
        return [FragmentMetadata.of(fragment) for fragment in self.rewritten.new_fragments]

    @property
    def metrics(self) -> CompactionMetrics:
        """What was replaced by what."""
        return metrics_of_rewritten(self.rewritten)

    def json(self) -> str:
        """The result as JSON."""
        made = self.rewritten
        return json.dumps(
            {
                "metrics": asdict(self.metrics),
                "new_fragments": _to_json(made.new_fragments),
                "read_version": made.read_version,
                "original_fragments": _to_json(made.old_fragments),
                "rows_read": made.rows_read,
                "bytes_read": made.bytes_read,
                "seconds": made.seconds,
                "sidecars": list(made.sidecars),
            }
        )

    @staticmethod
    def from_json(text: str) -> RewriteResult:
        """From the text of :meth:`json`."""
        values = _parsed(text, "RewriteResult")
        try:
            return RewriteResult(
                Rewritten(
                    old_fragments=_fragments(values["original_fragments"]),
                    new_fragments=_fragments(values["new_fragments"]),
                    read_version=values["read_version"],
                    rows_read=values.get("rows_read", 0),
                    bytes_read=values.get("bytes_read", 0),
                    seconds=values.get("seconds", 0.0),
                    sidecars=tuple(values.get("sidecars", ())),
                )
            )
        except (KeyError, TypeError) as error:
            raise InvalidRequest(f"This is no JSON text of a RewriteResult: {error!r} is missing or wrong.") from None

    def __repr__(self) -> str:
        made = self.rewritten
        old, new = [f.id for f in made.old_fragments], [f.physical_rows for f in made.new_fragments]
        return f"RewriteResult(read_version={made.read_version}, old_fragments={old}, rows_of_new_fragments={new})"


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One group of fragments that is rewritten."""

    task: plans.CompactionTask

    @property
    def read_version(self) -> int:
        """The version that the task was planned on."""
        return self.task.read_version

    @property
    def fragments(self) -> list[FragmentMetadata]:
        """The fragments that are rewritten."""
        return [FragmentMetadata.of(fragment) for fragment in self.task.fragments]

    def execute(self, dataset: Pinned) -> RewriteResult:
        """Write the new files. Nothing is visible before :meth:`Compaction.commit`."""
        snapshot = _version_of(table_of(dataset).snapshot, self.read_version)
        return RewriteResult(rewrite_group(group_task(self.task, snapshot), snapshot.world))

    def json(self) -> str:
        """The task as JSON."""
        return json.dumps(_task_values(self.task))

    @staticmethod
    def from_json(text: str) -> CompactionTask:
        """From the text of :meth:`json`."""
        return CompactionTask(_task_of(_parsed(text, "CompactionTask")))

    def __repr__(self) -> str:
        ids = [fragment.id for fragment in self.task.fragments]
        return f"CompactionTask(read_version={self.read_version}, fragments={ids})"


def _version_of(snapshot: Snapshot, version: int) -> Snapshot:
    return snapshot if snapshot.version == version else open_snapshot(snapshot.world, version)


def _task_values(task: plans.CompactionTask) -> dict[str, Any]:
    return {
        "task": {"fragments": _to_json(task.fragments)},
        "read_version": task.read_version,
        "options": task.options.to_dict(),
        "reason": task.reason,
    }


def _task_of(values: Mapping[str, Any]) -> plans.CompactionTask:
    try:
        return plans.CompactionTask(
            fragments=_fragments(values["task"]["fragments"]),
            read_version=values["read_version"],
            options=compaction_options({}, values["options"]),
            reason=values.get("reason", ""),
        )
    except (KeyError, TypeError) as error:
        raise InvalidRequest(f"This is no JSON text of a CompactionTask: {error!r} is missing or wrong.") from None


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The tasks of a compaction. ``str(plan)`` explains it."""

    plan: plans.CompactionPlan

    @property
    def read_version(self) -> int:
        """The version that was planned on."""
        return self.plan.read_version

    @property
    def tasks(self) -> list[CompactionTask]:
        """The tasks; each can be executed on its own, on any machine that reaches the table."""
        return [CompactionTask(task) for task in self.plan.tasks]

    def num_tasks(self) -> int:
        """How many tasks there are."""
        return len(self.plan.tasks)

    def json(self) -> str:
        """The plan as JSON."""
        plan = self.plan
        return json.dumps(
            {
                "uri": plan.uri,
                "read_version": plan.read_version,
                "options": plan.options.to_dict(),
                "tasks": [_task_values(task) for task in plan.tasks],
                "num_fragments": plan.num_fragments,
                "indices": list(plan.indices),
            }
        )

    @staticmethod
    def from_json(text: str) -> CompactionPlan:
        """From the text of :meth:`json`."""
        values = _parsed(text, "CompactionPlan")
        try:
            return CompactionPlan(
                plans.CompactionPlan(
                    uri=values["uri"],
                    read_version=values["read_version"],
                    options=compaction_options({}, values["options"]),
                    tasks=tuple(map(_task_of, values["tasks"])),
                    num_fragments=values["num_fragments"],
                    indices=tuple(values["indices"]),
                )
            )
        except (KeyError, TypeError) as error:
            raise InvalidRequest(f"This is no JSON text of a CompactionPlan: {error!r} is missing or wrong.") from None

    def __str__(self) -> str:
        return str(self.plan)

    def __repr__(self) -> str:
        return f"CompactionPlan(read_version={self.read_version}, tasks=<{self.num_tasks()} compaction tasks>)"


class Compaction:
    """Compaction in steps.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": range(40)}, "memory://compaction-example", max_rows_per_file=10)
    >>> plan = Compaction.plan(ds, {"target_rows_per_fragment": 20})
    >>> plan
    CompactionPlan(read_version=1, tasks=<2 compaction tasks>)
    >>> Compaction.commit(ds, [task.execute(ds) for task in plan.tasks]).fragments_added
    2
    """

    @staticmethod
    def plan(dataset: Pinned, options: Mapping[str, Any] | None = None) -> CompactionPlan:
        """Which fragments of the dataset's version are worth rewriting. Nothing is written."""
        return CompactionPlan(plans.plan_compaction(table_of(dataset).snapshot, options_for(dataset, options)))

    @staticmethod
    def execute(dataset: Pinned, options: Mapping[str, Any] | None = None) -> CompactionMetrics:
        """Plan, run and commit: the same as ``dataset.optimize.compact_files(**options)``."""
        return compact(dataset, options_for(dataset, options))

    @staticmethod
    def commit(
        dataset: Pinned, rewrites: Sequence[RewriteResult], options: Mapping[str, Any] | None = None
    ) -> CompactionMetrics:
        """Commit the results of some tasks, and move the dataset. What others did meanwhile is taken over."""
        wrong = [result for result in rewrites if not isinstance(result, RewriteResult)]
        if wrong:
            raise InvalidRequest(f"Compaction.commit takes results of CompactionTask.execute, not {wrong[0]!r}.")
        results = [result.rewritten for result in rewrites]
        return compact(dataset, options_for(dataset, options), results=results)


def compact(
    dataset: Pinned,
    options: CompactionOptions,
    *,
    results: Sequence[Rewritten] | None = None,
    report: Report | None = None,
    plan: plans.CompactionPlan | None = None,
) -> CompactionMetrics:
    """Run a compaction, or commit the results of one, and move the dataset; groups that failed are reported then."""
    table = table_of(dataset)
    done: Compacted = run_on(dataset, CompactJob(options, table.world, results), report, plan=plan)
    if done.errors and not done.metrics.fragments_removed:
        raise done.errors[0]
    if done.errors:
        texts = tuple(map(str, done.errors))
        raise CompactionIncomplete(table.world.store.location.uri, texts, done.metrics) from done.errors[0]
    return done.metrics
