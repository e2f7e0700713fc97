"""One run: checks before it starts, the crew while it works, the counts at its end."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.errors import BrokerRefused
from broker.topics import OffsetRange, Topic, Topics
from consumer.barrier import ANSWER_TIMEOUT_S, Barrier
from consumer.crew import Crew
from consumer.errors import WorkerFailed, offset_gone
from consumer.leftovers import Leftovers
from consumer.pacing import Pace
from consumer.plan import RunPlan, WorkerPlan
from consumer.process import Work, work_as_process
from consumer.share_worker import share_groups_missing
from consumer.telling import Halted
from consumer.watch import Progressed, RecordWatch, Watch, watch_for
from lanes.dispatch import Dispatch
from state.records import Progress, Source, Totals
from state.store import Store

LISTEN_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. `totals` counts what this run wrote."""

    run: int
    source: Source
    partitions: int
    totals: Totals
    assignment: dict[int, list[int]]
    """Worker to the partitions that it had last."""
    halted: list[Halted]
    """Partitions that stand before a record that is no event."""
    ended: list[str]
    """Sentences about workers that ended before they were told to."""
    caught_up: bool


def consume_topic(
    plan: RunPlan,
    *,
    stopped: Callable[[], bool],
    on_progress: Progressed,
    work: Work = work_as_process,
) -> RunResult:
    """Run workers until `stopped`, or until every partition is applied to its end.

    `work` is what each worker process runs. Raises BrokerUnreachable, TopicMissing, OtherSource,
    OffsetGone and DatabaseError before anything is started, WorkerFailed when a worker gave up or none is
    left.
    """
    topics = Topics(plan.connection)
    topic = topics.get(plan.topic)
    store = Store.open(plan.db, topic.name, topic.topic_id, plan.group)
    try:
        offsets = topics.offsets(topic)
        check_offsets(topic, store.progress(), offsets)
        if plan.dispatch is Dispatch.SHARE:
            allow_sharing(topics, store.source.group_id)
        run = _start_run(plan, store)
        watch = watch_for(plan.dispatch, plan.connection, topics, topic, store, on_progress)
        crew = Crew()
        try:
            crew.start(_worker_plans(plan, store.source, run, offsets), work)
            if plan.tick_us is not None:
                barrier = Barrier(crew, store, run, plan.workers, topic, plan.dispatch, watch.records_left())
                barrier.start_when_ready(stopped)
            leftovers = Leftovers(plan.connection, topic, store, run, version_check=plan.version_check)
            assignment = _until_done(plan, crew, watch, leftovers, stopped)
        finally:
            crew.stop()
        watch.look_once_more(crew.halted)
        totals = store.totals(run)
        return RunResult(
            run=run,
            source=store.source,
            partitions=watch.topic.partitions,
            totals=totals,
            assignment=assignment,
            halted=list(crew.halted.values()),
            ended=crew.ended,
            caught_up=watch.caught_up and not crew.halted,
        )
    finally:
        store.close()


def allow_sharing(topics: Topics, group: str) -> None:
    """Let the group begin at the topic's first record; raises ShareGroupsMissing where there are none."""
    try:
        topics.prepare_share_group(group)
    except BrokerRefused as error:
        raise share_groups_missing(str(error)) from error


def _start_run(plan: RunPlan, store: Store) -> int:
    return store.start_run(
        plan.workers,
        version_check=plan.version_check,
        dispatch=plan.dispatch,
        gate=plan.gate,
        selective=plan.selective,
        tick_us=plan.tick_us,
    )


def _worker_plans(
    plan: RunPlan, source: Source, run: int, offsets: Mapping[int, OffsetRange]
) -> list[WorkerPlan]:
    pace = None
    if plan.tick_us is not None:
        events = sum(here.high - here.low for here in offsets.values())
        pace = Pace(plan.tick_us, events, plan.ties_seed)
    return [WorkerPlan(plan, source, run, number, pace) for number in range(plan.workers)]


def _until_done(
    plan: RunPlan, crew: Crew, watch: Watch, leftovers: Leftovers, stopped: Callable[[], bool]
) -> dict[int, list[int]]:
    """Wait for the end of the run; the assignment just before it."""
    caught_up_at: float | None = None
    while not stopped():
        crew.listen()
        if not crew.alive:
            raise WorkerFailed("; ".join(crew.ended), hint="No worker is left. Run the command again.")
        watch.look(crew.halted)
        if isinstance(watch, RecordWatch) and plan.tick_us is None:
            leftovers.turn(watch)
        if not watch.caught_up:
            caught_up_at = None
        elif caught_up_at is None:
            caught_up_at = time.monotonic()
        done = plan.until_caught_up and caught_up_at is not None and _all_met(plan, crew, caught_up_at)
        # Once more, since partitions may have been added after the last look at the topic.
        if done and watch.look_once_more(crew.halted):
            break
        time.sleep(LISTEN_INTERVAL_S)
    return crew.assignment


def _all_met(plan: RunPlan, crew: Crew, caught_up_at: float) -> bool:
    """Whether every worker had its place in the group, so that those without a partition can be named.

    Under the newer group protocol nobody tells a worker that it has none, so that is not waited for longer
    than ANSWER_TIMEOUT_S.
    """
    waited_s = time.monotonic() - caught_up_at
    return (
        plan.dispatch is Dispatch.SHARE or len(crew.assignment) == crew.alive or waited_s > ANSWER_TIMEOUT_S
    )


def check_offsets(topic: Topic, progress: list[Progress], offsets: Mapping[int, OffsetRange]) -> None:
    """Raise OffsetGone where the database goes on at an offset that the topic does not have.

    Below the first offset, records are gone that were never applied; beyond the end, the topic is not the
    one that was read.
    """
    for partition in progress:
        here = offsets.get(partition.partition)
        if partition.next_offset is None:
            continue
        if here is None or partition.reached < here.low or partition.next_offset > here.high:
            raise offset_gone(topic.name, partition.partition, partition.next_offset)
