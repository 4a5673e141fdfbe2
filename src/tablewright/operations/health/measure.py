"""``measure_health``: reads what is needed and puts the answer together.

Manifests and listings are read, footers of files with dead columns, and, unless switched off, a sample of rows. The
fragments themselves are never decoded, so a hundred thousand of them take seconds.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence

from tablewright.format.fragment.entries import FragmentFiles, files_of
from tablewright.format.manifest_sizes import sizes_of_manifest
from tablewright.format.naming import index_dir
from tablewright.format.wire import Ints
from tablewright.operations.health.dead_columns import DeadColumns, measure_dead_columns
from tablewright.operations.health.fragments import FragmentFigures, figures_of
from tablewright.operations.health.growth import growth_of
from tablewright.operations.health.history import BUDGET_BYTES, Change, History, read_history
from tablewright.operations.health.indices import indices_of
from tablewright.operations.health.listing import Listing, list_table
from tablewright.operations.health.names import Names, own_prefixes
from tablewright.operations.health.options import HealthOptions, target_rows_of
from tablewright.operations.health.outlook import outlook_of, planned_groups
from tablewright.operations.health.overhead import measure_overhead
from tablewright.operations.health.recommend import recommend
from tablewright.operations.health.report import TableHealth
from tablewright.operations.health.sizes import sizes_of_files
from tablewright.operations.health.values import BytesHealth, RowsHealth, VersionGrowth, VersionsHealth
from tablewright.redact import redact
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["measure_health", "measure_latest"]


def measure_health(snapshot: Snapshot, options: HealthOptions | None = None) -> TableHealth:
    """The health of a version.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": range(100)}, "memory://measure-health-example")
    >>> _ = ds.delete("id < 20")
    >>> health = ds.health(sample=False)
    >>> health.rows.live, health.rows.deleted, health.actions()
    (80, 20, ('compact',))
    """
    return _measured(snapshot, options or HealthOptions(), BUDGET_BYTES)[0]


def measure_latest(snapshot: Snapshot, options: HealthOptions) -> tuple[TableHealth, bool]:
    """The health of a version without its past: old versions are counted, their manifests are not read, so that the
    cost does not grow with their number. Files that no manifest names count as reclaimable.

    Also returned: whether there are old files that a cleanup may remove although no version goes.
    """
    health, listing = _measured(snapshot, options, 0)
    return health, listing.has_old_files


def _measured(snapshot: Snapshot, options: HealthOptions, budget_bytes: int) -> tuple[TableHealth, Listing]:
    limits = options.limits
    files = files_of(snapshot.fragments)
    history = read_history(snapshot, files, options.versions, budget_bytes)
    store, names = snapshot.world.store, Names()
    names.add_files(files, *own_prefixes(snapshot.manifest, store, store))
    listing = list_table(
        store,
        names,
        history.kept,
        history.kept_manifests,
        history.named,
        snapshot.world.clock.now_ns(),
    )
    sizes = sizes_of_files(snapshot, files, listing.sizes, listing.beside)
    dead = measure_dead_columns(snapshot, files, sizes.data)
    figures = figures_of(
        snapshot.fragments,
        file_rows=files.data_rows,
        file_bytes=sizes.data,
        dead_columns=dead.bytes,
        deletion_rows=files.deletion_rows,
        deletion_bytes=sizes.deletions,
        target_rows=target_rows_of(options, snapshot.manifest.config),
    )
    groups = planned_groups(snapshot, limits.deleted_share, figures.target_rows)
    rows = RowsHealth(live=int(figures.live_rows.sum()), deleted=int(figures.deleted_rows.sum()))
    bytes_, shape, versions = _bytes(figures, dead, sizes.missing), figures.summary(limits), _versions(history, listing)
    indices = indices_of(snapshot, figures.ids, figures.live_rows, listing.indices)
    compaction = None if groups is None else outlook_of(groups, figures)
    health = TableHealth(
        uri=redact(snapshot.location.uri),
        version=snapshot.version,
        branch=snapshot.branch,
        workload=options.workload,
        deletion_limit=limits.deleted_share,
        rows=rows,
        bytes=bytes_,
        shape=shape,
        manifest=sizes_of_manifest(snapshot.file, snapshot.entry.size),
        versions=versions,
        growth=_growth(snapshot, history.changes, figures, files, sizes.data, dead.bytes, listing),
        indices=indices,
        read_overhead=measure_overhead(snapshot, options) if options.sample else None,
        compaction=compaction,
        recommendations=recommend(
            limits=limits,
            rows=rows,
            bytes=bytes_,
            shape=shape,
            versions=versions,
            indices=indices,
            compaction=compaction,
        ),
        fragments=figures.table(),
    )
    return health, listing


def _growth(
    snapshot: Snapshot,
    changes: Sequence[Change],
    figures: FragmentFigures,
    files: FragmentFiles,
    file_bytes: Ints,
    dead_columns: Ints,
    listing: Listing,
) -> tuple[VersionGrowth, ...]:
    return growth_of(
        changes,
        figures,
        files,
        figures.live_shares(files.data_rows, file_bytes, dead_columns),
        {index_dir(index.uuid) for index in snapshot.manifest.indices},
        ChainMap(listing.sizes, listing.indices),
    )


def _bytes(figures: FragmentFigures, dead: DeadColumns, missing: int) -> BytesHealth:
    return BytesHealth(
        data=int(figures.data_bytes.sum()),
        deletion_files=int(figures.deletion_bytes.sum()),
        dead_rows=int(figures.dead_row_bytes.sum()),
        dead_columns=int(figures.dead_column_bytes.sum()),
        columns_dead=dead.files,
        columns_measured=dead.measured,
        missing_files=missing,
    )


def _versions(history: History, listing: Listing) -> VersionsHealth:
    entries = history.entries
    return VersionsHealth(
        count=len(entries),
        oldest=entries[0].version,
        latest=entries[-1].version,
        oldest_ns=history.oldest_ns,
        tagged=len(history.tagged.intersection(entry.version for entry in entries)),
        kept=len(history.kept_manifests),
        manifest_bytes=sum(entry.size for entry in entries),
        bytes_on_disk=listing.bytes,
        reclaimable=listing.reclaimable,
        unverified_bytes=listing.unverified_bytes,
        is_verified=history.named is not None,
    )
