"""Who worked on what at which tick, as text: a row a worker, a column a tick."""

import io
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

from rich.console import Console
from rich.text import Text

from analysis.beside import Beside
from lanes.errors import ConvoyError
from lanes.event import HistoryEvent
from lanes.schedule import Work, ticks

CELL = 3
"""Columns of text a tick: shipment, version, and a mark for a backward write."""

SUFFIXES = (".txt", ".svg", ".html")
LONGEST_LINE = 150
MOST_LINES = 40
COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")


def swimlanes_of(beside: Beside | None, live_backward: Collection[int]) -> Text | None:
    """The swimlanes of a paced run below its model; None for a run at full speed."""
    if beside is None or beside.predicted is None or not beside.live:
        return None
    model = beside.predicted
    return swimlanes(model.schedule, model.backward_orders, beside.live, live_backward)


def fits_terminal(text: Text) -> bool:
    """Whether swimlanes are small enough to be read in a terminal."""
    lines = text.plain.splitlines()
    return len(lines) <= MOST_LINES and max(map(len, lines)) <= LONGEST_LINE


def swimlanes(
    model: Sequence[Work],
    model_backward: Collection[int],
    live: Sequence[Work],
    live_backward: Collection[int],
) -> Text:
    """The model above, the live run below, and a legend. Backward writes end in `!`.

    The two collections hold the arrival orders of the events that wrote backward.
    """
    names = sorted({work.event.tracking_no for work in [*model, *live]})
    letter = {name: _letter(index) for index, name in enumerate(names)}
    colour = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    text = Text()
    for title, schedule, backward in (("model", model, model_backward), ("live", live, live_backward)):
        _add_lanes(text, title, schedule, backward, letter, colour)
    text.append("   ".join(f"{letter[name]} {name}" for name in names) + "\n")
    text.append("digit: version of the state, s: scan; ! backward write\n", style="dim")
    return text


def _letter(index: int) -> str:
    letters = ascii_uppercase + ascii_lowercase
    return letters[index % len(letters)]


def _add_lanes(
    text: Text,
    title: str,
    schedule: Sequence[Work],
    backward: Collection[int],
    letter: dict[str, str],
    colour: dict[str, str],
) -> None:
    length = ticks(schedule)
    rows: dict[int, list[Work]] = defaultdict(list)
    for work in schedule:
        rows[work.worker].append(work)
    text.append(f"{title:<10}" + "".join(f"{tick:<{CELL}}" for tick in range(length)) + f"{length}\n", "bold")
    for worker in sorted(rows):
        text.append(f"worker {worker:<3}")
        now = 0
        for work in sorted(rows[worker], key=lambda work: work.start):
            text.append("·  " * (work.start - now), style="dim")
            cells = _cells(work, letter[work.event.tracking_no], work.event.order in backward)
            text.append(cells, style=colour[work.event.tracking_no])
            now = work.finish
        text.append("·  " * (length - now) + "\n", style="dim")


def _cells(work: Work, letter: str, backward: bool) -> str:
    what = "s" if isinstance(work.event, HistoryEvent) else str(work.event.version)
    width = (work.finish - work.start) * CELL
    body = f"{letter}{what}".ljust(width - 1, "─")
    return body[: width - 1] + ("!" if backward else " ")


def save(text: Text, path: Path) -> None:
    """Write swimlanes to a file: plain text, or a picture or page by its suffix .svg or .html.

    Raises ConvoyError where the file cannot be written.
    """
    width = max(len(line) for line in text.plain.splitlines()) + 2
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(text)
    if path.suffix.lower() not in SUFFIXES:
        raise ConvoyError(f"cannot write {path}: the name must end in {', '.join(SUFFIXES)}")
    try:
        _save_as(console, path)
    except OSError as error:
        raise ConvoyError(f"cannot write {path}: {error.strerror}") from error


def _save_as(console: Console, path: Path) -> None:
    match path.suffix.lower():
        case ".svg":
            console.save_svg(str(path), title="model and live")
        case ".html":
            console.save_html(str(path))
        case _:
            console.save_text(str(path))
