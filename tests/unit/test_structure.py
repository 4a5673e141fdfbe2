"""tools/structure.py: each rule finds what breaks it, and those that `make check` asks for hold here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools import structure

MAKEFILE = (structure.SOURCE.parent / "Makefile").read_text()
CHECKED = [
    name for names in re.findall(r"tools/structure\.py(.*)", MAKEFILE) for name in names.split() or structure.RULES
]


def broken(tmp_path: Path, rule: str, **files: str) -> list[str]:
    """What a rule says of a package with these modules; `a__b` is the module a/b.py."""
    for name, code in files.items():
        path = tmp_path / "tablewright" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return list(structure.RULES[rule](structure.read_modules(tmp_path)))


@pytest.fixture(scope="module")
def here() -> structure.Modules:
    return structure.read_modules(structure.SOURCE)


@pytest.mark.parametrize("rule", CHECKED)
def test_the_rule_holds_here(here: structure.Modules, rule: str) -> None:
    assert list(structure.RULES[rule](here)) == []


def test_unknown_rules_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert structure.main(["nope"]) == 2
    assert "No rules named nope" in capsys.readouterr().err


class TestCycles:
    @pytest.mark.parametrize(
        "code",
        [
            "from tablewright.a.one import x",
            "import tablewright.a.one",
            "from tablewright.a import one",
            "from . import one",
            "from .one import x",
            "def f():\n    from tablewright.a.one import x",
            "if TYPE_CHECKING:\n    from tablewright.a.one import x",
            "import importlib\nimportlib.import_module('tablewright.a.one')",
        ],
    )
    def test_every_way_to_import_counts(self, tmp_path: Path, code: str) -> None:
        found = broken(tmp_path, "cycles", a__one="from tablewright.a.two import y", a__two=code)
        assert found == ["import cycle of 2 modules: tablewright.a.one, tablewright.a.two"]

    def test_long_ones_and_several(self, tmp_path: Path) -> None:
        ring = {f"m{number}": f"import tablewright.m{(number + 1) % 5}" for number in range(5)}
        pair = {"p": "import tablewright.q", "q": "import tablewright.p\nimport tablewright.m3"}
        found = broken(tmp_path, "cycles", **ring, **pair)
        assert sorted(line.split(":")[0] for line in found) == [
            "import cycle of 2 modules",
            "import cycle of 5 modules",
        ]

    def test_one_way_is_fine(self, tmp_path: Path) -> None:
        files = {"a": "import tablewright.b, tablewright.c", "b": "import tablewright.c", "c": "import os"}
        assert broken(tmp_path, "cycles", **files) == []


class TestHiddenImports:
    def test_a_reason_is_needed(self, tmp_path: Path) -> None:
        code = "def f():\n    x = 1\n    from tablewright.b import y\n    return y"
        (line,) = broken(tmp_path, "hidden-imports", a=code)
        assert line.startswith("src/tablewright/a.py:3: an import inside a function without a reason")

    @pytest.mark.parametrize(
        "code",
        [
            "def f():\n    from tablewright.b import y  # it needs a JVM",
            "def f():\n    # it needs a JVM\n    from tablewright.b import y",
            "def f():\n    # both need a JVM\n    from tablewright.b import y\n    from tablewright.c import z",
            "from tablewright.b import y",
            "if TYPE_CHECKING:\n    from tablewright.b import y",
            "def f():\n    import os",
        ],
    )
    def test_with_a_reason_or_at_the_top_they_are_fine(self, tmp_path: Path, code: str) -> None:
        assert broken(tmp_path, "hidden-imports", a=code) == []

    def test_a_mark_for_a_tool_is_no_reason(self, tmp_path: Path) -> None:
        assert broken(tmp_path, "hidden-imports", a="def f():\n    from tablewright.b import y  # noqa: F401") != []

    def test_they_are_few(self, tmp_path: Path) -> None:
        one = "    from tablewright.b import y  # a reason\n"
        assert broken(tmp_path, "hidden-imports", a="def f():\n" + one * 10) == []
        (line,) = broken(tmp_path, "hidden-imports", a="def f():\n" + one * 11)
        assert line.startswith("11 imports inside functions, 10 at most")


class TestEngines:
    @pytest.mark.parametrize("home", ["api__a", "jobs__a", "paimon__a", "cli__a", "world"])
    @pytest.mark.parametrize(
        "code", ["import tablewright.engine.spark.x", "def f():\n    from tablewright.engine.spark import x"]
    )
    def test_imports_of_spark(self, tmp_path: Path, home: str, code: str) -> None:
        assert len(broken(tmp_path, "spark-imports", **{home: code})) == 1

    @pytest.mark.parametrize("home", ["engine__a", "engine__spark__a", "spark__a"])
    def test_at_home_they_are_fine(self, tmp_path: Path, home: str) -> None:
        assert broken(tmp_path, "spark-imports", **{home: "import tablewright.engine.spark.x"}) == []

    @pytest.mark.parametrize(
        "code",
        [
            "engine.name == 'spark'",
            "if 'local' != work.engine.name: pass",
            "engine.name in ('spark', 'other')",
            "match engine.name:\n    case 'spark':\n        pass",
        ],
    )
    def test_names_are_not_compared(self, tmp_path: Path, code: str) -> None:
        assert len(broken(tmp_path, "engine-names", api__a=code)) == 1
        assert broken(tmp_path / "other", "engine-names", engine__a=code) == []

    @pytest.mark.parametrize("code", ["print(engine.name)", "field.name == 'id'", "mode == 'spark'"])
    def test_other_uses_are_fine(self, tmp_path: Path, code: str) -> None:
        assert broken(tmp_path, "engine-names", api__a=code) == []


class TestAttempts:
    @pytest.mark.parametrize(
        "code",
        [
            "with_retries(world, run)",
            "retry.with_retries(world, run)",
            "open_newest(snapshot)",
            "try:\n    pass\nexcept CommitConflict:\n    pass",
            "try:\n    pass\nexcept (ValueError, errors.CommitConflict) as error:\n    pass",
        ],
    )
    def test_only_where_the_loop_is(self, tmp_path: Path, code: str) -> None:
        assert len(broken(tmp_path, "attempts", api__a=code)) == 1
        assert broken(tmp_path / "other", "attempts", jobs__a=code, transaction__a=code, snapshot__a=code) == []


class TestPrivate:
    OWNER = "class A:\n    def __init__(self):\n        self._x = 1\n    def _f(self): ...\n_table = {}\n"

    @pytest.mark.parametrize(
        "code",
        ["a._x", "a._x = 2", "self.a._f()", "owner._table", "getattr(a, '_x')", "from tablewright.owner import _table"],
    )
    def test_of_another_module(self, tmp_path: Path, code: str) -> None:
        assert len(broken(tmp_path, "private", owner=self.OWNER, user=code)) == 1

    @pytest.mark.parametrize(
        "code",
        [
            "class B(A):\n    def f(self):\n        return self._x",
            "class B(A):\n    def f(self):\n        return super()._f()",
            "class B:\n    def __init__(self, b):\n        self._x = b._x",
            "frame._jdf",
            "point._replace(x=1)",
            "a.__class__",
        ],
    )
    def test_own_and_foreign_ones_are_fine(self, tmp_path: Path, code: str) -> None:
        assert broken(tmp_path, "private", owner=self.OWNER, user=code) == []


def test_long_modules(tmp_path: Path) -> None:
    assert broken(tmp_path, "length", a="x = 1\n" * 500, b_pb2="x = 1\n" * 501) == []
    assert broken(tmp_path, "length", a="x = 1\n" * 501) == ["src/tablewright/a.py: 501 lines, 500 at most"]
