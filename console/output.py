"""Results on stdout, as a table for people or as JSON for programs; everything else on stderr."""

import json
import logging
import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 160
"""Columns where stdout is no terminal: wide enough that no table is cut."""


def stdout() -> Console:
    """The console for results."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


def stderr() -> Console:
    """The console for progress and notes."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else PIPE_WIDTH, highlight=False)


def note(text: str) -> None:
    """One line for the person at the terminal, on stderr."""
    click.echo(text, err=True)


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout: the first column to the left, numbers to the right."""
    table = Table()
    for index, column in enumerate(columns):
        numeric = index > 0 and all(_is_number(row[index]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console = stdout()
    console.print(Text(title, style="bold"))
    console.print(table)


def _is_number(cell: object) -> bool:
    text = str(cell).strip()
    return isinstance(cell, int | float) or text in ("", "-") or text.replace(".", "", 1).isdigit()


def set_up_logging(verbose: int) -> None:
    """Log to stderr: warnings by default, lifecycle with -v, each record with -vv."""
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    handler = RichHandler(console=stderr(), show_path=False, rich_tracebacks=False)
    logging.basicConfig(level=level, format="%(name)s: %(message)s", handlers=[handler], force=True)
