"""Rules of structure that the layers of import-linter don't express; ``make check`` runs them.

===================  ==============================================================================================
``cycles``           no modules import each other in a circle, imports for typing and inside functions counted
``hidden-imports``   few imports of our own modules inside functions, each with a comment that gives the reason
``spark-imports``    ``tablewright.engine.spark`` is imported in ``engine/`` and ``spark/`` only
``engine-names``     the name of an engine is for printing: it is compared in ``engine/`` only
``attempts``         the loop around a conflict is written once: its parts are called in a few packages only
``private``          no module uses a private name of another one
``length``           no module has more than 500 lines
===================  ==============================================================================================

Walks the syntax tree of every module, so nothing is imported. Prints what breaks a rule and ends with status 1, or says
that all hold. Arguments name the rules to check; without any, all of them.

Tests: tests/unit/test_structure.py
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
PACKAGE = "tablewright"
GENERATED = "_pb2"

HIDDEN_MAX = 10
LINES_MAX = 500
SPARK = f"{PACKAGE}.engine.spark"
SPARK_HOMES = ("engine", "spark")
ENGINE_NAMES = frozenset({"local", "spark"})
ENGINE_HOMES = ("engine",)
ATTEMPT_CALLS = frozenset({"with_retries", "open_newest"})
ATTEMPT_ERROR = "CommitConflict"
ATTEMPT_HOMES = ("jobs", "transaction", "snapshot")
NO_PRIVATE = frozenset({"_replace", "_asdict", "_fields", "_make"})  # of named tuples

Functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Import:
    """One name that a module imports: where, from which of our modules, and whether inside a function."""

    line: int
    target: str
    is_hidden: bool


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name, its path below ``src``, its text."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def home(self) -> str:
        """The package or module directly below ``tablewright`` that it belongs to."""
        return self.name.split(".")[1] if "." in self.name else ""

    def at(self, line: int) -> str:
        """A place in it, as compilers print them."""
        return f"src/{self.path}:{line}"

    @cached_property
    def comments(self) -> frozenset[int]:
        """The lines with a comment for people."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        machine = ("# noqa", "# type:", "# fmt:", "# pragma")
        found = (token for token in tokens if token.type == tokenize.COMMENT)
        return frozenset(token.start[0] for token in found if not token.string.startswith(machine))


Modules = Mapping[str, Module]


def read_modules(source: Path) -> Modules:
    """Every module below ``source`` by its dotted name, generated ones aside."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        if not path.stem.endswith(GENERATED):
            relative = path.relative_to(source)
            parts = relative.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, relative, path.read_text(encoding="utf-8"))
    return found


# ---------------------------------------------------------------------------------------------------------- imports
def imports_of(module: Module, modules: Modules) -> list[Import]:
    """What a module imports of ours. ``from a import b`` means the module ``a.b`` if there is one, else ``a``."""
    found: list[Import] = []

    def walk(node: ast.AST, is_hidden: bool) -> None:
        for target in _targets(node, module, modules):
            found.append(Import(getattr(node, "lineno", 0), target, is_hidden))
        for child in ast.iter_child_nodes(node):
            walk(child, is_hidden or isinstance(node, Functions))

    walk(module.tree, False)
    return found


def _targets(node: ast.AST, module: Module, modules: Modules) -> Iterator[str]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = _base(node, module)
        inner = (f"{base}.{alias.name}" for alias in node.names)
        names = [each if each in modules else base for each in inner]
    elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
        given = [str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant)]
        names = [each for each in given if each != PACKAGE]  # alone it is asked for its version, by workers of Spark
    yield from dict.fromkeys(name for name in names if name.split(".")[0] == PACKAGE)


def _base(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    above = node.level - (module.path.name == "__init__.py")
    return ".".join([*parts[: len(parts) - above], *([node.module] if node.module else [])])


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def cycles(modules: Modules) -> Iterator[str]:
    """The strongly connected components of the import graph that have more than one module."""
    graph = {
        name: sorted({each.target for each in imports_of(module, modules)} & modules.keys() - {name})
        for name, module in modules.items()
    }
    for component in _components(graph):
        if len(component) > 1:
            yield f"import cycle of {len(component)} modules: {', '.join(sorted(component))}"


def _components(graph: Mapping[str, list[str]]) -> list[list[str]]:
    """Tarjan's algorithm, without recursion."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in order else []
        while work:
            node, rest = work[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                stack.append(node)
            following = next((each for each in rest if each not in order or each in stack), None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    del stack[at:]
            elif following not in order:
                work.append((following, iter(graph[following])))
            else:
                low[node] = min(low[node], order[following])
    return found


def hidden_imports(modules: Modules) -> Iterator[str]:
    """Imports inside functions that give no reason; and all of them, if they are too many."""
    hidden = [
        (module, line)
        for module in modules.values()
        for line in sorted({each.line for each in imports_of(module, modules) if each.is_hidden})
    ]
    for module, line in hidden:
        if not {line, _begin(module, line) - 1} & module.comments:
            yield f"{module.at(line)}: an import inside a function without a reason in a comment beside or above it"
    if len(hidden) > HIDDEN_MAX:
        yield f"{len(hidden)} imports inside functions, {HIDDEN_MAX} at most: " + ", ".join(
            module.at(line) for module, line in hidden
        )


def _begin(module: Module, line: int) -> int:
    """The first line of the run of imports that a line belongs to: one reason serves them all."""
    lines = module.text.splitlines()
    while lines[line - 2].strip().startswith(("from ", "import ")):
        line -= 1
    return line


def spark_imports(modules: Modules) -> Iterator[str]:
    """Imports of Spark's engine by others than the engines and the data source."""
    for module in modules.values():
        if module.home not in SPARK_HOMES:
            for each in imports_of(module, modules):
                if each.target == SPARK or each.target.startswith(SPARK + "."):
                    yield f"{module.at(each.line)}: imports {each.target}; only {_listed(SPARK_HOMES)} may do that"


# ------------------------------------------------------------------------------------------------------------- code
def engine_names(modules: Modules) -> Iterator[str]:
    """Comparisons of an attribute ``name`` with the names of engines."""
    for module in modules.values():
        if module.home not in ENGINE_HOMES:
            for node in ast.walk(module.tree):
                if _asks_for_engine(node):
                    yield (
                        f"{module.at(getattr(node, 'lineno', 0))}: compares the name of an engine; "
                        f"only {_listed(ENGINE_HOMES)} may do that"
                    )


def _asks_for_engine(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Match):
        sides = [node.subject, *(value for case in node.cases for value in ast.walk(case.pattern))]
        sides = [each.value if isinstance(each, ast.MatchValue) else each for each in sides]
    else:
        return False
    is_name = any(isinstance(each, ast.Attribute) and each.attr == "name" for each in sides)
    return is_name and any(
        isinstance(each, ast.Constant) and each.value in ENGINE_NAMES for side in sides for each in ast.walk(side)
    )


def attempts(modules: Modules) -> Iterator[str]:
    """What makes up a loop of attempts: the retries, the newest version, the conflict that is caught."""
    for module in modules.values():
        if module.home not in ATTEMPT_HOMES:
            for node in ast.walk(module.tree):
                what = ""
                if isinstance(node, ast.Call) and _called(node) in ATTEMPT_CALLS:
                    what = f"calls {_called(node)}"
                elif isinstance(node, ast.ExceptHandler) and node.type and ATTEMPT_ERROR in ast.unparse(node.type):
                    what = f"catches {ATTEMPT_ERROR}"
                if what:
                    yield f"{module.at(node.lineno)}: {what}; only {_listed(ATTEMPT_HOMES)} may do that"


def private(modules: Modules) -> Iterator[str]:
    """Private names of ours that are used where they are not defined, on anything but ``self`` and ``cls``."""
    owned = {name: _private_names(module.tree) for name, module in modules.items()}
    everywhere = frozenset[str]().union(*owned.values())
    for name, module in modules.items():
        elsewhere = everywhere - owned[name] - NO_PRIVATE
        for line, text, attribute in sorted(_accesses(module.tree)):
            if attribute in elsewhere:
                yield f"{module.at(line)}: {text} is private to another module"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and _base(node, module).split(".")[0] == PACKAGE:
                for alias in node.names:
                    if _is_private(alias.name) and f"{_base(node, module)}.{alias.name}" not in modules:
                        yield f"{module.at(node.lineno)}: {alias.name} is private to {_base(node, module)}"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _accesses(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and not _is_own(node.value):
            yield node.lineno, ast.unparse(node), node.attr
        elif isinstance(node, ast.Call) and _called(node) in ("getattr", "setattr") and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and _is_private(str(name.value)) and not _is_own(node.args[0]):
                yield node.lineno, ast.unparse(node), str(name.value)


def _is_own(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _called(node) in ("super", "type") and all(_is_own(each) for each in node.args)
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _private_names(tree: ast.AST) -> frozenset[str]:
    """Private names that a module defines: functions, classes, variables, attributes of ``self``, slots."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and _called(node) == "__setattr__" and len(node.args) == 3:
            found.update(str(each.value) for each in node.args[1:2] if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Assign) and any(ast.unparse(each) == "__slots__" for each in node.targets):
            found.update(str(each.value) for each in ast.walk(node.value) if isinstance(each, ast.Constant))
    return frozenset(name for name in found if _is_private(name))


def length(modules: Modules) -> Iterator[str]:
    """Modules with more lines than one idea takes."""
    for module in modules.values():
        lines = module.text.count("\n")
        if lines > LINES_MAX:
            yield f"src/{module.path}: {lines} lines, {LINES_MAX} at most"


def _listed(homes: tuple[str, ...]) -> str:
    return ", ".join(f"{home}/" for home in homes)


RULES: Mapping[str, Callable[[Modules], Iterator[str]]] = {
    "cycles": cycles,
    "hidden-imports": hidden_imports,
    "spark-imports": spark_imports,
    "engine-names": engine_names,
    "attempts": attempts,
    "private": private,
    "length": length,
}


def main(names: list[str]) -> int:
    """Check ``src`` by the rules of these names and report."""
    unknown = sorted(set(names) - RULES.keys())
    if unknown:
        print(f"No rules named {', '.join(unknown)}. There are: {', '.join(RULES)}.", file=sys.stderr)
        return 2
    modules = read_modules(SOURCE)
    found = [f"{name}: {line}" for name in names or RULES for line in RULES[name](modules)]
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(f"structure: {len(modules)} modules keep the rules {', '.join(names or RULES)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
