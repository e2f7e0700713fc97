"""What a paced run measured: who worked on what at which tick, from the times that it stored."""

from collections.abc import Sequence

from analysis.observation import Observation
from lanes.event import Event, HistoryEvent, State, StateEvent
from lanes.schedule import Work
from state.records import HistoryRow, Run


def last_paced_run(seen: Observation) -> Run | None:
    """The last run, if it was paced and has begun."""
    if not seen.runs or seen.runs[-1].zero_us is None or seen.runs[-1].tick_us is None:
        return None
    return seen.runs[-1]


def measured_work(history: Sequence[HistoryRow], run: Run) -> list[Work]:
    """The run's work in ticks of its clock, in the order in which it was applied.

    Work began in the tick that its start lies in; it was done at the boundary nearest to its finish. Both
    are wall clock times of the worker, so a run that fell behind shows it.
    """
    zero_us, tick_us = run.zero_us or 0, run.tick_us or 1
    return [
        Work(
            event_of(row),
            row.worker,
            (row.started_us - zero_us) // tick_us,
            round((row.finished_us - zero_us) / tick_us),
        )
        for row in history
        if row.run == run.run and row.started_us is not None and row.finished_us is not None
    ]


def event_of(row: HistoryRow) -> Event:
    """The event that a history row tells of."""
    common = {
        "tracking_no": row.tracking_no,
        "line": row.line,
        "duration": row.duration,
        "order": row.arrival_order,
    }
    if row.version is None:
        return HistoryEvent.model_validate({**common, "scan": row.state})
    return StateEvent.model_validate({**common, "state": State(row.state)})
