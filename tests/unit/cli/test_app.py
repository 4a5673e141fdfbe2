"""``tablewright health``; ``tablewright describe`` on every kind of file there is: of others, and some of our own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tablewright as tw
from tablewright._version import __version__
from tablewright.cli import app
from tablewright.describe.files import describe_file

GOLDEN = Path(__file__).parents[2] / "golden"


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["describe", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_what_is_printed() -> None:
    text = run(GOLDEN / "paimon/dv-mixed.bin")
    assert "Paimon deletion vectors" in text
    assert [line.split()[:5] for line in text.splitlines()[-2:]] == [
        ["0", "1", "28", "32", "4"],
        ["1", "37", "48", "64", "4"],
    ]
    assert "0, 2, 5, 9" in text
    assert "data-a.parquet" in run(GOLDEN / "iceberg/two-blobs.puffin")
    assert "dv32-two-bins.bin" in run(GOLDEN / "paimon/index-manifest.avro")


def test_delta_counts_without_the_frame(tmp_path: Path) -> None:
    file = tmp_path / "deletion_vector_x.bin"
    file.write_bytes((GOLDEN / "delta/dv-file-one.bin").read_bytes())
    report = json.loads(run(file, "--json"))
    assert report["title"] == "Delta Lake deletion vectors"
    assert report["rows"] == [
        {"bin": 0, "offset": 1, "sizeInBytes": 40, "bits": 64, "deleted rows": 4, "positions": "0, 2, 5, 9"}
    ]


def test_every_file_of_a_lance_table(tmp_path: Path) -> None:
    ds = tw.write_dataset(pa.table({"id": range(10_000)}), tmp_path / "t.lance", max_rows_per_file=5000)
    ds.delete("id < 3 or id >= 5000 and id < 9999")
    titles = []
    for folder in ("_versions", "_transactions", "_deletions"):
        for file in sorted((tmp_path / "t.lance" / folder).iterdir()):
            if file.suffix in (".manifest", ".txn", ".arrow", ".bin"):
                titles.append(json.loads(run(file, "--json"))["title"])
    assert sorted(titles) == sorted(["Lance manifest", "Lance transaction"] * 2 + ["Lance deletion file"] * 2)
    manifests = [json.loads(run(file, "--json")) for file in (tmp_path / "t.lance/_versions").glob("*.manifest")]
    newest = max(manifests, key=lambda report: report["facts"]["version"])
    assert newest["facts"]["rows"] == 4998
    assert [row["deleted"] for row in newest["rows"]] == [3, 4999]
    deleted = [json.loads(run(file, "--json"))["facts"] for file in sorted((tmp_path / "t.lance/_deletions").iterdir())]
    assert [facts["deleted rows"] for facts in deleted] == [3, 4999]


def test_snapshots_and_schemas(tmp_path: Path) -> None:
    schema = {
        "version": 3,
        "id": 0,
        "fields": [{"id": 0, "name": "k", "type": "INT NOT NULL"}],
        "highestFieldId": 0,
        "partitionKeys": [],
        "primaryKeys": ["k"],
        "options": {"bucket": "-1"},
        "timeMillis": 0,
    }
    (tmp_path / "schema-0").write_text(json.dumps(schema))
    text = run(tmp_path / "schema-0")
    assert "primary key  k" in text and "INT NOT NULL" in text and "bucket  -1" in text
    snapshot = {
        "version": 3,
        "id": 4,
        "schemaId": 0,
        "baseManifestList": "manifest-list-a-0",
        "deltaManifestList": "manifest-list-a-1",
        "commitUser": "somebody",
        "commitIdentifier": 9,
        "commitKind": "APPEND",
        "timeMillis": 1_700_000_000_000,
        "totalRecordCount": 5,
        "deltaRecordCount": 5,
    }
    (tmp_path / "snapshot-4").write_text(json.dumps(snapshot))
    text = run(tmp_path / "snapshot-4")
    assert "somebody, commit 9" in text and "2023-11-14 22:13:20 UTC" in text and "manifest-list-a-1" in text


def test_what_is_wrong_is_said_and_the_others_are_printed(tmp_path: Path) -> None:
    damaged = bytearray((GOLDEN / "paimon/dv32-two-bins.bin").read_bytes())
    damaged[20] ^= 1
    (tmp_path / "damaged.bin").write_bytes(damaged)
    (tmp_path / "unknown").write_bytes(b"hello")
    good = GOLDEN / "paimon/dv-mixed.bin"
    text = run(tmp_path / "damaged.bin", tmp_path / "unknown", tmp_path / "missing", good, code=1)
    assert "CRC" in text.upper() and "no file that we know" in text and "missing" in text
    assert "Paimon deletion vectors" in text


def test_the_kind_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "anything").write_bytes(b"\x01\x00\x00\x00")
    assert "hashes  1" in run(tmp_path / "anything", "--as", "paimon-hashes")
    assert "There is no kind" in run(tmp_path / "anything", "--as", "nonsense", code=1)


def test_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "anything").write_bytes(b"\x01\x00\x00\x00")
    command = [sys.executable, "-m", "tablewright.cli", "describe", "--as", "paimon-hashes", str(tmp_path / "anything")]
    assert "hashes  1" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == __version__


class TestWholeTables:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        ds = tw.write_dataset({"id": range(10), "s": list("abcdefghij")}, tmp_path / "t.lance", max_rows_per_file=6)
        ds.tags.create("first", 1)
        ds.delete("id < 2")
        return tmp_path / "t.lance"

    def test_a_table(self, table: Path) -> None:
        report = json.loads(run(table, "--json"))
        facts = report["facts"]
        assert report["title"] == "Lance table"
        assert (facts["version"], facts["versions"], facts["rows"], facts["deleted rows"]) == (
            2,
            "2, from 1 to 2",
            8,
            2,
        )
        assert (facts["schema"], facts["tags"], facts["branches"]) == ("id: int64; s: string", "first (1)", "none")
        assert facts["data files"].startswith("2 of version 2.2, ")
        assert [(row["rows"], row["deleted"]) for row in report["rows"]] == [(6, 2), (4, 0)]
        assert "Lance table" in run(f"{table}/")

    def test_its_data_files(self, table: Path) -> None:
        reports = [json.loads(run(file, "--json")) for file in (table / "data").iterdir()]
        assert {report["title"] for report in reports} == {"Lance data file"}
        assert sorted(report["facts"]["rows"] for report in reports) == [4, 6]
        file = next((table / "data").iterdir())
        facts = json.loads(run(file, "--json"))
        assert (facts["facts"]["file version"], facts["facts"]["bytes"]) == ("2.2", file.stat().st_size)
        assert facts["rows"][1] == {"column": "s", "type": "string", "nullable": "yes"}
        assert describe_file(file.read_bytes(), "x.lance").title == "Lance data file"

    def test_in_the_working_directory(self, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(table)
        assert "Lance table" in run(".")
        assert "Lance data file" in run(f"data/{next(Path('data').iterdir()).name}")

    @pytest.mark.parametrize(
        ("path", "told"),
        [
            ("nope.lance", "There is no file and no table at"),
            ("nope/data/x.lance", "There is no file and no table at"),
            ("t.lance/data", "is a directory without versions of a Lance table"),
            ("text.md", "is no file that we know"),
            ("rows.parquet", "is no file that we know"),
        ],
    )
    def test_what_is_none(self, table: Path, path: str, told: str) -> None:
        (table.parent / "text.md").write_text("# a text of 20 bytes")
        (table.parent / "rows.parquet").write_bytes(b"PAR1PAR1")
        assert told in run(table.parent / path, code=1).replace("\n", " ")

    def test_a_damaged_data_file(self, table: Path) -> None:
        file = next((table / "data").iterdir())
        file.write_bytes(file.read_bytes()[:-7])
        assert "does not end in LANC" in run(file, code=1)


class TestHealth:
    """``tablewright health``."""

    @staticmethod
    def _run(*arguments: str | Path, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["health", *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result.output

    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        ds = tw.write_dataset({"id": range(100)}, tmp_path / "t.lance")
        ds.delete("id < 30")
        return tmp_path / "t.lance"

    def test_it_prints_what_the_library_prints(self, table: Path) -> None:
        text = self._run(table, "--no-sample")
        assert text == f"{tw.dataset(table).health(sample=False)}\n"
        assert "70 live, 30 deleted (30 %)" in text
        assert "read overhead" in self._run(table)

    def test_json(self, table: Path) -> None:
        documents = [json.loads(line) for line in self._run(table, table, "--json", "--versions", "1").splitlines()]
        assert [document["rows"]["deleted"] for document in documents] == [30, 30]
        assert len(documents[0]["growth"]) == 1

    def test_openmetrics(self, table: Path) -> None:
        text = self._run(table, "--openmetrics", "--no-sample", "--workload", "read")
        assert text == tw.dataset(table).health(workload="read", sample=False).to_openmetrics()
        assert text.endswith("# EOF\n")
        self._run(table, table, "--openmetrics", code=2)
        self._run(table, "--openmetrics", "--json", code=2)

    def test_what_is_wrong(self, table: Path) -> None:
        assert "was not found" in self._run(table.parent / "nope", table, code=1)
        assert "Unknown workload" in self._run(table, "--workload", "heavy", code=1)
