"""engine/spark/spool.py: files between the driver and workers on its machine. With a session: tests/spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tablewright.engine.spark.spool import Spool, is_on_this_machine, opened_spool
from tablewright.errors import StorageError


def _session(master: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master))


def test_parts_come_back_as_they_were(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    parts = [b"", b"a", b"b" * 100, memoryview(b"c")]
    found = spool.write(parts)
    assert [place.read() for place in found] == list(map(bytes, parts))
    assert [bytes(place.mapped()) for place in found[1:]] == list(map(bytes, parts[1:]))
    assert all(place.begin % 64 == 0 for place in found)
    assert len({place.path for place in (*found, *spool.write([b"x"]))}) == 2, "a file is never written again"
    assert spool.write([]) == []


def test_only_local_masters_share_this_machine() -> None:
    masters = {"local": True, "local[*]": True, "local[2,4]": True, "local-cluster[2,1,1024]": False, "yarn": False}
    assert {master: is_on_this_machine(_session(master)) for master in masters} == masters


def test_the_directory_goes_with_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with opened_spool(_session("yarn")) as none:
        assert none is None

    def work() -> None:
        with opened_spool(_session("local[*]")) as spool:
            assert spool is not None
            spool.write([b"x"])
            assert len(list(tmp_path.rglob("*"))) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not list(tmp_path.iterdir())


def test_the_directory_is_below_that_of_pyspark(tmp_path: Path) -> None:
    """The JVM removes that one, also if the driver is killed."""
    session = _session("local[2]")
    session.sparkContext._temp_dir = str(tmp_path)
    with opened_spool(session) as spool:
        assert spool is not None
        assert Path(spool.directory).parent == tmp_path
    assert not list(tmp_path.iterdir())


def test_a_full_disk_names_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="TMPDIR"):
        Spool(str(tmp_path / "missing")).write([b"x"])
