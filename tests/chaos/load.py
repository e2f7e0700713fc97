"""The stream that is written: shipments of five events, records that are no events, and what was promised.

The producer keeps a file with the position of every record that the broker acknowledged, written by the
delivery reports themselves: what is in it must be found again.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from multiprocessing.process import BaseProcess
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from broker.reading import read_records
from broker.settings import Connection
from broker.topics import Topics
from lanes.event import State, StateEvent, encode
from lanes.partitioner import Partitioner

STATES = [
    State.ACCEPTED,
    State.TRANSFERRED,
    State.OUT_FOR_DELIVERY,
    State.OUT_FOR_DELIVERY,
    State.DELIVERED,
]
"""Five events a shipment; the second try to deliver repeats a state."""

AT_ONCE = 50
"""Shipments whose events are mixed with each other."""

BAD_VALUES = [b"{not json", b"[]", b"\xff\xfe", b'{"state": "lost"}', b"null", b""]
"""Six kinds of records that are no events."""

FLUSH_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Item:
    """A record to write. `partition` -1: where its key belongs; `order` -1: it is no event."""

    value: bytes | None
    key: bytes | None
    partition: int = -1
    order: int = -1


def shipments(first: int, count: int) -> list[Item]:
    """The events of `count` shipments from number `first` on, five each, in arrival order."""
    items: list[Item] = []
    numbers = range(first, first + count)
    for begin in range(0, count, AT_ONCE):
        for state in STATES:
            for number in numbers[begin : begin + AT_ONCE]:
                order = first * len(STATES) + len(items)
                event = StateEvent(
                    tracking_no=f"TR-{number:06}", line=f"L{number % 7}", state=state, duration=1, order=order
                )
                items.append(Item(encode(event), event.tracking_no.encode(), order=order))
    return items


def with_bad(items: Sequence[Item], every: int) -> Iterator[Item]:
    """The items with a record that is no event after each `every` of them, of six kinds in turn."""
    kinds = cycle(BAD_VALUES)
    for number, item in enumerate(items, start=1):
        yield item
        if number % every == 0:
            yield Item(next(kinds), f"bad-{number}".encode())


def bad_run(count: int, partition: int) -> list[Item]:
    """So many records in a row that are no events, in one partition."""
    return [Item(value, b"bad", partition) for value in islice(cycle(BAD_VALUES), count)]


def send(
    connection: Connection,
    topic: str,
    items: Sequence[Item],
    acks: Path,
    pause_s: float = 0.0,
    *,
    one_record_batches: bool = False,
) -> None:
    """Write the items and wait for their reports; raises TimeoutError when one does not come.

    `pause_s` is waited after each record, for a load that lasts. A share group hands out whole batches:
    with `one_record_batches` a worker holds one record at a time.
    """
    file = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    refused: list[str] = []

    def report(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(error.str())
        else:
            os.write(file, f"{message.partition()} {message.offset()}\n".encode())

    producer = Producer(connection.producer(Partitioner.MURMUR2, one_record_batches=one_record_batches))
    try:
        for item in items:
            producer.produce(topic, item.value, item.key, item.partition, on_delivery=report)
            producer.poll(pause_s)
        if producer.flush(FLUSH_TIMEOUT_S) or refused:
            raise TimeoutError(f"{topic}: records without an acknowledgement; {refused[:3]}")
    finally:
        os.close(file)


def acknowledged(acks: Path) -> frozenset[tuple[int, int]]:
    """The positions that a producer was promised. A last line without its end was not written whole.

    A record that a retry found in the topic already, after its broker died, is reported without an offset.
    """
    if not acks.exists():
        return frozenset()
    whole = acks.read_text().rpartition("\n")[0]
    pairs = (line.split() for line in whole.splitlines())
    return frozenset((int(partition), int(offset)) for partition, offset in pairs if offset != "None")


def send_what_is_missing(
    connection: Connection, topic: str, items: Sequence[Item], acks: Path, pause_s: float
) -> None:
    """Write what the topic does not have yet: a producer that was killed goes on like this.

    Writing again what had no acknowledgement would write some events twice, behind later ones.
    """
    topics = Topics(connection)
    found = topics.get(topic)
    records = read_records(connection, found, topics.offsets(found))
    there = {record.event.order for record in records if record.event is not None}
    send(connection, topic, [item for item in items if item.order not in there], acks, pause_s)


class Loader:
    """A producer in a process of its own, which may be killed and goes on when it is started again."""

    def __init__(
        self, connection: Connection, topic: str, items: Sequence[Item], acks: Path, pause_s: float
    ) -> None:
        self._arguments = (connection, topic, list(items), acks, pause_s)
        self._process = self._start()

    def _start(self) -> BaseProcess:
        process = multiprocessing.get_context("spawn").Process(
            target=send_what_is_missing, args=self._arguments, name="chaos-loader", daemon=True
        )
        process.start()
        return process

    @property
    def running(self) -> bool:
        """Whether it still writes."""
        return self._process.is_alive()

    def kill(self) -> bool:
        """SIGKILL; whether it was running and died of that."""
        self._process.kill()
        self._process.join(10)
        return self._process.exitcode == -9

    def start_again(self) -> None:
        """Go on with what the topic does not have."""
        self._process = self._start()

    def finish(self, timeout_s: float) -> None:
        """Wait until everything is written and acknowledged; raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.exitcode != 0:
            self._process.kill()
            raise TimeoutError(f"the producer ended with {self._process.exitcode}")
