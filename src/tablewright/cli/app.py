"""The command line: ``tablewright describe PATH…``, ``tablewright health TABLE…``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tablewright._version import __version__
from tablewright.api.dataset import dataset
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


@app.command()
def health(
    tables: Annotated[list[str], typer.Argument(help="Tables: local paths, or addresses like s3://bucket/table")],
    workload: Annotated[
        str,
        typer.Option(help="Compact above 5 % deleted rows (read), above 10 % (mixed) or above 20 % (write)."),
    ] = "mixed",
    versions: Annotated[int, typer.Option(help="Compare this many of the newest versions.")] = 10,
    sample: Annotated[bool, typer.Option(help="Measure what deletions cost a scan.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document per table.")] = False,
    openmetrics: Annotated[bool, typer.Option("--openmetrics", help="OpenMetrics text, of one table.")] = False,
) -> None:
    """Print what deletions, small fragments, old versions and indices of a table cost, and what to do about it."""
    if openmetrics and (as_json or len(tables) > 1):
        raise typer.BadParameter("--openmetrics prints one table, and not as JSON.")
    failed = False
    for table in tables:
        try:
            found = dataset(table).health(workload=workload, versions=versions, sample=sample)
        except TablewrightError as error:
            typer.echo(f"{table}: {error}", err=True)
            failed = True
            continue
        if openmetrics:
            typer.echo(found.to_openmetrics(), nl=False)
        else:
            typer.echo(json.dumps(found.to_dict()) if as_json else str(found))
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
