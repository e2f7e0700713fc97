"""The mock cluster: what the program builds on, what it cannot do, and what is said when it is missing."""

import _ctypes
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from broker.embedded import EmbeddedBroker, EmbeddedRefused, EmbeddedUnavailable, load_library

DEADLINE_S = 15.0


@pytest.fixture
def embedded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def _consumer(broker: EmbeddedBroker, group: str) -> Consumer:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["lanes"])
    return consumer


def _take(consumer: Consumer, count: int) -> list[Message]:
    taken: list[Message] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(taken) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None
            taken.append(message)
    return taken


def test_a_topic_of_seven_partitions_is_written_and_read(embedded: EmbeddedBroker) -> None:
    embedded.create_topic("lanes", 7)
    producer = Producer({"bootstrap.servers": embedded.bootstrap_servers, "enable.idempotence": True})
    for number in range(70):
        producer.produce("lanes", key=b"k%d" % number, value=b"v%d" % number, headers=[("h", b"x")])
    assert producer.flush(DEADLINE_S) == 0
    consumer = _consumer(embedded, "readers")
    try:
        read = _take(consumer, 70)
    finally:
        consumer.close()
    assert {message.value() for message in read} == {b"v%d" % number for number in range(70)}
    assert {message.partition() for message in read} == set(range(7))
    assert all(message.headers() == [("h", b"x")] for message in read)


def test_members_who_come_together_share_the_partitions(embedded: EmbeddedBroker) -> None:
    embedded.create_topic("lanes", 7)
    members = [_consumer(embedded, "workers") for _ in range(3)]
    try:
        deadline = time.monotonic() + 3 * DEADLINE_S
        while not all(member.assignment() for member in members):
            assert time.monotonic() < deadline, "no assignment in time"
            for member in members:
                member.poll(0.05)
        shares = sorted(sorted(tp.partition for tp in member.assignment()) for member in members)
    finally:
        for member in members:
            member.close()
    assert shares == [[0, 1, 2], [3, 4], [5, 6]]


def test_a_topic_has_an_id_and_its_number_of_partitions(embedded: EmbeddedBroker) -> None:
    embedded.create_topic("lanes", 7)
    admin = AdminClient({"bootstrap.servers": embedded.bootstrap_servers})
    description = admin.describe_topics(TopicCollection(["lanes"]))["lanes"].result(DEADLINE_S)
    assert str(description.topic_id)
    assert len(description.partitions) == 7


def test_create_topics_is_refused_at_once(embedded: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": embedded.bootstrap_servers})
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic("lanes", 7, 1)], request_timeout=DEADLINE_S)["lanes"].result(1)
    assert refused.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE


def test_a_topic_is_made_only_once_and_with_partitions(embedded: EmbeddedBroker) -> None:
    embedded.create_topic("lanes", 7)
    with pytest.raises(EmbeddedRefused, match="lanes exists already"):
        embedded.create_topic("lanes", 3)
    with pytest.raises(EmbeddedRefused, match="0 partitions"):
        embedded.create_topic("none", 0)


def test_the_broker_is_gone_after_the_block() -> None:
    with EmbeddedBroker() as broker:
        address = broker.bootstrap_servers
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=0.3)


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedUnavailable, match=r"cannot be loaded.*nothing\.so"):
        load_library(tmp_path / "nothing.so")


def test_a_library_without_the_mock_cluster_is_named_with_the_missing_function() -> None:
    other = Path(_ctypes.__file__)
    with pytest.raises(EmbeddedUnavailable, match="has no function rd_kafka") as missing:
        load_library(other)
    assert str(other) in str(missing.value)
    assert "confluent-kafka" in missing.value.hint
