"""A file of events, JSONL or CSV by its suffix, to events; each problem named by its line."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from lanes.errors import BadEvent
from lanes.event import Event, decode, from_cells
from lanes.lesson import lesson_events
from producer.errors import BadFile

JSONL_SUFFIXES = {".jsonl", ".ndjson", ".json"}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FIELDS = ("tracking_no", "line", "state", "duration", "order")

NumberedEvent = tuple[int, Event | str]
"""Line number and the event in it, or what is wrong with it."""


def events_or_lesson(path: Path | None) -> list[Event]:
    """The events of a file, the lesson's 20 where none is named; raises BadFile."""
    return lesson_events() if path is None else read_events(path)


def read_events(path: Path) -> list[Event]:
    """The events of a file, in the file's order.

    Raises BadFile with every problem: lines that are no event, an arrival order used twice, no event at
    all. A file is taken whole or not at all.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(path, [error.strerror or str(error)]) from error
    if path.suffix.lower() == ".csv":
        numbered = _from_csv(path, content)
    elif path.suffix.lower() in JSONL_SUFFIXES:
        numbered = _from_jsonl(content)
    else:
        raise BadFile(path, ["the name must end in .jsonl or .csv, so that its format is known"])
    return _checked(path, numbered)


def _checked(path: Path, numbered: Iterable[NumberedEvent]) -> list[Event]:
    events: list[Event] = []
    problems = []
    line_of_order: dict[int, int] = {}
    for line, event in numbered:
        if isinstance(event, str):
            problems.append(f"line {line}: {event}")
            continue
        first = line_of_order.setdefault(event.order, line)
        if first != line:
            problems.append(f"line {line}: order {event.order} is used on line {first} already")
        events.append(event)
    if not events and not problems:
        problems.append("it holds no event")
    if problems:
        raise BadFile(path, problems)
    return events


def _from_jsonl(content: bytes) -> Iterator[NumberedEvent]:
    lines = content.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, decode(line)
        except BadEvent as error:
            yield number, str(error)


def _from_csv(path: Path, content: bytes) -> Iterator[NumberedEvent]:
    content = content.removeprefix(BYTE_ORDER_MARK)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadFile(path, [f"line {line}: not UTF-8: {error.reason}"]) from error
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(filter(None, rows), [])]
        if header:
            _check_header(path, rows.line_num, header)
        for row in filter(None, rows):
            yield rows.line_num, _event_of_row(header, row)
    except csv.Error as error:
        yield rows.line_num, f"not CSV: {error}"


def _check_header(path: Path, line: int, header: list[str]) -> None:
    """Every field has a column, and no column another of its name, whose cells would count in silence."""
    missing = [name for name in FIELDS if name not in header]
    if missing:
        raise BadFile(path, [f"line {line}: no column {', '.join(missing)}; there are {', '.join(header)}"])
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise BadFile(path, [f"line {line}: more than one column {', '.join(twice)}"])


def _event_of_row(header: list[str], row: list[str]) -> Event | str:
    if len(row) != len(header):
        return f"{len(row)} cells under {len(header)} columns"
    try:
        return from_cells(dict(zip(header, row, strict=True)))
    except BadEvent as error:
        return str(error)
