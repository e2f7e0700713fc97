"""Who works on what at which tick, by the lesson's dispatcher and by Kafka's ownership of partitions.

Events enter with a duration and an arrival order; pieces of work leave, with a start and a finish tick.
Nothing here reads a clock: ticks are counted.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lanes.event import Event


@dataclass(frozen=True, slots=True)
class Work:
    """One event on one worker; `start` and `finish` are ticks from the start of the run."""

    event: Event
    worker: int
    start: int
    finish: int


def lesson_dispatch(
    events: Sequence[Event],
    workers: int,
    lane_of: Callable[[Event], str | None],
) -> list[Work]:
    """The lesson's dispatcher; the list is in arrival order.

    In arrival order each event goes to the worker that is free first, the lowest index on a tie. It starts
    when that worker and its lane are both free; the worker is held while it waits for the lane. An event
    whose `lane_of` is None waits for no lane.
    """
    free_at = [(0, worker) for worker in range(workers)]
    lane_free_at: dict[str, int] = {}
    schedule = []
    for event in sorted(events, key=lambda event: event.order):
        worker_free, worker = heapq.heappop(free_at)
        lane = lane_of(event)
        start = worker_free if lane is None else max(worker_free, lane_free_at.get(lane, 0))
        finish = start + event.duration
        if lane is not None:
            lane_free_at[lane] = finish
        heapq.heappush(free_at, (finish, worker))
        schedule.append(Work(event, worker, start, finish))
    return schedule


def range_assignment(partitions: int, workers: int) -> dict[int, int]:
    """Partition to worker as Kafka's range assignor deals one topic: the first workers take one more."""
    share, extra = divmod(partitions, workers)
    owner: dict[int, int] = {}
    for worker in range(workers):
        for _ in range(share + (1 if worker < extra else 0)):
            owner[len(owner)] = worker
    return owner


def kafka_ownership(
    queues: Mapping[int, Sequence[Event]],
    owner_of: Mapping[int, int],
) -> list[Work]:
    """Kafka's dispatch in a consumer group; the list is worker by worker in order of work.

    `queues` holds each partition's events in offset order. A worker works alone on the partitions it owns
    and takes, among their heads, the event of the lowest arrival order. It never waits.
    """
    owned: dict[int, list[int]] = defaultdict(list)
    for partition in sorted(queues):
        owned[owner_of[partition]].append(partition)
    schedule = []
    for worker in sorted(owned):
        now = 0
        heads = [(queues[p][0].order, p, 0) for p in owned[worker] if queues[p]]
        heapq.heapify(heads)
        while heads:
            _, partition, position = heapq.heappop(heads)
            event = queues[partition][position]
            schedule.append(Work(event, worker, now, now + event.duration))
            now += event.duration
            if position + 1 < len(queues[partition]):
                following = queues[partition][position + 1]
                heapq.heappush(heads, (following.order, partition, position + 1))
    return schedule


def applied_order(schedule: Sequence[Work]) -> list[Event]:
    """The events in the order in which the table sees them: finish tick, then arrival order."""
    return [work.event for work in sorted(schedule, key=lambda work: (work.finish, work.event.order))]


def ticks(schedule: Sequence[Work]) -> int:
    """The tick at which the last piece of work is finished."""
    return max((work.finish for work in schedule), default=0)
