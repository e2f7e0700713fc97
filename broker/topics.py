"""Questions and orders to the broker about topics, their offsets and a group's committed offsets."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from broker.clients import open_admin, open_consumer
from broker.errors import BrokerRefused, BrokerUnreachable, TopicDiffers, TopicMissing
from broker.settings import METADATA_TIMEOUT_S, REQUEST_TIMEOUT_S, Connection

K = TypeVar("K")
T = TypeVar("T")

RETRY_INTERVAL_S = 0.05

UNREACHABLE = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT_QUEUE,
}

PASSING = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._NOENT,
}
"""Answers of a broker that is not yet told of a topic, or of a partition's new leader."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is now. `topic_id` tells a topic from one made anew under the same name; it is empty
    on a broker that has no topic ids."""

    name: str
    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """A partition's first offset and the one after its last committed record.

    Their difference is no count: transaction markers and compaction leave holes.
    """

    low: int
    high: int


class Topics:
    """One admin client and its questions. Every call has a deadline of REQUEST_TIMEOUT_S."""

    def __init__(self, connection: Connection) -> None:
        self.address = connection.bootstrap_servers
        self._connection = connection
        # To ask about a topic must not make it, whatever the broker allows.
        self._admin = open_admin({**connection.client(), "allow.auto.create.topics": False})

    def find(self, name: str) -> Topic | None:
        """The topic, or None where there is none."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                metadata = self._admin.list_topics(topic=name, timeout=METADATA_TIMEOUT_S).topics[name]
            except KafkaException as error:
                raise self._as_convoy_error(error, f"topic {name}") from error
            refusal = metadata.error
            if refusal is None and not metadata.partitions:
                return None
            if refusal is None:
                try:
                    return Topic(name, self._topic_id(name), len(metadata.partitions))
                except KafkaException as error:
                    refusal = error.args[0]
            elif refusal.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            if refusal.code() not in PASSING or time.monotonic() > deadline:
                raise convoy_error(refusal, self.address, f"topic {name}")
            time.sleep(RETRY_INTERVAL_S)

    def get(self, name: str) -> Topic:
        """The topic; raises TopicMissing where there is none."""
        topic = self.find(name)
        if topic is None:
            raise TopicMissing(name, self.address)
        return topic

    def _topic_id(self, name: str) -> str:
        futures = self._admin.describe_topics(TopicCollection([name]), request_timeout=REQUEST_TIMEOUT_S)
        try:
            return str(futures[name].result(REQUEST_TIMEOUT_S + 1).topic_id)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._UNSUPPORTED_FEATURE:
                return ""
            raise
        except TimeoutError as error:
            raise BrokerUnreachable(self.address, f"no answer about topic {name}") from error

    def create(self, name: str, partitions: int) -> Topic:
        """Make a topic and wait until the broker shows it."""
        new = NewTopic(name, num_partitions=partitions, replication_factor=-1)
        futures = self._admin.create_topics([new], request_timeout=REQUEST_TIMEOUT_S)
        self._wait(futures[name], f"making topic {name}")
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while (topic := self.find(name)) is None or topic.partitions != partitions:
            if time.monotonic() > deadline:
                raise BrokerRefused(f"topic {name} was made but does not show", topic=name)
            time.sleep(RETRY_INTERVAL_S)
        return topic

    def get_or_create(self, name: str, partitions: int | None, default_partitions: int) -> Topic:
        """The topic, made where it is missing.

        Raises TopicDiffers where it exists with another number of partitions than the one asked for: a
        changed count moves keys, so it is never changed in passing.
        """
        topic = self.find(name)
        if topic is None:
            return self.create(name, partitions or default_partitions)
        if partitions is not None and topic.partitions != partitions:
            raise TopicDiffers(
                f"topic {name} has {topic.partitions} partitions, not {partitions}",
                hint="Adding partitions moves keys to other lanes. Leave --partitions out to use the topic "
                "as it is, or name a new topic.",
                topic=name,
            )
        return topic

    def delete(self, name: str) -> None:
        """Delete a topic; one that is already gone is fine."""
        futures = self._admin.delete_topics([name], request_timeout=REQUEST_TIMEOUT_S)
        self._wait(futures[name], f"deleting topic {name}", accept=KafkaError.UNKNOWN_TOPIC_OR_PART)

    def delete_group(self, group: str) -> None:
        """Delete a consumer group's offsets; one that never was is fine."""
        futures = self._admin.delete_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S)
        self._wait(futures[group], f"deleting group {group}", accept=KafkaError.GROUP_ID_NOT_FOUND)

    def offsets(self, topic: Topic) -> dict[int, OffsetRange]:
        """Partition to its first offset and its end for readers of committed records."""
        low = self._list_offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        high = self._list_offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return {partition: OffsetRange(low[partition], high[partition]) for partition in sorted(low)}

    def _list_offsets(self, topic: Topic, spec: OffsetSpec) -> dict[int, int]:
        wanted = {TopicPartition(topic.name, partition): spec for partition in range(topic.partitions)}

        def ask() -> "Mapping[TopicPartition, Future[ListOffsetsResultInfo]]":
            return self._admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=REQUEST_TIMEOUT_S
            )

        try:
            return {place.partition: answer.offset for place, answer in self._settled(ask).items()}
        except KafkaException as error:
            raise self._as_convoy_error(error, f"offsets of topic {topic.name}") from error

    def is_compacted(self, topic: Topic) -> bool:
        """Whether the topic's clean-up compacts it; False on a broker that does not tell."""
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        futures = self._admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S)
        subject = f"settings of topic {topic.name}"
        found = self._wait(futures[resource], subject, accept=KafkaError._UNSUPPORTED_FEATURE)
        return found is not None and "compact" in found["cleanup.policy"].value

    def committed(self, group: str, topic: Topic) -> dict[int, int]:
        """Partition to the group's committed offset, for those that have one; joins no group.

        Asked by a consumer: the admin client of librdkafka 2.16 crashes when the group's coordinator is
        just moving, as it does in the first seconds of a new broker.
        """
        partitions = [TopicPartition(topic.name, partition) for partition in range(topic.partitions)]
        consumer = open_consumer({**self._connection.reader(), "group.id": group})
        try:
            found = consumer.committed(partitions, timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise self._as_convoy_error(error, f"committed offsets of group {group}") from error
        finally:
            consumer.close()
        return {tp.partition: tp.offset for tp in found if tp.offset >= 0}

    def prepare_share_group(self, group: str) -> None:
        """Set what a share group reads; raises BrokerRefused without share groups.

        These are settings of the group and not of its members. It begins at the first record, and records
        of aborted transactions are no events; the defaults are the end, and all records.
        """
        settings = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
        futures = self._admin.incremental_alter_configs([resource], request_timeout=REQUEST_TIMEOUT_S)
        self._wait(futures[resource], f"share group {group}")

    def _wait(self, future: "Future[T]", subject: str, accept: int | None = None) -> T | None:
        """The answer; None where the broker's error is the one that the caller accepts."""
        try:
            return future.result(REQUEST_TIMEOUT_S + 1)
        except KafkaException as error:
            if error.args[0].code() == accept:
                return None
            raise self._as_convoy_error(error, subject) from error
        except TimeoutError as error:
            raise BrokerUnreachable(self.address, f"no answer about {subject}") from error

    def _settled(self, ask: "Callable[[], Mapping[K, Future[T]]]") -> "dict[K, T]":
        """The answers, asked for again while the broker is about to choose or to tell leaders.

        Raises KafkaException for any other error, or when that goes on for REQUEST_TIMEOUT_S.
        """
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                return {key: future.result(REQUEST_TIMEOUT_S + 1) for key, future in ask().items()}
            except KafkaException as error:
                if error.args[0].code() not in PASSING or time.monotonic() > deadline:
                    raise
            except TimeoutError as error:
                raise BrokerUnreachable(self.address, "no answer in time") from error
            time.sleep(RETRY_INTERVAL_S)

    def _as_convoy_error(self, error: KafkaException, subject: str) -> BrokerUnreachable | BrokerRefused:
        return convoy_error(error.args[0], self.address, subject)


def convoy_error(error: KafkaError, address: str, subject: str) -> BrokerUnreachable | BrokerRefused:
    """The error of our tree for one of librdkafka's."""
    if error.code() in UNREACHABLE:
        return BrokerUnreachable(address, error.str())
    return BrokerRefused(f"{subject}: the broker at {address} refused: {error.str()} ({error.name()})")
