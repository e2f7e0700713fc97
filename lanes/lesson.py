"""The lesson's events, shipped with the package."""

from importlib import resources

from lanes.event import Event, decode


def lesson_events() -> list[Event]:
    """20 state events of 5 shipments on 3 lines, in arrival order; 32 ticks of work."""
    return _events_of("lesson.jsonl")


def lesson_events_with_scans() -> list[Event]:
    """The same 20 and three scanner passes a shipment: 35 events, 47 ticks of work.

    The lesson counts seven events a shipment and does not list the three records in between. Here each
    lies halfway in arrival order between two state events of its shipment and lasts one tick.
    """
    return _events_of("lesson-with-scans.jsonl")


def _events_of(name: str) -> list[Event]:
    lines = resources.files("lanes").joinpath(name).read_bytes().splitlines()
    return [decode(line) for line in lines]
