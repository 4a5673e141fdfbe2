"""Health as text: sections of aligned lines. Pure.

Tests: ``tests/unit/operations/health/test_report.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from textwrap import wrap

from tablewright.operations.health.values import HealthFacts, IndexHealth, VersionGrowth

__all__ = ["amount", "percent", "render", "size"]

_WIDTH = 110
_NAME_WIDTH = 20


def size(number: float) -> str:
    """Bytes for people.

    >>> size(512), size(1536), size(5 * 1024**3)
    ('512 B', '1.50 KiB', '5.00 GiB')
    """
    if number < 1024:
        return f"{number:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        number /= 1024
        if number < 1024 or unit == "TiB":
            break
    return f"{number:.2f} {unit}"


def percent(share: float) -> str:
    """A share for people: three digits, and never 0 for what is more.

    >>> percent(0.1), percent(0.00001), percent(1), percent(0)
    ('10 %', '<0.01 %', '100 %', '0 %')
    """
    return "<0.01 %" if 0 < share < 0.0001 else f"{100 * share:.3g} %"


def amount(number: int, what: str) -> str:
    """A count with its noun.

    >>> amount(1, "fragment"), amount(2000, "fragment")
    ('1 fragment', '2,000 fragments')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def render(health: HealthFacts) -> str:
    """All sections."""
    return "\n".join(_lines(health))


def _lines(health: HealthFacts) -> Iterator[str]:
    branch = "" if health.branch is None else f", branch {health.branch}"
    yield f"Health of {health.uri}, version {health.version}{branch}"
    for name, value in _facts(health):
        yield f"  {name:<{_NAME_WIDTH}}{value}"
    yield from _growth(health.growth)
    yield from _indices(health.indices)
    yield from _worst(health)
    yield "Recommendation"
    for each in health.recommendations:
        first, *rest = wrap(f"{each.action}: {each.reason}", _WIDTH - 2)
        yield f"  {first}"
        yield from (f"    {line}" for line in rest)
        if each.call:
            yield f"    {each.call}"


def _facts(health: HealthFacts) -> Iterator[tuple[str, str]]:
    rows, bytes, shape, versions = health.rows, health.bytes, health.shape, health.versions
    yield "rows", f"{rows.live:,} live, {rows.deleted:,} deleted ({percent(rows.deleted_share)})"
    yield "data", f"{size(bytes.data)} in {amount(shape.data_files, 'file')}, {percent(bytes.dead_share)} dead"
    yield (
        "dead bytes",
        f"{size(bytes.dead_rows)} of deleted rows, {size(bytes.dead_columns)} of columns{_measured(health)}",
    )
    yield "deletion files", f"{size(bytes.deletion_files)}, {percent(bytes.deletion_share)} of the data"
    yield (
        "fragments",
        f"{shape.count:,}; {shape.small:,} small (under {shape.target_rows:,} rows), {shape.with_deletions:,} with "
        f"deletions, {shape.over_limit:,} over the limit",
    )
    if bytes.missing_files:
        yield "missing files", f"{bytes.missing_files:,}: validate() names them"
    parts = sorted(health.manifest.to_dict().items(), key=lambda part: -part[1])
    filled = ", ".join(f"{name.replace('_', ' ')} {size(part)}" for name, part in parts if part)
    yield "manifest", f"{size(health.manifest.total)}: {filled}"
    since = datetime.fromtimestamp(versions.oldest_ns / 1e9, UTC)
    yield (
        "versions",
        f"{versions.count:,} since {since:%Y-%m-%d %H:%M} UTC, {versions.tagged:,} tagged; manifests "
        f"{size(versions.manifest_bytes)}",
    )
    yield "on disk", size(versions.bytes_on_disk)
    yield "reclaimable", _reclaimable(health)
    yield from _measurements(health)


def _measured(health: HealthFacts) -> str:
    found = health.bytes
    if not found.columns_dead or found.columns_measured == found.columns_dead:
        return ""
    return f" (measured in {found.columns_measured:,} of {found.columns_dead:,} files)"


def _reclaimable(health: HealthFacts) -> str:
    versions = health.versions
    text = f"{size(versions.reclaimable_bytes)} ({percent(versions.reclaimable_share)})"
    kinds = ", ".join(f"{files.files:,} {files.kind} {size(files.bytes)}" for files in versions.reclaimable)
    text += f": {kinds}" if kinds else ""
    if versions.unverified_bytes:
        text += f"; {size(versions.unverified_bytes)} in files that no version names, younger than 7 days"
    return text


def _measurements(health: HealthFacts) -> Iterator[tuple[str, str]]:
    overhead, plan = health.read_overhead, health.compaction
    if overhead is not None:
        yield (
            "read overhead",
            f"{overhead.ratio:.2f}× for column {overhead.column}: {overhead.rows:,} rows in "
            f"{amount(overhead.fragments, 'fragment')}, {overhead.deleted_rows:,} deleted; loading the vectors took "
            f"{1000 * overhead.load_seconds:.1f} ms",
        )
    if plan is not None:
        yield (
            "compaction would",
            f"read {size(plan.bytes_read)} in {amount(plan.tasks, 'task')}, make {plan.fragments_after:,} out of "
            f"{amount(plan.fragments_before, 'fragment')}, free {size(plan.bytes_freed)} after a cleanup"
            if plan.tasks
            else "do nothing",
        )


def _growth(growth: Sequence[VersionGrowth]) -> Iterator[str]:
    if not growth:
        return
    yield "Growth by version"
    yield from _table(
        ("version", "operation", "rows added", "removed", "dead now", "bytes added", "dead now", "manifest"),
        [
            (
                f"{each.version}",
                each.operation,
                f"{each.rows_added:,}",
                f"{each.rows_removed:,}",
                f"{each.rows_dead:,}",
                size(each.bytes_added),
                size(each.bytes_dead),
                size(each.manifest_bytes),
            )
            for each in growth
        ],
    )


def _indices(indices: Sequence[IndexHealth]) -> Iterator[str]:
    if not indices:
        return
    yield "Indices"
    yield from _table(
        ("index", "kind", "columns", "segments", "bytes", "per row", "unindexed rows", "share", "stale"),
        [
            (
                each.name,
                each.kind,
                ", ".join(each.columns),
                f"{each.segments}",
                size(each.bytes),
                f"{each.bytes_per_row:.1f} B",
                f"{each.unindexed_rows:,}",
                percent(each.unindexed_share),
                f"{each.stale_fragments:,}",
            )
            for each in indices
        ],
    )


def _worst(health: HealthFacts) -> Iterator[str]:
    worst = health.worst_fragments
    if not worst:
        return
    yield "Fragments with most dead bytes"
    yield from _table(
        ("fragment", "live rows", "deleted", "share", "data", "dead", "share"),
        [
            (
                f"{each['fragment_id']}",
                f"{each['live_rows']:,}",
                f"{each['deleted_rows']:,}",
                percent(each["deleted_share"]),
                size(each["data_bytes"]),
                size(each["dead_bytes"]),
                percent(each["dead_share"]),
            )
            for each in worst
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned columns: text to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    texts = {place for place, name in enumerate(head) if name in ("operation", "index", "kind", "columns")}
    for row in (head, *rows):
        cells = (
            cell.ljust(width) if place in texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  " + "  ".join(cells).rstrip()
