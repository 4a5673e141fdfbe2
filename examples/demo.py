"""``make demo``: the life of a table of documents with embeddings, on Spark, and what pylance says of it.

Run it with a path to keep the table: ``python examples/demo.py /tmp/documents.lance``.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance  # the referee: this table must be theirs as much as ours
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import tablewright as tw

DIMENSIONS = 64
TOPICS = ("astronomy", "baking", "cycling", "databases", "economics", "forestry")
SUBJECTS = ("notes on", "a history of", "mistakes in", "the future of", "first steps in", "a critique of")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("title", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("crawled", pa.timestamp("us", "UTC")),
        pa.field("visits", pa.int64()),
        pa.field("embedding", pa.list_(pa.float32(), DIMENSIONS)),
    ]
)
MERGE = """
    MERGE INTO tablewright.`{uri}` AS t USING crawled AS s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET title = s.title, crawled = s.crawled, embedding = s.embedding, visits = t.visits + 1
    WHEN NOT MATCHED THEN INSERT *
"""
console = Console()


def main(arguments: list[str]) -> int:
    """Run the steps; 0 if pylance reads the same after every one of them."""
    console.print(Panel.fit("[bold]Tablewright[/]: documents with embeddings, written by Spark, open to every Lance"))
    with table_address(arguments) as uri:
        try:
            agreed = steps(uri)
        except tw.errors.TablewrightError as error:
            console.print(f"[bold red]{type(error).__name__}[/]: {error}")
            return 1
    console.print("[bold green]Same rows everywhere.[/]" if agreed else "[bold red]pylance reads other rows![/]")
    return 0 if agreed else 1


def steps(uri: str) -> bool:
    """Written, merged, counted, updated, deleted, compacted under a writer, cleaned; then pylance is asked."""
    with step("Start an embedded Spark session"):
        from tablewright.engine.spark.session import embedded_session

        spark = embedded_session(brief=True)

    with step("Write a DataFrame of 20,000 documents: executors write the files, one commit shows them"):
        first = documents(spark, 0, 20_000, "2026-01-01")
        ds = tw.write_dataset(first, uri, schema=SCHEMA, enable_stable_row_ids=True)
    ds.tags.create("first-crawl", ds.version)
    tell(ds, "tagged [cyan]first-crawl[/]")

    with step("MERGE INTO it the next day's 5,000: those that are known are updated, new ones are inserted"):
        documents(spark, 18_000, 23_000, "2026-01-02").createOrReplaceTempView("crawled")
        counts = tw.sql(spark, MERGE.format(uri=uri)).first()
    ds.checkout_latest()
    tell(ds, f"({counts.num_updated_rows:,} updated, {counts.num_inserted_rows:,} inserted)")

    with step("Count the topics in Spark, through the data source: one column is read"):
        topics = spark.read.format("tablewright").option("columns", "topic").load(uri).groupBy("topic").count()
        show(topics.orderBy("topic").toArrow())

    with step("Update one column: it is written in place, the embeddings stay where they are"):
        counts = ds.update({"visits": "visits + 1"}, where="topic IN ('astronomy', 'databases')")
    tell(ds, f"({counts['num_rows_updated']:,} updated)")

    with step("Delete a topic"):
        counts = ds.delete("topic = 'baking'")
    tell(ds, f"({counts['num_deleted_rows']:,} deleted)")

    with step("Ask how healthy that left it"):
        health = ds.health()
    console.print(
        f"  {health.rows.deleted_share:.0%} of the rows and {health.bytes.dead_share:.0%} of the bytes are dead"
    )
    console.print("\n".join(f"  {each.action}: {each.reason}" for each in health.recommendations))

    with step("Compact it, while a writer updates and deletes all the time"), writer(uri) as written:
        metrics = ds.optimize.compact_files()
    ds.checkout_latest()
    tell(ds, f"({metrics.fragments_removed} fragments became {metrics.fragments_added})")
    console.print(
        f"  the writer committed {len(written)} times; {metrics.rows_hidden} rows that it changed while they were "
        "being rewritten are hidden in the new fragments, and nothing was read again"
    )

    with step("Read what changed since the first crawl, as a net result: a compaction is no change"):
        changes = ds.changes(1, net=True, columns=["id"]).to_table()
    show(changes.group_by("_change_type").aggregate([("id", "count")]).sort_by("_change_type"))

    with step("Remove old versions; the tagged one stays"):
        stats = ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    console.print(f"  {stats.old_versions} versions and {stats.data_files_removed} data files are gone")

    with step("Open the same table with pylance, and let it judge"):
        agreed = compare(uri, ds, tw.dataset(uri, version="first-crawl"))
    with step("Ask pylance for the nearest neighbours of document 3"):
        near = neighbours(uri, ds)
    show(near)
    return agreed and all(written)


@contextmanager
def writer(uri: str) -> Iterator[list[bool]]:
    """A thread that updates and deletes documents, one commit each, until the block ends.

    The list has an entry per commit: whether it hit its one document.
    """
    done, begun = threading.Event(), threading.Event()
    committed: list[bool] = []

    def work() -> None:
        ds = tw.dataset(uri)
        for id in range(2, 20_000, 6):  # documents about cycling
            if id % 12 < 6:
                committed.append(ds.delete(f"id = {id}")["num_deleted_rows"] == 1)
            else:
                committed.append(ds.update({"visits": "100"}, where=f"id = {id}")["num_rows_updated"] == 1)
            begun.set()
            if done.is_set():
                return

    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(work)
        begun.wait(timeout=60)
        try:
            yield committed
        finally:
            done.set()
            thread.result()  # raises what it raised


def documents(spark: Any, start: int, end: int, day: str) -> Any:
    """A Spark DataFrame of invented documents; their embeddings lie around their topic's direction."""

    def invent(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directions = np.random.default_rng(7).normal(size=(len(TOPICS), DIMENSIONS))
        for batch in batches:
            ids = batch.column("id").to_numpy()
            noise = np.random.default_rng(int(ids[0])).normal(size=(len(ids), DIMENSIONS))
            vectors = (directions[ids % len(TOPICS)] + 0.5 * noise).astype(np.float32)
            offsets = np.arange(len(ids) + 1, dtype=np.int32) * DIMENSIONS
            topics = np.array(TOPICS)[ids % len(TOPICS)]
            titles = np.char.add(np.array(SUBJECTS)[ids // len(TOPICS) % len(SUBJECTS)], np.char.add(" ", topics))
            yield pa.record_batch(
                {
                    "id": ids,
                    "title": titles,
                    "topic": topics,
                    "embedding": pa.ListArray.from_arrays(offsets, vectors.ravel()),
                }
            )

    frame = spark.range(start, end, 1, 4).mapInArrow(
        invent, "id long, title string, topic string, embedding array<float>"
    )
    return frame.selectExpr(
        "id", "title", "topic", f"timestamp'{day} 00:00:00' AS crawled", "0L AS visits", "embedding"
    )


def compare(uri: str, ours: Any, before: Any) -> bool:
    """Whether pylance finds the table valid, and reads the same rows as we do, now and then."""
    theirs = lance.dataset(uri)
    theirs.validate()
    table = Table("", "Tablewright", f"pylance {lance.__version__}", "")
    same = True
    for name, mine, other in (
        ("version", ours.version, theirs.version),
        ("rows now", ours.count_rows(), theirs.count_rows()),
        ("rows of first-crawl", before.count_rows(), lance.dataset(uri, version="first-crawl").count_rows()),
        ("fragments", len(ours.get_fragments()), len(theirs.get_fragments())),
        ("every value", "", "equal" if ours.to_table().equals(theirs.to_table()) else "different"),
    ):
        good = mine == other or other == "equal"
        same = same and good
        table.add_row(name, str(mine), str(other), "[green]✓[/]" if good else "[red]✗[/]")
    console.print(table)
    return same


def neighbours(uri: str, ours: Any) -> pa.Table:
    """Documents near document 3, by pylance's vector search over the files that Spark executors wrote."""
    vector = ours.to_table(columns=["embedding"], filter="id = 3")["embedding"][0].as_py()
    near = {"column": "embedding", "q": np.array(vector, np.float32), "k": 3}
    return lance.dataset(uri).to_table(columns=["id", "title", "_distance"], nearest=near)


@contextmanager
def table_address(arguments: list[str]) -> Iterator[str]:
    """The path that was asked for, or a temporary one."""
    if arguments:
        yield arguments[0]
        return
    with tempfile.TemporaryDirectory(prefix="tablewright-") as directory:
        yield str(Path(directory, "documents.lance"))


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what happens, then how long it took."""
    console.print(f"\n[bold]▸ {text}[/]")
    began = time.perf_counter()
    yield
    console.print(f"  [dim]{time.perf_counter() - began:.1f} s[/]")


def tell(ds: Any, more: str = "") -> None:
    """One line about a version."""
    rows, fragments = ds.count_rows(), len(ds.get_fragments())
    console.print(f"  version {ds.version}: {rows:,} rows in {fragments} fragments {more}".rstrip())


def show(rows: pa.Table) -> None:
    """A few rows as a table."""
    table = Table(*rows.column_names)
    for row in rows.slice(0, 8).to_pylist():
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
