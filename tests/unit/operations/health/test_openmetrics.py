"""The text is OpenMetrics: read by a parser that knows the specification and nothing of ours."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import tablewright as tw
from tablewright.operations.health import TableHealth
from tablewright.operations.health.values import IndexHealth

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"')
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|Inf)|NaN")
ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}

Labels = frozenset[tuple[str, str]]


def parse(text: str) -> dict[str, dict[Labels, float]]:
    """Samples by family. Refuses what https://prometheus.io/docs/specs/om/open_metrics_spec/ does not allow."""
    assert text.endswith("# EOF\n")
    lines = text.split("\n")[:-2]
    families: dict[str, dict[Labels, float]] = {}
    about: dict[str, dict[str, str]] = {}
    current = ""
    for line in lines:
        assert line and line == line.strip()
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            assert word in ("TYPE", "UNIT", "HELP") and NAME.fullmatch(name)
            if name != current:
                assert name not in about, "families do not interleave"
                about[name], current = {}, name
            assert word not in about[name] and name not in families, "metadata come once, before samples"
            about[name][word] = rest
            continue
        name, labels, value = _sample(line)
        assert name == current
        assert about[name]["TYPE"] == "gauge"
        assert labels not in families.setdefault(name, {}), "a sample comes once"
        families[name][labels] = value
    for name, facts in about.items():
        assert set(facts) <= {"TYPE", "UNIT", "HELP"} and "HELP" in facts
        assert "UNIT" not in facts or name.endswith(f"_{facts['UNIT']}")
        assert name in families
    return families


def _sample(line: str) -> tuple[str, Labels, float]:
    found = NAME.match(line)
    assert found
    assert line[found.end()] == "{"
    at, labels = found.end() + 1, []
    while line[at] != "}":
        label = LABEL.match(line, at)
        assert label, line[at:]
        value = re.sub(r"\\[n\"\\]", lambda match: ESCAPES[match[0]], label[2])
        labels.append((label[1], value))
        at = label.end()
        assert line[at] in ",}"
        at += line[at] == ","
    assert len({name for name, _ in labels}) == len(labels)
    assert line[at + 1] == " " and NUMBER.fullmatch(line[at + 2 :]), line
    return found[0], frozenset(labels), float(line[at + 2 :])


@pytest.fixture
def health() -> TableHealth:
    ds = tw.write_dataset({"id": range(1000), "x": range(1000)}, "memory://health-metrics", mode="overwrite")
    ds.delete("id < 300")
    return ds.health()


def test_the_text_parses(health: TableHealth) -> None:
    found = parse(health.to_openmetrics())
    table = ("table", "memory://health-metrics")
    rows = found["tablewright_table_rows"]
    assert rows == {
        frozenset({table, ("state", "live")}): 700.0,
        frozenset({table, ("state", "deleted")}): 300.0,
    }
    assert found["tablewright_table_data_bytes"] == {frozenset({table}): health.bytes.data}
    assert sum(found["tablewright_table_manifest_bytes"].values()) == health.manifest.total
    assert found["tablewright_table_recommended"][frozenset({table, ("action", "compact")})] == 1.0
    assert found["tablewright_table_read_overhead_ratio"][frozenset({table})] > 0


def test_names_are_escaped(health: TableHealth) -> None:
    odd = 'a"b\\c\nd'
    index = IndexHealth(
        name=odd,
        kind="BTree",
        columns=("id",),
        segments=1,
        bytes=10,
        indexed_rows=1,
        unindexed_rows=2,
        unindexed_fragments=1,
        stale_fragments=0,
    )
    found = parse(replace(health, indices=(index,), branch=odd, read_overhead=None).to_openmetrics())
    (labels,) = found["tablewright_table_unindexed_rows"]
    assert dict(labels)["index"] == dict(labels)["branch"] == odd
    assert "tablewright_table_read_overhead_ratio" not in found


def test_an_empty_table_has_metrics() -> None:
    ds = tw.write_dataset({"id": [1]}, "memory://health-metrics-empty", mode="overwrite")
    assert parse(ds.health().to_openmetrics())["tablewright_table_reclaimable_bytes"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: text.removesuffix("# EOF\n"),
        lambda text: text.replace("# TYPE", "# KIND", 1),
        lambda text: text.replace("} ", "}", 1),
        lambda text: text.replace("_bytes bytes", "_bytes seconds", 1),
    ],
    ids=["no end", "unknown word", "no space", "unit"],
)
def test_the_parser_is_strict(health: TableHealth, broken: object) -> None:
    assert callable(broken)
    with pytest.raises((AssertionError, ValueError)):
        parse(broken(health.to_openmetrics()))
