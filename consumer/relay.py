"""The outbox of dead letters: from the database to `<topic>.dead-letter`, without holding up a lane.

A letter is marked as sent after its acknowledgement. A crash between the two sends it once more, with the
same source coordinates in its headers.
"""

import logging
import time
from collections.abc import Iterable
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from broker.clients import open_producer
from broker.settings import Connection
from broker.topics import Topics
from lanes.errors import ConvoyError
from lanes.partitioner import Partitioner
from state.records import UnsentLetter
from state.store import Store

log = logging.getLogger(__name__)

SUFFIX = ".dead-letter"
MOST_IN_FLIGHT = 1_000
RETRY_INTERVAL_S = 5.0
FLUSH_TIMEOUT_S = 5.0
HEADERS = ("convoy.topic", "convoy.partition", "convoy.offset", "convoy.reason")
"""Where a dead letter came from, and why it is one; UTF-8 text."""


class Relay:
    """Sends the dead letters of some partitions. Makes its topic when the first one waits.

    While the topic is not to be had, letters wait in the database and lanes go on.
    """

    def __init__(self, connection: Connection, store: Store) -> None:
        self._connection = connection
        self._store = store
        self._topic = store.source.topic + SUFFIX
        self._producer: Producer | None = None
        self._in_flight: set[tuple[int, int]] = set()
        self._not_before = 0.0

    def turn(self, partitions: Iterable[int]) -> None:
        """Send what waits and note what has arrived; returns at once."""
        if self._producer is not None:
            self._producer.poll(0)
        if time.monotonic() < self._not_before:
            return
        for partition in partitions:
            for letter in self._store.unsent_dead_letters(partition, MOST_IN_FLIGHT):
                if (letter.partition, letter.offset) not in self._in_flight and not self._send(letter):
                    self._not_before = time.monotonic() + RETRY_INTERVAL_S
                    return

    def close(self) -> None:
        """Wait a little for what is under way; the rest stays in the database for the next run."""
        if self._producer is not None:
            self._producer.flush(FLUSH_TIMEOUT_S)

    def _send(self, letter: UnsentLetter) -> bool:
        try:
            producer = self._producer or self._open()
            values = (self._store.source.topic, letter.partition, letter.offset, letter.reason)
            producer.produce(
                self._topic,
                letter.value,
                letter.key,
                headers=[(name, str(value).encode()) for name, value in zip(HEADERS, values, strict=True)],
                on_delivery=partial(self._delivered, letter),
            )
        except (ConvoyError, KafkaException, BufferError) as error:
            log.warning("%s: not sent now, kept in the database: %s", self._topic, error)
            return False
        self._in_flight.add((letter.partition, letter.offset))
        return True

    def _open(self) -> Producer:
        partitions = Topics(self._connection).get(self._store.source.topic).partitions
        Topics(self._connection).get_or_create(self._topic, None, partitions)
        self._producer = open_producer(self._connection.producer(Partitioner.MURMUR2))
        return self._producer

    def _delivered(self, letter: UnsentLetter, error: KafkaError | None, _message: Message) -> None:
        self._in_flight.discard((letter.partition, letter.offset))
        if error is not None:
            log.warning("%s: not acknowledged, kept in the database: %s", self._topic, error.str())
            self._not_before = time.monotonic() + RETRY_INTERVAL_S
            return
        self._store.mark_sent(letter.partition, letter.offset)
