"""Acero, Arrow's executor of plans."""

from collections.abc import Sequence

from pyarrow._tables import Table
from pyarrow.compute import Expression

class ExecNodeOptions: ...

class TableSourceNodeOptions(ExecNodeOptions):
    def __init__(self, table: Table) -> None: ...

class ProjectNodeOptions(ExecNodeOptions):
    def __init__(self, expressions: Sequence[Expression], names: Sequence[str] | None = None) -> None: ...

class Declaration:
    def __init__(
        self, factory_name: str, options: ExecNodeOptions, inputs: Sequence[Declaration] | None = None
    ) -> None: ...
    @staticmethod
    def from_sequence(decls: Sequence[Declaration]) -> Declaration: ...
    def to_table(self, use_threads: bool = True) -> Table: ...
