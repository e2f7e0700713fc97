"""Events in, acknowledged records out: keyed as asked, each delivery report checked."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message

from broker.clients import open_producer
from broker.settings import Connection
from broker.topics import Topic
from lanes.event import Event, encode
from lanes.key import KeyChoice, lane_value
from lanes.lane_map import LaneMap, lane_map
from lanes.partitioner import Partitioner
from producer.errors import DeliveryFailed, Failure

FLUSH_TIMEOUT_S = 70.0
"""Longer than the delivery timeout, so that every record has its report by then."""

INTERRUPTED_FLUSH_TIMEOUT_S = 10.0

POLL_TIMEOUT_S = 0.1
"""How long it may take until a signal to stop is noticed."""

LEFT_TO_PARTITIONER = -1


@dataclass(slots=True)
class Production:
    """What reached the topic. `records_in` counts acknowledged records by partition."""

    topic: Topic
    key: KeyChoice
    partitioner: Partitioner
    total: int
    selective: bool = False
    """Whether history events go without a key."""
    delivered: int = 0
    records_in: Counter[int] = field(default_factory=Counter)
    ticks_of: Counter[str] = field(default_factory=Counter)
    """Key to the sum of its durations in ticks."""
    records_of: Counter[str] = field(default_factory=Counter)
    partitions_of: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    failures: list[Failure] = field(default_factory=list)
    interrupted: bool = False
    unsent: list[int] = field(default_factory=list)
    """Arrival orders that have no acknowledgement after an interruption."""

    def key_of(self, event: Event) -> str | None:
        """The key of an event's record."""
        return lane_value(event, self.key, selective=self.selective)

    @property
    def lanes(self) -> LaneMap:
        """Key to partition, as acknowledged."""
        return lane_map(self.partitions_of)

    def moved(self) -> dict[str, list[int]]:
        """Keys that are not where the partitioner puts them: the topic changed while we wrote."""
        return {
            key: partitions
            for key, partitions in self.lanes.partitions_of.items()
            if partitions != [self.partitioner.partition_of(key.encode(), self.topic.partitions)]
        }


class _Sender:
    """One producer and the reports that come back."""

    def __init__(
        self, connection: Connection, production: Production, seed: int, *, one_record_batches: bool
    ) -> None:
        settings = connection.producer(production.partitioner, one_record_batches=one_record_batches)
        self._producer = open_producer(settings)
        self._production = production
        self._random = random.Random(seed)
        self.waiting: set[int] = set()
        """Arrival orders handed to the client and not yet reported."""

    def send(self, event: Event, stopped: Callable[[], bool]) -> bool:
        """Hand an event to the client; waits while its queue is full. Records a refusal as a failure.

        False where it was told to stop before the event was handed over.
        """
        key = self._production.key_of(event)
        value = encode(event)
        # Without a key, dealt one by one, so that a small free run cannot look ordered by accident.
        partition = (
            LEFT_TO_PARTITIONER
            if key is not None
            else self._random.randrange(self._production.topic.partitions)
        )
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        while True:
            try:
                self._producer.produce(
                    self._production.topic.name,
                    value,
                    key,
                    partition,
                    on_delivery=partial(self._report, event, key, len(value)),
                )
            except BufferError:
                self._producer.poll(POLL_TIMEOUT_S)
                if stopped():
                    return False
                if time.monotonic() < deadline:
                    continue
                self._fail(event, key, len(value), "the client's queue stayed full")
            except KafkaException as error:
                self._fail(event, key, len(value), _reason(error.args[0]))
            else:
                self.waiting.add(event.order)
            break
        self._producer.poll(0)
        return True

    def _report(
        self, event: Event, key: str | None, size: int, error: KafkaError | None, message: Message
    ) -> None:
        self.waiting.discard(event.order)
        partition = message.partition()
        if error is not None or partition is None:
            self._fail(event, key, size, _reason(error) if error else "no partition in the report")
            return
        production = self._production
        production.delivered += 1
        production.records_in[partition] += 1
        if key is not None:
            production.records_of[key] += 1
            production.ticks_of[key] += event.duration
            production.partitions_of[key].add(partition)

    def _fail(self, event: Event, key: str | None, size: int, reason: str) -> None:
        self._production.failures.append(Failure(event.order, key, size, reason))

    def flush(self, stopped: Callable[[], bool]) -> None:
        """Wait for the reports of all records handed over, not so long when told to stop."""
        begun = time.monotonic()
        while self._producer.flush(POLL_TIMEOUT_S):
            limit_s = INTERRUPTED_FLUSH_TIMEOUT_S if stopped() else FLUSH_TIMEOUT_S
            if time.monotonic() - begun > limit_s:
                break


def _reason(error: KafkaError) -> str:
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        # The broker refuses whole batches, and says so of each record in one.
        return "it, or its batch, is larger than the topic or the client takes (message.max.bytes)"
    return f"{error.str()} ({error.name()})"


def produce_events(
    events: Sequence[Event],
    connection: Connection,
    topic: Topic,
    key: KeyChoice,
    *,
    partitioner: Partitioner = Partitioner.MURMUR2,
    selective: bool = False,
    seed: int = 0,
    one_record_batches: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    on_progress: Callable[[int], None] = lambda _delivered: None,
) -> Production:
    """Write events in the order given and wait for every delivery report.

    Records of one partition keep that order. `seed` deals records without a key over the partitions, one
    by one; with `selective`, history events have none. `on_progress` is told the number acknowledged so
    far. Stops at the first refusal; raises DeliveryFailed unless everything handed over was acknowledged.
    Once `stopped` it hands over no more and returns with `interrupted` set and the orders not acknowledged.
    It is asked between two steps: an exception in the middle of one would leave an event uncounted.
    """
    production = Production(topic, key, partitioner, len(events), selective)
    sender = _Sender(connection, production, seed, one_record_batches=one_record_batches)
    sent = 0
    for event in events:
        if production.failures or stopped() or not sender.send(event, stopped):
            break
        sent += 1
        on_progress(production.delivered)
    sender.flush(stopped)
    on_progress(production.delivered)
    if stopped() and not production.failures:
        production.unsent = sorted(sender.waiting | {event.order for event in events[sent:]})
        production.interrupted = bool(production.unsent)
        return production
    for event in events:
        if event.order in sender.waiting:
            value = production.key_of(event)
            reason = "no delivery report came"
            production.failures.append(Failure(event.order, value, len(encode(event)), reason))
    if production.failures:
        raise DeliveryFailed(topic.name, production.failures, production.delivered, len(events))
    return production
