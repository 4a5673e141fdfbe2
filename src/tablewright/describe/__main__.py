"""``python -m tablewright.describe PATH…``: the command ``tablewright describe``."""

import typer

from tablewright.describe.command import describe

if __name__ == "__main__":
    typer.run(describe)
