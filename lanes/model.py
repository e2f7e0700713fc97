"""Both tick models over a list of events: the figures that a run should give.

Field names are those of the JSON that `convoy model --json` prints.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lanes.event import Event
from lanes.key import KeyChoice, lane_value
from lanes.outcome import Outcome, apply_in, wrong_over_ties
from lanes.partitioner import Partitioner
from lanes.schedule import (
    Work,
    applied_order,
    kafka_ownership,
    lesson_dispatch,
    range_assignment,
    ticks,
)

LaneOf = Callable[[Event], str | None]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A way to run the events: what a lane is, and whether the handler checks the version.

    Selective, only events that erase a previous value are in a lane.
    """

    name: str
    key: KeyChoice
    version_check: bool = False
    selective: bool = False

    def lane_of(self, event: Event) -> str | None:
        """The event's key lane, None where it has none."""
        return lane_value(event, self.key, selective=self.selective)


FREE = Arrangement("free", KeyChoice.NONE)
CONVOY = Arrangement("convoy", KeyChoice.TRACKING_NO)
CONVOY_LINE = Arrangement("convoy-line", KeyChoice.LINE)
VERSION_STAMP = Arrangement("version-stamp", KeyChoice.NONE, version_check=True)
SELECTIVE = Arrangement("selective convoy", KeyChoice.TRACKING_NO, selective=True)
ARRANGEMENTS = (FREE, CONVOY, CONVOY_LINE, VERSION_STAMP)
"""The lesson's four, over state events."""


@dataclass(frozen=True, slots=True)
class LessonFigures:
    """What the lesson's dispatcher gives for one arrangement. `lanes` are key lanes, loads are in ticks."""

    backward_writes: int
    skipped: int
    wrong: list[str]
    wrong_final_state: int
    tick: int
    lanes: int
    busiest_lane: int
    workload: int
    wrong_final_state_over_ties: tuple[int, int] | None = None
    """Least and most over the orders of events of one tick; None where lanes or a check decide them."""

    @property
    def effective_concurrency(self) -> float:
        """Work done per tick: workload over ticks."""
        return self.workload / self.tick if self.tick else 0.0

    def to_json(self) -> dict[str, object]:
        """The object of `lesson_model`; the range over ties stands only where it was asked for."""
        figures: dict[str, object] = {
            name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None
        }
        return figures


@dataclass(frozen=True, slots=True)
class KafkaFigures:
    """What ownership of partitions gives. `keys` are key lanes, `lanes` partition lanes, loads in ticks."""

    backward_writes: int
    skipped: int
    wrong: list[str]
    wrong_final_state: int
    tick: int
    keys: int
    lanes: int
    busiest_lane: int
    partition_of: dict[str, int]

    def to_json(self) -> dict[str, object]:
        """The object of `kafka_model`."""
        return {name: getattr(self, name) for name in self.__slots__}


def lane_loads(events: Sequence[Event], lane_of: LaneOf) -> Counter[str]:
    """Lane to the sum of its durations in ticks; events without a lane are left out."""
    loads: Counter[str] = Counter()
    for event in events:
        lane = lane_of(event)
        if lane is not None:
            loads[lane] += event.duration
    return loads


def lesson_schedule(events: Sequence[Event], workers: int, arrangement: Arrangement) -> list[Work]:
    """The lesson's dispatcher for one arrangement."""
    return lesson_dispatch(events, workers, arrangement.lane_of)


def lesson_figures(events: Sequence[Event], workers: int, arrangement: Arrangement) -> LessonFigures:
    """Run the lesson's dispatcher and apply its order."""
    schedule = lesson_schedule(events, workers, arrangement)
    outcome = apply_in(applied_order(schedule), version_check=arrangement.version_check)
    loads = lane_loads(events, arrangement.lane_of)
    free = arrangement.key is KeyChoice.NONE and not arrangement.version_check
    return LessonFigures(
        backward_writes=len(outcome.backward),
        skipped=len(outcome.skipped),
        wrong=outcome.wrong,
        wrong_final_state=len(outcome.wrong),
        tick=ticks(schedule),
        lanes=len(loads),
        busiest_lane=max(loads.values(), default=0),
        workload=sum(event.duration for event in events),
        wrong_final_state_over_ties=wrong_over_ties(schedule) if free else None,
    )


def lesson_model(events: Sequence[Event], workers: int) -> dict[str, LessonFigures]:
    """Arrangement name to its figures, in the lesson's order."""
    return {a.name: lesson_figures(events, workers, a) for a in ARRANGEMENTS}


def kafka_schedule(queues: Mapping[int, Sequence[Event]], partitions: int, workers: int) -> list[Work]:
    """Ownership by range assignment over all partitions of the topic, empty ones included."""
    return kafka_ownership(queues, range_assignment(partitions, workers))


def outcome_of(schedule: Sequence[Work], *, version_check: bool) -> Outcome:
    """The outcome when work is applied as it finishes."""
    return apply_in(applied_order(schedule), version_check=version_check)


def kafka_figures(
    events: Sequence[Event],
    workers: int,
    partitions: int,
    key: KeyChoice,
    partitioner: Partitioner = Partitioner.MURMUR2,
) -> KafkaFigures:
    """Hash each key to its partition, deal the partitions to the workers, and run.

    `key` must be one that every event has: where records go at random there is nothing to compute, and
    only the topic can say.
    """
    partition_of: dict[str, int] = {}
    queues: dict[int, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.order):
        value = key.value_of(event)
        partition = None if value is None else partitioner.partition_of(value.encode(), partitions)
        if value is None or partition is None:
            raise ValueError(f"{key} puts records into partitions at random; read them from the topic")
        partition_of[value] = partition
        queues[partition].append(event)
    schedule = kafka_schedule(queues, partitions, workers)
    outcome = outcome_of(schedule, version_check=False)
    return KafkaFigures(
        backward_writes=len(outcome.backward),
        skipped=len(outcome.skipped),
        wrong=outcome.wrong,
        wrong_final_state=len(outcome.wrong),
        tick=ticks(schedule),
        keys=len(partition_of),
        lanes=len(queues),
        busiest_lane=max((sum(e.duration for e in queue) for queue in queues.values()), default=0),
        partition_of=dict(sorted(partition_of.items())),
    )


def kafka_model(
    events: Sequence[Event],
    workers: int,
    partitions: int,
    partitioner: Partitioner = Partitioner.MURMUR2,
) -> dict[str, KafkaFigures]:
    """Key (`tracking_no`, `line`) to the figures of ownership over `partitions` partitions."""
    keys = (KeyChoice.TRACKING_NO, KeyChoice.LINE)
    return {key.name.lower(): kafka_figures(events, workers, partitions, key, partitioner) for key in keys}
