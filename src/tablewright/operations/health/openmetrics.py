"""Health as OpenMetrics text: gauges, one family per figure, with the table's address as a label. Pure.

Per-fragment figures are left out: a label per fragment would make a time series of each.

Format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tablewright.operations.health.values import HealthFacts

__all__ = ["CONTENT_TYPE", "encode"]

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""What an HTTP endpoint that serves the text says it is."""

_PREFIX = "tablewright_table"
Samples = Sequence[tuple[Mapping[str, str], float]]
Family = tuple[str, str, str, Samples]


def encode(health: HealthFacts) -> str:
    """The whole exposition, ended by ``# EOF``."""
    common = {"table": health.uri, **({} if health.branch is None else {"branch": health.branch})}
    lines = [line for family in _families(health) for line in _lines(family, common)]
    return "\n".join([*lines, "# EOF", ""])


def _lines(family: Family, common: Mapping[str, str]) -> Iterator[str]:
    name, unit, text, samples = family
    full = f"{_PREFIX}_{name}"
    yield f"# TYPE {full} gauge"
    if unit:
        yield f"# UNIT {full} {unit}"
    yield f"# HELP {full} {_escaped(text)}"
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(each)}"' for key, each in {**common, **labels}.items())
        yield f"{full}{{{pairs}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _one(value: float) -> Samples:
    return (({}, value),)


def _by(label: str, values: Mapping[str, float]) -> Samples:
    return tuple(({label: name}, value) for name, value in values.items())


def _families(health: HealthFacts) -> Iterator[Family]:
    rows, bytes, shape, versions = health.rows, health.bytes, health.shape, health.versions
    yield "version", "", "The measured version.", _one(health.version)
    yield "rows", "", "Rows by state.", _by("state", {"live": rows.live, "deleted": rows.deleted})
    yield "data_bytes", "bytes", "Size of data files.", _one(bytes.data)
    dead = {"deleted rows": bytes.dead_rows, "dead columns": bytes.dead_columns}
    yield "dead_bytes", "bytes", "Bytes in data files that no reader needs.", _by("reason", dead)
    yield "deletion_file_bytes", "bytes", "Size of deletion files.", _one(bytes.deletion_files)
    yield "missing_files", "", "Files that the version names and that are not there.", _one(bytes.missing_files)
    kinds = {
        "all": shape.count,
        "small": shape.small,
        "with deletions": shape.with_deletions,
        "over limit": shape.over_limit,
    }
    yield "fragments", "", "Fragments; a fragment may be of several kinds.", _by("kind", kinds)
    yield "manifest_bytes", "bytes", "Size of the manifest by part.", _by("part", health.manifest.to_dict())
    yield "versions", "", "Versions that exist.", _one(versions.count)
    yield "disk_bytes", "bytes", "Size of all files of the table.", _one(versions.bytes_on_disk)
    yield (
        "reclaimable_bytes",
        "bytes",
        "What a cleanup that keeps only the latest and tagged versions would free.",
        _by("kind", dict.fromkeys(_FILE_KINDS, 0) | {files.kind: files.bytes for files in versions.reclaimable}),
    )
    yield from _of_indices(health)
    yield from _of_measurements(health)
    actions = {each: float(each in {found.action for found in health.recommendations}) for each in _ACTIONS}
    yield "recommended", "", "1 for an action that is recommended now.", _by("action", actions)


_FILE_KINDS = ("data files", "deletion files", "index files", "transaction files", "manifests")
_ACTIONS = ("compact", "optimize_indices", "cleanup")


def _of_indices(health: HealthFacts) -> Iterator[Family]:
    if not health.indices:
        return
    yield (
        "index_bytes",
        "bytes",
        "Size of index files.",
        _by("index", {index.name: index.bytes for index in health.indices}),
    )
    yield (
        "unindexed_rows",
        "",
        "Rows that an index does not cover.",
        _by("index", {index.name: index.unindexed_rows for index in health.indices}),
    )


def _of_measurements(health: HealthFacts) -> Iterator[Family]:
    if health.read_overhead is not None:
        text = "Time of a scan that applies deletion vectors against one that does not, as a ratio."
        yield "read_overhead_ratio", "ratio", text, _one(round(health.read_overhead.ratio, 4))
    if health.compaction is not None:
        yield "compaction_read_bytes", "bytes", "What a compaction would read.", _one(health.compaction.bytes_read)
        yield "compaction_freed_bytes", "bytes", "What it would free.", _one(health.compaction.bytes_freed)
