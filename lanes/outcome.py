"""What an order of applying does to the state: backward writes, wrong final states, skipped steps."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lanes.event import Event, HistoryEvent, State, StateEvent
from lanes.schedule import Work


@dataclass(slots=True)
class Outcome:
    """The figures of one order of applying. `wrong` is sorted, the other lists are in order applied."""

    backward: list[StateEvent] = field(default_factory=list)
    skipped: list[StateEvent] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def expected_states(events: Iterable[Event]) -> dict[str, State]:
    """Shipment to the state of its last event in arrival order: what its row should be at the end."""
    last: dict[str, StateEvent] = {}
    for event in events:
        if isinstance(event, HistoryEvent):
            continue
        before = last.get(event.tracking_no)
        if before is None or event.order >= before.order:
            last[event.tracking_no] = event
    return {shipment: event.state for shipment, event in last.items()}


def judge(version: int, version_before: int | None, *, version_check: bool) -> tuple[bool, bool]:
    """Whether a write is backward, and whether the version check refuses it.

    Strictly lower is backward; an equal version passes. `version_before` is None for a new shipment.
    """
    backward = version_before is not None and version < version_before
    return backward, backward and version_check


def apply_in(order: Iterable[Event], *, version_check: bool) -> Outcome:
    """Apply events in the given order, one row per shipment.

    A backward write counts as one even where the version check skips it and the row stays.
    """
    rows: dict[str, StateEvent] = {}
    outcome = Outcome()
    seen = []
    for event in order:
        if isinstance(event, HistoryEvent):
            continue
        seen.append(event)
        row = rows.get(event.tracking_no)
        version_before = None if row is None else row.version
        backward, skipped = judge(event.version, version_before, version_check=version_check)
        if backward:
            outcome.backward.append(event)
        if skipped:
            outcome.skipped.append(event)
            continue
        rows[event.tracking_no] = event
    expected = expected_states(seen)
    outcome.wrong = sorted(shipment for shipment, row in rows.items() if row.state != expected[shipment])
    return outcome


def wrong_over_ties(schedule: Sequence[Work]) -> tuple[int, int]:
    """Least and most wrong final states over every order of events that finish in the same tick.

    Shipments do not touch each other's rows, so each one counts alone: its row ends as any of its events
    that finish in its last tick.
    """
    last_group: dict[str, list[tuple[int, State]]] = defaultdict(list)
    for work in schedule:
        if isinstance(work.event, HistoryEvent):
            continue
        group = last_group[work.event.tracking_no]
        if group and work.finish > group[0][0]:
            group.clear()
        if not group or work.finish == group[0][0]:
            group.append((work.finish, work.event.state))
    expected = expected_states(work.event for work in schedule)
    least = most = 0
    for shipment, group in last_group.items():
        wrong = [state != expected[shipment] for _, state in group]
        least += all(wrong)
        most += any(wrong)
    return least, most
