"""``ds.optimize``: what keeps a table in good shape, under pylance's names.

Tests: ``tests/unit/api/test_optimize.py``, ``tests/differential/test_compact.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tablewright.api.auto_cleanup import AutoCleanupConfig, cleanup_config, commits
from tablewright.api.compaction import CompactionMetrics, compact, options_for
from tablewright.api.pinned import Pinned, move, run_on, table_of
from tablewright.checks import listed
from tablewright.errors import InvalidRequest
from tablewright.format.transaction import MapUpdate, UpdateConfig
from tablewright.jobs.auto import run_auto
from tablewright.jobs.commit import commit_operation
from tablewright.jobs.compact import CompactJob
from tablewright.jobs.create_index import OptimizeIndicesJob
from tablewright.jobs.report import Report
from tablewright.jobs.work import Work
from tablewright.operations.cleanup.auto import PREFIX, auto_options, is_due
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.compact.plan import CompactionPlan, plan_compaction
from tablewright.operations.create_index.merge import OptimizeOptions
from tablewright.operations.health.auto import AutoOptions, AutoReport
from tablewright.storage.uncommitted import UncommittedFiles

__all__ = ["DatasetOptimizer", "PreparedCompaction"]


class PreparedCompaction:
    """A compaction that is planned but not run yet.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": range(40)}, "memory://prepared-compaction-example", max_rows_per_file=10)
    >>> prepared = ds.optimize.prepare_compact_files(target_rows_per_fragment=20)
    >>> print(prepared.explain_plan().splitlines()[1].split(", bytes")[0])
      Rewrite: fragments=[0, 1], num_fragments=2, rows=20, deleted_rows=0
    >>> prepared.execute().fragments_removed
    4
    """

    def __init__(self, dataset: Pinned, options: CompactionOptions) -> None:
        self._dataset, self._options = dataset, options
        self._snapshot = table_of(dataset).snapshot
        self._plan = plan_compaction(self._snapshot, options)

    @commits
    def execute(self, *, skip_auto_cleanup: bool = False) -> CompactionMetrics:
        """Run and commit it."""
        return compact(self._dataset, self._options, plan=self._current())

    def explain_plan(self) -> str:
        """What it will do, why, and where. Nothing is written."""
        table = table_of(self._dataset)
        work = Work(table, UncommittedFiles(table.world.store), Report())
        return CompactJob(self._options, table.world).explain(self._current(), work)

    @commits
    def analyze_plan(self, *, skip_auto_cleanup: bool = False) -> str:
        """Execute it, and say what it did."""
        plan, report = self._current(), Report()
        metrics = compact(self._dataset, self._options, plan=plan, report=report)
        counts = {name: value for name, value in metrics.to_dict().items() if isinstance(value, int)}
        return "\n".join([str(plan), *report.lines(counts)])

    def _current(self) -> CompactionPlan:
        """The plan for the version that the dataset shows now."""
        snapshot = table_of(self._dataset).snapshot
        return self._plan if snapshot is self._snapshot else plan_compaction(snapshot, self._options)


class DatasetOptimizer:
    """Compaction of one dataset, and its automatic cleanup.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": range(40)}, "memory://optimize-example", max_rows_per_file=10)
    >>> ds.optimize.compact_files().fragments_added, len(ds.get_fragments())
    (1, 1)
    """

    def __init__(self, dataset: Pinned) -> None:
        self._dataset = dataset

    @commits
    def auto(
        self,
        *,
        workload: str = "mixed",
        target_rows_per_fragment: int | None = None,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        skip_auto_cleanup: bool = False,
    ) -> AutoReport:
        """Do what :meth:`~tablewright.LanceDataset.health` recommends: compact, then clean up; move to the new version.

        It works on the newest version, and is safe on a schedule and beside itself in another process. ``max_bytes``
        bounds what compaction reads, after ``max_seconds`` no further step begins. Cleanup follows
        ``lance.auto_cleanup.*`` of the table's config, else it removes versions that are two weeks old. What was
        skipped is in the report with its reason. ``skip_auto_cleanup`` leaves out the automatic cleanup after a commit,
        which the config may ask for too.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(120)}, "memory://auto-example", max_rows_per_file=10)
        >>> report = ds.optimize.auto()
        >>> report.step("compact").figures["fragments_removed"], len(ds.get_fragments())
        (12, 1)
        """
        options = AutoOptions(
            workload=workload,
            target_rows_per_fragment=target_rows_per_fragment,
            max_bytes=max_bytes,
            max_seconds=max_seconds,
        )
        newest, report = run_auto(table_of(self._dataset), options)
        move(self._dataset, newest)
        return report

    @commits
    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        materialize_columns_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: str | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        data_storage_version: str | None = None,
        skip_auto_cleanup: bool = False,
    ) -> CompactionMetrics:
        """Rewrite small fragments together, and those with many deleted rows or dead columns by themselves.

        What is not given comes from the table's config (``lance.compaction.*``), then from the defaults of
        :class:`~tablewright.operations.compact.options.CompactionOptions`. Writers are not blocked, and do not block
        it: what they commit meanwhile is taken over. Groups whose task fails raise
        :class:`~tablewright.errors.CompactionIncomplete` once the others are committed.
        """
        given = {name: value for name, value in locals().items() if name not in ("self", "skip_auto_cleanup")}
        return self.prepare_compact_files(**given).execute()

    def prepare_compact_files(self, **options: Any) -> PreparedCompaction:
        """A compaction that can be explained before it runs; options as in :meth:`compact_files`."""
        return PreparedCompaction(self._dataset, options_for(self._dataset, options))

    @commits
    def optimize_indices(
        self,
        *,
        index_names: Sequence[str] | None = None,
        num_indices_to_merge: int | None = None,
        retrain: bool = False,
        skip_auto_cleanup: bool = False,
    ) -> None:
        """Index what is new, merge segments, drop entries of rows that are gone; move to the new version.

        Only fragments that no segment covers are read. ``num_indices_to_merge`` says how many of the newest segments
        become one with them: all by default, 0 adds a segment. Where an older segment could hold stale values of new
        rows, all segments are merged in any case. ``retrain=True`` builds the indices again. Indices of types that are
        not built here are left to pylance. If there is nothing to do, nothing is committed.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(100)}, "memory://optimize-indices-example")
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.insert({"id": [100, 101]})
        >>> ds.stats.index_stats("id_idx")["num_unindexed_rows"]
        2
        >>> ds.optimize.optimize_indices()
        >>> ds.stats.index_stats("id_idx")["num_unindexed_rows"]
        0
        """
        options = OptimizeOptions(
            index_names=None if index_names is None else tuple(listed(index_names, "index_names")),
            num_indices_to_merge=num_indices_to_merge,
            retrain=retrain,
        )
        run_on(self._dataset, OptimizeIndicesJob(options, table_of(self._dataset).world))

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig | Mapping[str, Any]) -> None:
        """Clean up old versions after every ``interval`` versions: those older than ``older_than_seconds``.

        ``retain_versions`` keeps the newest ones, too. It is stored in the table's config, where every Lance writer
        acts on it.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1]}, "memory://auto-cleanup-example")
        >>> ds.optimize.enable_auto_cleanup({"interval": 2, "older_than_seconds": 0})
        >>> for number in range(5):
        ...     ds.insert({"id": [number]})
        >>> [each["version"] for each in ds.versions()]
        [5, 6, 7]
        """
        config = cleanup_config(auto_cleanup_config)
        age = auto_cleanup_config.get("older_than_seconds")
        if age is not None:
            config[PREFIX + "older_than"] = f"{age}s"
        if PREFIX + "interval" not in config:
            raise InvalidRequest("enable_auto_cleanup needs an interval: after how many versions it runs.")
        auto_options(config)
        is_due(config, ())
        _update_config(self._dataset, config)

    def disable_auto_cleanup(self) -> None:
        """Stop cleaning up after commits."""
        keys = [key for key in table_of(self._dataset).snapshot.manifest.config if key.startswith(PREFIX)]
        _update_config(self._dataset, dict.fromkeys(keys))


@commits
def _update_config(dataset: Pinned, values: Mapping[str, str | None]) -> None:
    update = UpdateConfig(config_updates=MapUpdate(entries=dict(values)))
    move(dataset, commit_operation(table_of(dataset), update))
