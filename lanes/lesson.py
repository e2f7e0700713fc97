"""The lesson's 20 events, shipped with the package."""

from importlib import resources

from lanes.event import StateEvent, decode


def lesson_events() -> list[StateEvent]:
    """20 state events of 5 shipments on 3 lines, in arrival order; 32 ticks of work."""
    lines = resources.files("lanes").joinpath("lesson.jsonl").read_bytes().splitlines()
    return [decode(line) for line in lines]
