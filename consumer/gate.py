"""The lane gate of share dispatch: an event waits until its lane's earlier events are applied.

What is earlier is taken from the topic itself, by a reader of its own: the share group hands records to
whoever is free and says nothing about their order.
"""

import logging
import time
from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from broker.clients import open_consumer
from broker.settings import Connection
from consumer.errors import RunStalled
from lanes.key import KeyChoice, lane_value
from lanes.record import Record, read_record
from state.store import Store

log = logging.getLogger(__name__)

LOOK_INTERVAL_S = 0.002
READ_TIMEOUT_S = 10.0


class Gate:
    """Knows, for each record of the topic, the record before it in its lane.

    The lane of an event is its `key` (tracking number or line). Selective, an event without an order
    constraint has no lane and passes.
    """

    def __init__(self, connection: Connection, store: Store, key: KeyChoice, *, selective: bool) -> None:
        self._store = store
        self._topic = store.source.topic
        self._key = key
        self._selective = selective
        self._last_in_lane: dict[tuple[int, str], int] = {}
        self._before: dict[tuple[int, int], int] = {}
        """Partition and offset to the offset of the lane's event before."""
        self._read_to: dict[int, int] = {}
        self._reader = open_consumer(connection.reader())

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def lane_of(self, record: Record) -> str | None:
        """The lane of a record, None where it has no order to keep."""
        if record.event is None:
            return None
        return lane_value(record.event, self._key, selective=self._selective)

    def before(self, record: Record) -> int | None:
        """The offset of the event before a record in its lane; None for the first of its lane.

        Raises RunStalled when reading the topic does not get on for READ_TIMEOUT_S.
        """
        if self.lane_of(record) is None:
            return None
        deadline = time.monotonic() + READ_TIMEOUT_S
        while (read_to := self._read_to.get(record.partition, 0)) <= record.offset:
            self._read(record.partition)
            if self._read_to[record.partition] > read_to:
                deadline = time.monotonic() + READ_TIMEOUT_S
            elif time.monotonic() > deadline:
                raise RunStalled(
                    "the topic does not show a record that the share group handed out",
                    topic=self._topic,
                    partition=record.partition,
                    offset=record.offset,
                )
        return self._before.get((record.partition, record.offset))

    def _read(self, partition: int) -> None:
        if partition not in self._read_to:
            self._read_to[partition] = 0
            self._reader.incremental_assign([TopicPartition(self._topic, partition, OFFSET_BEGINNING)])
        for message in self._reader.consume(1000, timeout=0.05):
            found, offset = message.partition(), message.offset()
            if found is None or offset is None:
                continue
            if message.error() is None:
                self._note(read_record(found, offset, message.key(), message.value()))
                self._read_to[found] = offset + 1

    def _note(self, record: Record) -> None:
        lane = self.lane_of(record)
        if lane is None:
            return
        last = self._last_in_lane.get((record.partition, lane))
        if last is not None:
            self._before[record.partition, record.offset] = last
        self._last_in_lane[record.partition, lane] = record.offset

    def is_open(self, record: Record) -> bool:
        """Whether the event before a record in its lane is applied (or a dead letter)."""
        before = self.before(record)
        return before is None or self._store.is_done(record.partition, before)

    def wait(self, record: Record, patience_s: float, stopped: Callable[[], bool]) -> bool:
        """Wait until the gate is open; False when patience ran out, or when told to stop."""
        deadline = time.monotonic() + patience_s
        while not self.is_open(record):
            if stopped() or time.monotonic() > deadline:
                return False
            time.sleep(LOOK_INTERVAL_S)
        return True
