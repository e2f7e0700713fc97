"""One run: checks before it starts, the crew while it works, the counts at its end."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from broker.errors import BrokerUnreachable
from broker.settings import Connection
from broker.topics import OffsetRange, Topic, Topics
from consumer.crew import Crew
from consumer.errors import WorkerFailed
from consumer.process import WorkerPlan
from consumer.worker import offset_gone
from state.records import Progress, Source, Totals
from state.store import Store

log = logging.getLogger(__name__)

LISTEN_INTERVAL_S = 0.05
LOOK_INTERVAL_S = 0.2
BROKER_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to run. `group` is None for the database's own group."""

    connection: Connection
    topic: str
    db: Path
    workers: int = 4
    group: str | None = None
    version_check: bool = False
    until_caught_up: bool = False
    verbose: int = 0


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. `totals` counts what this run wrote."""

    run: int
    source: Source
    partitions: int
    totals: Totals
    assignment: dict[int, list[int]]
    """Worker to the partitions that it had last."""
    ended: list[str]
    """Sentences about workers that ended before they were told to."""
    caught_up: bool


Progressed = Callable[[int, int], None]
"""Takes how many offsets are behind us and how many there are."""


def consume_topic(plan: RunPlan, *, stopped: Callable[[], bool], on_progress: Progressed) -> RunResult:
    """Run workers until `stopped`, or until every partition is applied to its end.

    Raises BrokerUnreachable, TopicMissing, OtherSource, OffsetGone and DatabaseError before anything is
    started, WorkerFailed when a worker gave up or none is left.
    """
    topics = Topics(plan.connection)
    topic = topics.get(plan.topic)
    store = Store.open(plan.db, topic.name, topic.topic_id, plan.group)
    try:
        check_offsets(topic, store.progress(), topics.offsets(topic))
        run = store.start_run(plan.workers, version_check=plan.version_check)
        crew = Crew()
        watch = _Watch(topics, topic, store, on_progress)
        try:
            crew.start(_worker_plans(plan, store.source, run))
            assignment = _until_done(plan, crew, watch, stopped)
        finally:
            crew.stop()
        totals = store.totals(run)
        return RunResult(run, store.source, topic.partitions, totals, assignment, crew.ended, watch.caught_up)
    finally:
        store.close()


def _worker_plans(plan: RunPlan, source: Source, run: int) -> list[WorkerPlan]:
    return [
        WorkerPlan(plan.connection, source, plan.db.resolve(), run, number, plan.version_check, plan.verbose)
        for number in range(plan.workers)
    ]


class _Watch:
    """Looks now and then how far the database is behind the topic."""

    def __init__(self, topics: Topics, topic: Topic, store: Store, on_progress: Progressed) -> None:
        self._topics = topics
        self._topic = topic
        self._store = store
        self._on_progress = on_progress
        self._next_look = 0.0
        self._answered = time.monotonic()
        self.caught_up = False

    def look(self) -> None:
        """Look when it is time again. A broker may be away for BROKER_PATIENCE_S: workers reconnect."""
        if time.monotonic() < self._next_look:
            return
        try:
            offsets = self._topics.offsets(self._topic)
        except BrokerUnreachable as error:
            if time.monotonic() - self._answered > BROKER_PATIENCE_S:
                raise
            log.warning("%s; waiting for it", error)
            return
        self._answered = time.monotonic()
        self._next_look = self._answered + LOOK_INTERVAL_S
        reached = reached_offsets(self._store.progress(), offsets)
        self.caught_up = all(reached[p] >= here.high for p, here in offsets.items())
        self._on_progress(
            sum(reached[p] - here.low for p, here in offsets.items()),
            sum(here.high - here.low for here in offsets.values()),
        )


def _until_done(
    plan: RunPlan, crew: Crew, watch: _Watch, stopped: Callable[[], bool]
) -> dict[int, list[int]]:
    """Wait for the end of the run; the assignment just before it."""
    while not stopped():
        crew.listen()
        if not crew.alive:
            raise WorkerFailed("; ".join(crew.ended), hint="No worker is left. Run the command again.")
        watch.look()
        if plan.until_caught_up and watch.caught_up and len(crew.assignment) == crew.alive:
            break
        time.sleep(LISTEN_INTERVAL_S)
    return crew.assignment


def check_offsets(topic: Topic, progress: list[Progress], offsets: Mapping[int, OffsetRange]) -> None:
    """Raise OffsetGone where the database goes on at an offset that the topic does not have.

    Below the first offset, records are gone that were never applied; beyond the end, the topic is not the
    one that was read.
    """
    for partition in progress:
        here = offsets.get(partition.partition)
        if partition.next_offset is None:
            continue
        if here is None or not here.low <= partition.next_offset <= here.high:
            raise offset_gone(topic.name, partition.partition, partition.next_offset)


def reached_offsets(progress: list[Progress], offsets: Mapping[int, OffsetRange]) -> dict[int, int]:
    """Partition to the offset up to which nothing is left to read.

    An end counts as reached when the owner met it while reading: markers behind the last record have
    offsets of their own, and counting records would never get there.
    """
    applied = {p.partition: max(p.next_offset or 0, p.end_seen) for p in progress}
    return {partition: max(applied.get(partition, 0), here.low) for partition, here in offsets.items()}
