"""What both tick models say about the partitions and arrival orders that the topic really has."""

from collections import defaultdict
from dataclasses import dataclass

from analysis.observation import Observation
from lanes.event import StateEvent
from lanes.key import KeyChoice
from lanes.model import Arrangement, kafka_schedule, lesson_figures, outcome_of
from lanes.schedule import ticks


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """One model's figures for the topic as it is."""

    backward_writes: int
    skipped: int
    wrong: list[str]
    tick: int

    @property
    def wrong_final_state(self) -> int:
        """Number of wrong shipments."""
        return len(self.wrong)


@dataclass(frozen=True, slots=True)
class Beside:
    """Both models, for the workers and the version check of the last run."""

    workers: int
    version_check: bool
    lesson: ModelFigures | None
    """None where the records' keys are mixed: the lesson has no such arrangement."""
    wrong_over_ties: tuple[int, int] | None
    kafka: ModelFigures


def models_beside(seen: Observation, key: str) -> Beside | None:
    """The models on what was applied so far; None before the first run."""
    if not seen.runs:
        return None
    run = seen.runs[-1]
    queues: dict[int, list[StateEvent]] = defaultdict(list)
    for record in seen.records:
        if record.event is not None:
            queues[record.partition].append(record.event)
    events = [event for queue in queues.values() for event in queue]
    schedule = kafka_schedule(queues, seen.partitions, run.workers)
    outcome = outcome_of(schedule, version_check=run.version_check)
    kafka = ModelFigures(len(outcome.backward), len(outcome.skipped), outcome.wrong, ticks(schedule))
    if key == "mixed":
        return Beside(run.workers, run.version_check, None, None, kafka)
    arrangement = Arrangement("as found", KeyChoice(key), run.version_check)
    figures = lesson_figures(events, run.workers, arrangement)
    lesson = ModelFigures(figures.backward_writes, figures.skipped, figures.wrong, figures.tick)
    ties = figures.wrong_final_state_over_ties
    return Beside(run.workers, run.version_check, lesson, ties, kafka)
