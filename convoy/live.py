"""One live arrangement from start to finish: a fresh topic, a fresh database, workers, and the analysis."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.agreement import Compared, compare, where_they_part
from analysis.observation import observe
from analysis.report import Report
from broker.embedded import EmbeddedBroker
from broker.running import RunningBroker
from broker.settings import Connection
from broker.topics import Topic, Topics
from consumer.plan import RunPlan
from consumer.run import RunResult, consume_topic
from lanes.dispatch import Dispatch
from lanes.event import Event
from lanes.key import KeyChoice
from producer.produce import produce_events


@dataclass(frozen=True, slots=True)
class LivePlan:
    """What to run. In share dispatch `key` is the gate, and the topic has one partition."""

    name: str
    events: Sequence[Event]
    key: KeyChoice
    dispatch: Dispatch
    partitions: int = 1
    workers: int = 4
    selective: bool = False
    version_check: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class LiveResult:
    """What came of it, beside the model of its dispatch."""

    plan: LivePlan
    topic: str
    db: Path
    run: RunResult
    report: Report

    @property
    def compared(self) -> list[Compared]:
        """Each figure, model and live."""
        return compare(self.report)

    @property
    def difference(self) -> str | None:
        """Where model and live part, in words; None when they agree."""
        differing = [figure for figure in self.compared if not figure.agrees]
        if not differing:
            return None
        words = "; ".join(f"{each.figure}: model {each.model}, live {each.live}" for each in differing)
        beside = self.report.beside
        part = None
        if beside and beside.predicted and beside.live:
            part = where_they_part(beside.predicted.schedule, beside.live)
        return f"{words}. They part at {part}" if part else words


class Interrupted(Exception):
    """The user stopped the live run."""


class LiveRuns:
    """Runs arrangements on one broker, each on a topic and a database of its own."""

    def __init__(
        self,
        broker: RunningBroker,
        connection: Connection,
        directory: Path,
        *,
        tick_us: int,
        keep: bool,
        stopped: Callable[[], bool],
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._topics = Topics(connection)
        self._directory = directory
        self._tick_us = tick_us
        self._keep = keep
        self._stopped = stopped

    def run(self, plan: LivePlan) -> LiveResult:
        """Produce, consume and analyse; the topic and its group are deleted again unless they are kept.

        Raises Interrupted when the user stops it.
        """
        name = f"convoy-{plan.name.replace(' ', '-')}-{secrets.token_hex(3)}"
        topic = self._make_topic(name, plan.partitions)
        group = f"{name}.group"
        try:
            return self._run_on(topic, group, plan)
        finally:
            if not self._keep and not isinstance(self._broker, EmbeddedBroker):
                self._topics.delete(name)
                self._topics.delete_group(group)

    def _make_topic(self, name: str, partitions: int) -> Topic:
        if isinstance(self._broker, EmbeddedBroker):
            self._broker.create_topic(name, partitions)
            return self._topics.get(name)
        return self._topics.create(name, partitions)

    def _run_on(self, topic: Topic, group: str, plan: LivePlan) -> LiveResult:
        shared = plan.dispatch is Dispatch.SHARE
        produce_events(
            plan.events,
            self._connection,
            topic,
            KeyChoice.NONE if shared else plan.key,
            selective=plan.selective and not shared,
            seed=plan.seed,
            one_record_batches=shared,
        )
        db = self._directory / f"{topic.name}.db"
        run = consume_topic(
            RunPlan(
                connection=self._connection,
                topic=topic.name,
                db=db,
                group=group,
                workers=plan.workers,
                version_check=plan.version_check,
                until_caught_up=True,
                dispatch=plan.dispatch,
                gate=plan.key if shared else KeyChoice.NONE,
                selective=plan.selective and shared,
                tick_us=self._tick_us,
            ),
            stopped=self._stopped,
            on_progress=lambda _done, _total: None,
        )
        if self._stopped():
            raise Interrupted
        seen = observe(self._connection, db, topic.name, lambda _done, _total: None)
        return LiveResult(plan, topic.name, db, run, Report.of(seen))
