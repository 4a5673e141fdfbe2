"""``python -m tablewright.cli describe PATH…``: the command ``tablewright`` where its script is not on the path.

Tests: tests/unit/cli/test_app.py
"""

from tablewright.cli.app import app

if __name__ == "__main__":
    app(prog_name="python -m tablewright.cli")
