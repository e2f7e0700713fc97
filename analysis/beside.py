"""What both tick models say about the topic as it is, and what a paced run measured."""

from collections import defaultdict
from dataclasses import dataclass

from analysis.observation import Observation
from analysis.paced import last_paced_run, measured_work
from lanes.dispatch import Dispatch
from lanes.event import Event
from lanes.key import KeyChoice
from lanes.model import Arrangement, lesson_schedule, outcome_of
from lanes.outcome import wrong_over_ties
from lanes.schedule import Work, kafka_ownership, range_assignment, ticks
from state.records import Run


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """One model's figures for the topic as it is; `schedule` is its work in ticks."""

    backward_writes: int
    skipped: int
    wrong: list[str]
    wrong_over_ties: tuple[int, int]
    """Least and most over every order of events that finish in one tick, without a version check."""
    tick: int
    schedule: list[Work]
    backward_orders: set[int]
    """Arrival orders of the backward writes."""

    @property
    def wrong_final_state(self) -> int:
        """Number of wrong shipments."""
        return len(self.wrong)


@dataclass(frozen=True, slots=True)
class Beside:
    """The models for the last run's workers, dispatch and version check, and the run's own ticks."""

    run: Run
    lesson: ModelFigures | None
    """The lesson's dispatcher; None where the records' keys are mixed."""
    kafka: ModelFigures | None
    """Ownership of partitions; None in share dispatch, where nobody owns one."""
    live: list[Work] | None
    """What a paced run measured; None for one at full speed."""

    @property
    def predicted(self) -> ModelFigures | None:
        """The model of the dispatch that the run had."""
        return self.lesson if self.run.dispatch is Dispatch.SHARE else self.kafka


def models_beside(seen: Observation, lane_key: str, *, selective: bool) -> Beside | None:
    """The models on the topic's events; None before the first run.

    `lane_key` is what kept events in lanes, `mixed` where no one key did; with `selective`, it kept only
    state events in them.
    """
    if not seen.runs:
        return None
    run = seen.runs[-1]
    if run.dispatch is Dispatch.SHARE:
        selective = run.selective
    paced = last_paced_run(seen)
    return Beside(
        run=run,
        lesson=None
        if lane_key == "mixed"
        else _lesson(seen, Arrangement("live", KeyChoice(lane_key), run.version_check, selective), run),
        kafka=None if run.dispatch is Dispatch.SHARE else _kafka(seen, run),
        live=measured_work(seen.history, paced) if paced else None,
    )


def _lesson(seen: Observation, arrangement: Arrangement, run: Run) -> ModelFigures:
    events = [record.event for record in seen.records if record.event is not None]
    return _figures(lesson_schedule(events, run.workers, arrangement), run)


def _kafka(seen: Observation, run: Run) -> ModelFigures:
    queues: dict[int, list[Event]] = defaultdict(list)
    for record in seen.records:
        if record.event is not None:
            queues[record.partition].append(record.event)
    return _figures(kafka_ownership(queues, owners(seen, run)), run)


def owners(seen: Observation, run: Run) -> dict[int, int]:
    """Partition to the worker that applied it last in a paced run; else by range.

    At full speed the first worker may have applied everything before the others had joined: that says
    nothing about the assignment.
    """
    owner_of = range_assignment(seen.partitions, run.workers)
    if run.tick_us is None:
        return owner_of
    owner_of.update({row.partition: row.worker for row in seen.history if row.run == run.run})
    return owner_of


def _figures(schedule: list[Work], run: Run) -> ModelFigures:
    outcome = outcome_of(schedule, version_check=run.version_check)
    return ModelFigures(
        backward_writes=len(outcome.backward),
        skipped=len(outcome.skipped),
        wrong=outcome.wrong,
        wrong_over_ties=wrong_over_ties(schedule),
        tick=ticks(schedule),
        schedule=schedule,
        backward_orders={event.order for event in outcome.backward},
    )
