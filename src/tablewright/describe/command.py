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
from tablewright.describe.files import KINDS, describe_file
from tablewright.describe.report import Report
from tablewright.errors import TablewrightError
from tablewright.storage import open_store
from tablewright.storage.base import ObjectNotFound

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
    paths: Annotated[list[str], typer.Argument(help="Files: local paths, or addresses like s3://bucket/table/…")],
    kind: Annotated[str | None, typer.Option("--as", help=f"The kind of file: {', '.join(KINDS)}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document per file.")] = False,
) -> None:
    """Print files of tables: manifests, transactions, deletion vectors, key hashes, snapshots and schemas."""
    failed = False
    for path in paths:
        try:
            report = describe_file(_read(path), path, kind)
        except (TablewrightError, ObjectNotFound) as error:
            typer.echo(f"{path}: {error}", err=True)
            failed = True
            continue
        if as_json:
            typer.echo(json.dumps({"path": path, **report.to_dict()}))
        else:
            _print(path, report)
    if failed:
        raise typer.Exit(1)


def _read(path: str) -> bytes:
    place, _, name = path.rpartition("/")
    return open_store(place or ("/" if path.startswith("/") else ".")).get(name)


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
