"""What happened inside worker processes, told in a file that survives their death."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened. `at_s` is the machine's monotonic clock, which its processes share."""

    what: str
    pid: int
    at_s: float


def note(log: Path, what: str) -> None:
    """Write a note, whole or not at all: one write to a file that is only appended."""
    line = json.dumps(asdict(Note(what, os.getpid(), time.monotonic()))) + "\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def notes(log: Path, what: str) -> list[Note]:
    """The notes of one kind, in the order written."""
    return [each for each in _all(log) if each.what == what]


def _all(log: Path) -> Iterator[Note]:
    if not log.exists():
        return
    for line in log.read_text().splitlines():
        yield Note(**json.loads(line))
