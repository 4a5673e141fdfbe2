"""Random histories of a table with indices, and the checker: every way to an answer gives the same answer.

A history is made from a seed: rows are appended, deleted, updated (rows or columns), merged; columns are added and
dropped; indices are built, optimised and dropped; fragments are compacted, with indices remapped at once or later;
versions are restored and cleaned up. Each step is taken by one of two libraries. After some steps random predicates are
asked four ways: by index and by a flat scan, by us and by pylance. `FAULTS` names what is wrong in pylance 14.0.2
itself: its own answers are not compared where one of these applies, ours always are.

``python -m tests.differential.index_history --library lance --seeds 0:500`` plays histories of one library alone and
prints what differs; with ``--explain`` also the steps of those that pass.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa

import tablewright as tw
from tablewright.reading import index_use

__all__ = ["FAULTS", "Difference", "History", "play"]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("c", pa.string()),
        ("t", pa.string()),
        ("l", pa.list_(pa.string())),
        ("s", pa.struct([("a", pa.int32())])),
        ("v", pa.float32()),
    ]
)
KINDS: dict[str, tuple[str, ...]] = {
    "id": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "n": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "f": ("BTREE", "BITMAP", "ZONEMAP"),
    "c": ("BITMAP", "BTREE", "ZONEMAP", "BLOOMFILTER", "NGRAM"),
    "t": ("NGRAM", "BTREE", "BITMAP"),
    "l": ("LABEL_LIST",),
    "s.a": ("BTREE", "BITMAP", "ZONEMAP"),
}
ROW_ID_KINDS = ("BITMAP", "LABEL_LIST", "NGRAM")
WORDS = ("apple", "apply", "maple", "Äpfel", "a b c", "", "x1y2z3", "naïve", "日本語", "straße")
LABELS = ("red", "green", "blue", "blue green")

FAULTS = {
    "T1": "an update of the indexed column (rows of a stable table, or columns in place) and then a delta segment: the "
    "older segment's entry still matches",
    "T22": "a delta segment of an index on a nested field fails: No column with name",
    "remap after deferral": "a compaction with defer_index_remap, then one without: indices keep addresses from before "
    "the first one, and rows are not found any more",
    "NaN zones": "a zone map that pylance wrote loses rows of zones with NaN and no number, where a range is asked",
    "zones twice": "a change in place of a column with a ZONEMAP or BLOOMFILTER, and then optimize_indices: zones and "
    "null rows of before stay in the file beside those of now",
}


@dataclass(eq=False)
class Difference(Exception):
    """An answer that differs from the flat scan's."""

    seed: int
    steps: tuple[str, ...]
    predicate: str
    way: str
    expected: list[int]
    found: list[int] | str

    def __str__(self) -> str:
        history = "\n".join(f"  {step}" for step in self.steps)
        asked = f"seed {self.seed}, {self.way}: {self.predicate}"
        return f"{asked}\n  expected ids {self.expected}\n  found {self.found}\n{history}"


# ------------------------------------------------------------------------------------------------------------- values
def number(rng: random.Random) -> int | None:
    return rng.choice([None, *range(-3, 12), 2**40])


def real(rng: random.Random) -> float | None:
    return rng.choice([None, float("nan"), 0.0, -0.0, 1.5, -2.0, 1e300, float("inf"), float(rng.randint(-4, 4))])


def rows(rng: random.Random, ids: Sequence[int], columns: Sequence[str] = SCHEMA.names) -> pa.Table:
    """Rows with these ids and random values, of some columns."""
    makers: dict[str, Callable[[], Any]] = {
        "n": lambda: number(rng),
        "f": lambda: real(rng),
        "c": lambda: rng.choice([None, "a", "b", "cat", "car"]),
        "t": lambda: rng.choice([None, *WORDS]) if rng.random() < 0.6 else " ".join(rng.choices(WORDS, k=2)),
        "l": lambda: None if rng.random() < 0.2 else [rng.choice([None, *LABELS]) for _ in range(rng.randint(0, 3))],
        "s": lambda: None if rng.random() < 0.2 else {"a": rng.choice([None, 1, 2, 3, 7])},
        "v": lambda: rng.random(),
    }
    data = {name: list(ids) if name == "id" else [makers[name]() for _ in ids] for name in columns}
    return pa.table(data, schema=pa.schema([SCHEMA.field(name) for name in columns]))


# --------------------------------------------------------------------------------------------------------- predicates
def atom(rng: random.Random, column: str) -> str:
    """A condition on one column."""
    null = rng.choice(["is null", "is not null"])
    if rng.random() < 0.1 and column != "l":
        return f"{column} {null}"
    if column in ("id", "n", "s.a"):
        low, high = sorted((rng.randint(-3, 14), rng.randint(-3, 14)))
        values = ", ".join(str(rng.randint(-3, 14)) for _ in range(rng.randint(1, 4)))
        operator = rng.choice(["=", "!=", "<", "<=", ">", ">="])
        return rng.choice(
            [
                f"{column} {operator} {low}",
                f"{low} {operator} {column}",
                f"{column} in ({values})",
                f"{column} not in ({values})",
                f"{column} between {low} and {high}",
                f"{column} > {low} and {column} < {high}",
            ]
        )
    if column == "f":
        value = rng.choice(["0.0", "1.5", "-2.0", "1e300", "cast('NaN' as double)", "3"])
        return f"f {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {value}"
    if column == "l":
        value = rng.choice(LABELS)
        other = rng.choice(LABELS)
        return rng.choice(
            [
                f"array_has(l, '{value}')",
                f"array_contains(l, '{value}')",
                f"array_has_any(l, ['{value}', '{other}'])",
                f"array_has_all(l, ['{value}', '{other}'])",
            ]
        )
    values = ("a", "b", "cat", "car", "ca") if column == "c" else WORDS
    word = rng.choice(values)
    if column == "t":
        part = rng.choice(["app", "ple", "1y2", "APP", "aïv", "本語", "b c", "ap", "straße", "pfe"])
        return rng.choice(
            [f"contains(t, '{part}')", f"t like '%{part}%'", f"t = '{word}'", f"starts_with(t, '{part}')"]
        )
    return rng.choice(
        [
            f"c {rng.choice(['=', '!=', '<', '>='])} '{word}'",
            f"c in ('{word}', 'a')",
            f"c not in ('{word}', 'a')",
            f"c like '{word or 'a'}%'",
            f"starts_with(c, '{word or 'a'}')",
        ]
    )


def predicate(rng: random.Random, columns: Sequence[str], depth: int = 2) -> str:
    """A condition on some columns: atoms under AND, OR and NOT."""
    if depth == 0 or rng.random() < 0.45:
        return atom(rng, rng.choice(columns))
    kind = rng.random()
    if kind < 0.25:
        return f"not ({predicate(rng, columns, depth - 1)})"
    operator = "and" if kind < 0.65 else "or"
    return f"({predicate(rng, columns, depth - 1)}) {operator} ({predicate(rng, columns, depth - 1)})"


# ------------------------------------------------------------------------------------------------------------ history
@dataclass
class History:
    """One table and what was done to it. ``engine`` is where our own work runs."""

    uri: str
    seed: int
    libraries: Sequence[ModuleType]
    engine: Any = "local"
    steps: list[str] = field(default_factory=list)
    updated: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    nan_zones: bool = False
    deferred: bool = False
    lost: bool = False
    asked: int = 0
    next_id: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.stable = self.rng.random() < 0.5

    # -- steps

    def begin(self) -> None:
        library = self._library("write")
        count, per_file = self.rng.randint(0, 24), self.rng.randint(3, 9)
        library.write_dataset(
            self._new_rows(count), self.uri, max_rows_per_file=per_file, enable_stable_row_ids=self.stable
        )
        for _ in range(self.rng.randint(1, 4)):
            self._create()

    def step(self) -> None:
        """Take one step at random."""
        weights = {
            self._append: 3,
            self._delete: 3,
            self._update: 4,
            self._merge: 4,
            self._compact: 5,
            self._optimize: 4,
            self._create: 3,
            self._drop: 1,
            self._columns: 1,
            self._restore: 1,
            self._cleanup: 1,
        }
        self.rng.choices(list(weights), list(weights.values()))[0]()

    def _library(self, what: str) -> ModuleType:
        library = self.rng.choice(self.libraries)
        self.steps.append(f"{library.__name__}: {what}")
        return library

    def _say(self, more: str) -> None:
        self.steps[-1] += f" {more}"

    def open(self, library: ModuleType) -> Any:
        return tw.dataset(self.uri, engine=self.engine) if library is tw else lance.dataset(self.uri)

    def _new_rows(self, count: int) -> pa.Table:
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        return rows(self.rng, ids)

    def _append(self) -> None:
        library, count = self._library("append"), self.rng.randint(1, 8)
        self._say(f"{count}")
        library.write_dataset(self._fitted(self._new_rows(count)), self.uri, mode="append", max_rows_per_file=4)

    def _fitted(self, table: pa.Table) -> pa.Table:
        """With the columns that were added since."""
        for column in lance.dataset(self.uri).schema:
            if column.name not in table.column_names:
                table = table.append_column(column, pa.nulls(table.num_rows, column.type))
        return table

    def _delete(self) -> None:
        library = self._library("delete")
        condition = predicate(self.rng, self._columns_there(), 1) if self.rng.random() < 0.5 else self._some_ids()
        self._say(condition)
        self.open(library).delete(condition)

    def _some_ids(self) -> str:
        ids = self.rng.sample(range(self.next_id + 1), min(self.next_id + 1, self.rng.randint(1, 6)))
        return f"id in ({', '.join(map(str, ids))})"

    def _columns_there(self) -> list[str]:
        return list(KINDS)

    def _update(self) -> None:
        library, column = self._library("update"), self.rng.choice(["n", "f", "c", "t", "v"])
        value = {
            "n": "n + 1",
            "f": self.rng.choice(["1.5", "f * 2", "cast('NaN' as double)"]),
            "c": f"'{self.rng.choice(['a', 'new', 'car'])}'",
            "t": f"'{self.rng.choice(WORDS)} more'",
            "v": "v + 1",
        }[column]
        where = self._some_ids() if self.rng.random() < 0.6 else atom(self.rng, self.rng.choice(self._columns_there()))
        mode = self.rng.choice(["rewrite_rows", "rewrite_columns", "auto"])
        self._say(f"{column} = {value} where {where}" + (f" ({mode})" if library is tw else ""))
        options = {"write_mode": mode} if library is tw else {}
        self.open(library).update({column: value}, where=where, **options)
        self.updated.add(column)

    def _merge(self) -> None:
        library = self._library("merge")
        known = self.rng.sample(range(self.next_id + 1), min(self.next_id + 1, self.rng.randint(1, 6)))
        partial = self.rng.random() < 0.4
        others = self.rng.sample(["n", "f", "c", "t", "l", "s", "v"], 2)
        columns = ["id", *others] if partial else SCHEMA.names
        source = rows(self.rng, known, columns)
        inserts = self.rng.random() < 0.5
        self._say(f"ids {known}, columns {columns if partial else 'all'}, inserts {inserts}")
        if not partial:
            source = self._fitted(source)
        builder = self.open(library).merge_insert("id").when_matched_update_all()
        if inserts:
            builder = builder.when_not_matched_insert_all()
            self.next_id = max(self.next_id, max(known) + 1)
        builder.execute(source)
        self.updated |= {"s.a" if name == "s" else name for name in columns if name != "id"}

    def _compact(self) -> None:
        library = self._library("compact")
        target, deferred = self.rng.choice([4, 8, 100]), not self.stable and self.rng.random() < 0.4
        self._say(f"target {target}{', deferred' if deferred else ''}")
        self.lost |= self.deferred and not deferred and library is lance
        self.deferred |= deferred
        self.open(library).optimize.compact_files(
            target_rows_per_fragment=target,
            materialize_deletions_threshold=self.rng.choice([0.0, 0.1]),
            defer_index_remap=deferred,
        )

    def _optimize(self) -> None:
        library = self._library("optimize indices")
        merged = self.rng.choice([None, 0, 0, 1])
        options = {} if merged is None else {"num_indices_to_merge": merged}
        self._say(f"{options}")
        if library is lance:
            names = {index["name"] for index in lance.dataset(self.uri).list_indices()}
            zones = {column for column in KINDS if {f"{column}_ZONEMAP", f"{column}_BLOOMFILTER"} & names}
            self.doubtful |= self.updated if merged is not None else self.updated & zones  # zones of before are kept
        self.nan_zones |= library is lance
        try:
            self.open(library).optimize.optimize_indices(**options)
        except Exception as error:
            if library is not lance or "No column with name" not in str(error):
                raise
            self._say("(T22)")

    def _create(self) -> None:
        library, column = self._library("create index"), self.rng.choice(list(KINDS))
        kind = self.rng.choice(KINDS[column])
        self._say(f"{kind} on {column}")
        self.open(library).create_scalar_index(column, kind, name=f"{column}_{kind}")
        self.doubtful.discard(column)
        self.nan_zones |= library is lance and (column, kind) == ("f", "ZONEMAP")

    def _drop(self) -> None:
        names = sorted({index["name"] for index in lance.dataset(self.uri).list_indices()} - {"__lance_frag_reuse"})
        if names:
            library, name = self._library("drop index"), self.rng.choice(names)
            self._say(name)
            self.open(library).drop_index(name)

    def _columns(self) -> None:
        library, dataset = self._library("columns"), lance.dataset(self.uri)
        if "extra" in dataset.schema.names:
            self._say("drop extra")
            self.open(library).drop_columns(["extra"])
        else:
            self._say("add extra")
            self.open(library).add_columns({"extra": "id * 2"})

    def _restore(self) -> None:
        library = self._library("restore")
        versions = [version["version"] for version in lance.dataset(self.uri).versions()]
        version = self.rng.choice(versions[-4:])
        self._say(f"{version}")
        dataset = self.open(library)
        dataset = dataset.checkout_version(version)
        dataset.restore()
        self.doubtful |= self.updated if lance in self.libraries else set()

    def _cleanup(self) -> None:
        library = self._library("cleanup")
        self.open(library).cleanup_old_versions(older_than=timedelta(0), retain_versions=1)

    # -- check

    def check(self, count: int) -> None:
        """Ask some predicates all four ways."""
        theirs, mine = lance.dataset(self.uri), tw.dataset(self.uri)
        indexed = {name for index in theirs.list_indices() for name in index["fields"]}
        columns = [column for column in KINDS if column in indexed] * 3 + ["id", "n"]
        for _ in range(count):
            asked = predicate(self.rng, columns)
            expected = _ids(theirs, asked, use_scalar_index=False)
            self._compare(asked, "tablewright, flat scan", expected, _ids(mine, asked, use_scalar_index=False))
            if tw in self.libraries:
                self._compare(asked, "tablewright, by index", expected, _ids(mine, asked, use_scalar_index=True))
                count = mine.scanner(columns=[], filter=asked, with_row_id=True, use_scalar_index=True).count_rows()
                self._compare(asked, "tablewright, count", [len(expected)], [count])
                if not self.asked:  # once is enough to see that indices are asked at all
                    self.asked += "ScalarIndexQuery" in mine.scanner(filter=asked, use_scalar_index=True).explain_plan()
            if not self._is_excused(asked):
                self._compare(asked, "pylance, by index", expected, _ids(theirs, asked))

    def _is_excused(self, asked: str) -> bool:
        """Whether one of pylance's own faults may show."""
        return (
            self.lost
            or any(_mentions(asked, column) for column in self.doubtful)
            or (self.nan_zones and _mentions(asked, "f"))
        )

    def _compare(self, asked: str, way: str, expected: list[int], found: list[int] | str) -> None:
        if expected != found:
            raise Difference(self.seed, tuple(self.steps), asked, way, expected, found)


def _mentions(asked: str, column: str) -> bool:
    words = asked.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return column in words


def _ids(dataset: Any, asked: str, **options: Any) -> list[int]:
    found = dataset.scanner(columns=["id"], filter=asked, **options).to_table()["id"]
    return sorted(found.to_pylist())


@contextmanager
def asked_always() -> Iterator[None]:
    """Our deletes and updates ask indices also where a scan of so few rows costs less."""
    decide = index_use.decide_use
    index_use.decide_use = lambda *given, **rest: decide(*given, **{**rest, "forced": True})
    try:
        yield
    finally:
        index_use.decide_use = decide


def play(
    folder: Path, seed: int, libraries: Sequence[ModuleType], engine: Any = "local", *, steps: int = 6, checks: int = 2
) -> History:
    """Play the history of a seed; :class:`Difference` if an answer is wrong."""
    history = History(str(folder / f"{seed}.lance"), seed, libraries, engine)
    try:
        with asked_always():
            history.begin()
            for number in range(history.rng.randint(2, steps)):
                history.step()
                if number % 2:
                    history.check(checks // 2)
            history.check(checks)
    except Difference:
        raise
    except Exception as error:
        error.add_note("\n".join([f"seed {seed}", *(f"  {step}" for step in history.steps)]))
        raise
    return history


# -------------------------------------------------------------------------------------------------------- by itself
def _seeds(text: str) -> Iterator[int]:
    first, _, last = text.partition(":")
    yield from range(int(first), int(last) if last else int(first) + 1)


def main() -> None:
    """Play histories and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=["lance", "tablewright", "both"], default="both")
    parser.add_argument("--seeds", default="0:100")
    parser.add_argument("--explain", action="store_true")
    given = parser.parse_args()
    libraries = {"lance": [lance], "tablewright": [tw], "both": [tw, lance]}[given.library]
    played = wrong = asked = 0
    for seed in _seeds(given.seeds):
        with tempfile.TemporaryDirectory(prefix="tablewright-indices-") as folder:
            played += 1
            try:
                history = play(Path(folder), seed, libraries)
                asked += history.asked
                if given.explain:
                    print("\n".join(history.steps))
            except Exception as error:
                wrong += 1
                notes = "\n".join(getattr(error, "__notes__", ()))
                print(f"{type(error).__name__}: {error}\n{notes}\n", flush=True)
    print(f"{played} histories, {wrong} with a difference or an error; {asked} with predicates by our indices")


if __name__ == "__main__":
    main()
