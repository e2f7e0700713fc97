"""The product as a library, for one topic and one database that follows it."""

import multiprocessing
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from brokers import BrokerUnderTest, wait_until
from commands import Started
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from analysis.observation import observe
from analysis.report import Report, as_object
from broker.reading import read_records
from broker.settings import Connection
from broker.topics import Topic, Topics
from consumer.plan import RunPlan
from consumer.run import RunResult, consume_topic
from lanes.event import StateEvent, encode
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.partitioner import Partitioner
from lanes.record import Record
from producer.produce import Production, produce_events

RUN_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class Raw:
    """A record as bytes, put where it says."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0


def raw(event: StateEvent, partition: int = 0, key: bytes | None = None) -> Raw:
    """An event as a record in a partition of our choice, keyed by its tracking number unless told."""
    return Raw(encode(event), event.tracking_no.encode() if key is None else key, partition)


class Running:
    """A run in a thread of this process, stopped or awaited by the test."""

    def __init__(self, plan: RunPlan) -> None:
        self._stop = threading.Event()
        self._result: RunResult | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(plan,), daemon=True)
        self._thread.start()

    def _run(self, plan: RunPlan) -> None:
        try:
            self._result = consume_topic(plan, stopped=self._stop.is_set, on_progress=lambda *_: None)
        except Exception as error:
            self._error = error

    @property
    def ended(self) -> bool:
        """Whether it has ended, well or not."""
        return not self._thread.is_alive()

    def result(self, timeout_s: float = RUN_DEADLINE_S) -> RunResult:
        """Its result, waited for; raises what the run raised, TimeoutError when it does not end."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"the run did not end within {timeout_s:.0f} s")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def stop(self) -> RunResult:
        """Its result after being told to stop."""
        self._stop.set()
        return self.result()

    def let_go(self) -> None:
        """Stop it, whatever comes of it."""
        self._stop.set()
        self._thread.join(RUN_DEADLINE_S)


class Trial:
    """Produce, consume and analyze on one topic and one database."""

    def __init__(self, broker: BrokerUnderTest, topic_name: str, db: Path) -> None:
        self.broker = broker
        self.topic_name = topic_name
        self.db = db
        self.connection = broker.connection()
        # One request at a time keeps the order; the product's idempotence takes half a second to begin.
        self.producing = broker.connection(
            enable_idempotence="false", max_in_flight_requests_per_connection="1"
        )

    @property
    def topics(self) -> Topics:
        """Questions to the broker."""
        return Topics(self.connection)

    @property
    def topic(self) -> Topic:
        """The topic as it is now."""
        return self.topics.get(self.topic_name)

    def make_topic(self, partitions: int, **config: str) -> Topic:
        """Make the topic."""
        return self.broker.create_topic(self.topic_name, partitions, **config)

    def remake_topic(self, partitions: int) -> Topic:
        """Delete the topic and make another under its name."""
        topics = self.topics
        topics.delete(self.topic_name)
        wait_until(lambda: topics.find(self.topic_name) is None, "the topic is gone")
        return self.make_topic(partitions)

    def delete_records_before(self, offset: int) -> None:
        """Let partition 0 begin at an offset, as retention does."""
        admin = AdminClient(self.connection.client())
        place = TopicPartition(self.topic_name, 0, offset)
        admin.delete_records([place])[place].result(10)

    def produce(
        self,
        events: Sequence[StateEvent] | None = None,
        key: KeyChoice = KeyChoice.TRACKING_NO,
        partitioner: Partitioner = Partitioner.MURMUR2,
        **options: Any,
    ) -> Production:
        """Write events, the lesson's by default, to the topic as it is.

        Without idempotence, but for tests that set `producing` to `connection`.
        """
        events = lesson_events() if events is None else events
        return produce_events(events, self.producing, self.topic, key, partitioner=partitioner, **options)

    def send(self, records: Iterable[Raw], **settings: Any) -> None:
        """Write records as they are, each acknowledged before this returns, in the order given."""
        producer = Producer({**self.producing.client(), **settings})
        failures: list[object] = []

        def report(error: object, _message: object) -> None:
            if error is not None:
                failures.append(error)

        for record in records:
            place = {"partition": record.partition, "on_delivery": report}
            producer.produce(self.topic_name, record.value, record.key, **place)
        assert producer.flush(30) == 0
        assert not failures

    def plan(self, workers: int = 1, connection: Connection | None = None, **options: Any) -> RunPlan:
        """A run that ends when it has caught up, unless the options say otherwise."""
        chosen = {"until_caught_up": True, **options}
        return RunPlan(connection or self.connection, self.topic_name, self.db, workers, **chosen)

    def consume(self, workers: int = 1, deadline_s: float = RUN_DEADLINE_S, **options: Any) -> RunResult:
        """Run until caught up; fails the test where that takes longer than the deadline."""
        deadline = time.monotonic() + deadline_s
        plan = self.plan(workers, **options)
        result = consume_topic(plan, stopped=lambda: time.monotonic() > deadline, on_progress=lambda *_: None)
        assert result.caught_up, f"not caught up within {deadline_s:.0f} s: {result}"
        return result

    @contextmanager
    def consuming(self, workers: int = 1, **options: Any) -> Iterator[Running]:
        """A run in the background, stopped at the end of the block if it has not ended."""
        running = Running(self.plan(workers, **options))
        try:
            yield running
        finally:
            running.let_go()

    def records(self) -> list[Record]:
        """Every record of the topic, by partition and offset."""
        topic = self.topic
        found = read_records(self.connection, topic, self.topics.offsets(topic))
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def report(self) -> Report:
        """The analysis."""
        return Report.of(observe(self.connection, self.db, self.topic_name, lambda *_: None))

    def findings(self) -> dict[str, Any]:
        """The analysis as `--json` prints it."""
        return as_object(self.report())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of the database, read from outside the product."""
        with closing(sqlite3.connect(f"{self.db.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as file:
            return file.execute(query).fetchall()

    def count(self, table: str) -> int:
        """Rows of a table; 0 where the file is not made yet."""
        if not self.db.exists():
            return 0
        try:
            return int(self.rows(f"select count(*) from {table}")[0][0])
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return 0
            raise

    def wait_for_rows(self, table: str, least: int, during: Running | Started | None = None) -> None:
        """Wait until a table holds so many rows; fails at once where the run that writes them has ended."""

        def come() -> bool:
            ended = during is not None and during.ended
            if self.count(table) >= least:
                return True
            assert not ended, f"it ended before there were {least} rows in {table}: {during.result()}"
            return False

        wait_until(come, f"{least} rows in {table}")

    def states(self) -> dict[str, str]:
        """Shipment to its state."""
        return dict(self.rows("select tracking_no, state from shipment"))


def workers_here() -> list[BaseProcess]:
    """Worker processes of runs in this process, by number."""
    found = [child for child in multiprocessing.active_children() if child.name.startswith("convoy-worker-")]
    return sorted(found, key=lambda child: child.name)
