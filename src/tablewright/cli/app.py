"""The command line: ``tablewright describe PATH…``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tablewright._version import __version__
from tablewright.describe.files import KINDS
from tablewright.describe.places import describe_place
from tablewright.describe.report import Report
from tablewright.errors import TablewrightError

__all__ = ["app"]

_WIDTH_OF_FILES = 400  # nothing is cut where no terminal sets a limit

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Look into Lance and Paimon tables.")


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the release and stop.")] = False) -> None:
    """What all commands share."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def describe(
    paths: Annotated[
        list[str], typer.Argument(help="Tables or files of them: local paths, or addresses like s3://bucket/table/…")
    ],
    kind: Annotated[str | None, typer.Option("--as", help=f"The kind of file: {', '.join(KINDS)}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document per file.")] = False,
) -> None:
    """Print tables and their files: data files, manifests, transactions, deletion vectors, snapshots and schemas."""
    failed = False
    for path in paths:
        try:
            report = describe_place(path, kind)
        except TablewrightError as error:
            typer.echo(f"{path}: {error}", err=True)
            failed = True
            continue
        if as_json:
            typer.echo(json.dumps({"path": path, **report.to_dict()}))
        else:
            _print(path, report)
    if failed:
        raise typer.Exit(1)


def _print(path: str, report: Report) -> None:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_OF_FILES, highlight=False)
    console.print(f"[bold]{report.title}[/] {escape(path)}")
    for name, value in report.facts:
        console.print(f"  [dim]{escape(name)}[/]  {escape(str(value))}")
    if report.rows:
        table = Table(*report.columns, box=None, padding=(0, 2), header_style="dim")
        for row in report.rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        console.print(table)
