"""A topic read from first to last record by a reader that belongs to no group."""

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError, TopicPartition

from broker.clients import open_consumer
from broker.settings import Connection
from broker.topics import OffsetRange, Topic, convoy_error
from lanes.record import Record, read_record

READ_TIMEOUT_S = 30.0
"""How long the broker may stay silent in the middle of a topic."""

POLL_TIMEOUT_S = 0.2
BATCH = 10_000


def read_records(connection: Connection, topic: Topic, ranges: Mapping[int, OffsetRange]) -> Iterator[Record]:
    """Every committed record within the offset ranges; of a partition in offset order.

    Joins no group and commits nothing. Raises BrokerUnreachable or BrokerRefused.
    """
    open_ends = {partition: here.high for partition, here in ranges.items() if here.low < here.high}
    if not open_ends:
        return
    consumer = open_consumer(connection.reader())
    try:
        consumer.assign([TopicPartition(topic.name, p, ranges[p].low) for p in open_ends])
        heard = time.monotonic()
        while open_ends:
            # Waiting for the first and not for a full batch, which a small topic never fills.
            first = consumer.poll(POLL_TIMEOUT_S)
            batch = [] if first is None else [first, *consumer.consume(BATCH - 1, timeout=0)]
            for message in batch:
                heard = time.monotonic()
                partition, offset = message.partition(), message.offset()
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise convoy_error(error, connection.bootstrap_servers, f"reading topic {topic.name}")
                if partition is None or offset is None or partition not in open_ends:
                    continue
                # A partition is read when its end, or a record behind it, was met: offsets have holes.
                if error is not None or offset >= open_ends[partition] - 1:
                    del open_ends[partition]
                if error is None and offset < ranges[partition].high:
                    yield read_record(partition, offset, message.key(), message.value())
            if time.monotonic() - heard > READ_TIMEOUT_S:
                timed_out = KafkaError(KafkaError._TIMED_OUT, f"no record for {READ_TIMEOUT_S:.0f} s")
                raise convoy_error(timed_out, connection.bootstrap_servers, f"reading topic {topic.name}")
    finally:
        consumer.close()
