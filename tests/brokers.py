"""The broker that the tests run on: a container, else Kafka from its own jars, else librdkafka's mock.

CONVOY_TEST_BROKER=container|native|embedded takes that one and no other; KAFKA_IMAGE names the image.
"""

import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import docker
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from docker.errors import DockerException, ImageNotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from broker.embedded import EmbeddedBroker
from broker.jars import JarsUnavailable, fetch_jars, kafka_version
from broker.native import NativeBroker, why_not_native
from broker.settings import Connection
from broker.topics import Topic, Topics

IMAGE = os.environ.get("KAFKA_IMAGE", "apache/kafka:4.4.0")
READY_TIMEOUT_S = 90.0
LOG_LINES = 40

CONTAINER_PORT = 9092

# As in docker-compose.yml, which says why each one is there.
CONFIGURATION = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENERS": f"EXTERNAL://:{CONTAINER_PORT},INTERNAL://:19092,CONTROLLER://:9093",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "EXTERNAL:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_LOG_DIRS": "/var/lib/kafka/data",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_GROUP_SHARE_HEARTBEAT_INTERVAL_MS": "500",
    "KAFKA_GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS": "500",
    "KAFKA_HEAP_OPTS": "-Xms256m -Xmx512m",
    # Not as there: tests do not wait for the default of 6 s until a worker counts as gone.
    "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
}


class NotHere(Exception):
    """This kind of broker cannot be had on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class BrokerUnderTest:
    """A running broker. `why_not_real` is empty on a real one; `mock` is None there."""

    bootstrap_servers: str
    description: str
    why_not_real: str = ""
    mock: EmbeddedBroker | None = None

    def connection(self, **properties: str) -> Connection:
        """How to reach it, with client properties such as `session_timeout_ms="6000"`."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        return Connection(self.bootstrap_servers, named)

    def create_topic(self, name: str, partitions: int, **config: str) -> Topic:
        """Make a topic, with settings such as `max_message_bytes="3000000"`; returns when it shows."""
        if self.mock is not None:
            self.mock.create_topic(name, partitions)
            return Topics(self.connection()).get(name)
        if not config:
            return Topics(self.connection()).create(name, partitions)
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient(self.connection().client())
        admin.create_topics([NewTopic(name, partitions, config=settings)])[name].result(10)
        topics = Topics(self.connection())
        wait_until(lambda: topics.find(name) is not None, f"topic {name} shows")
        return topics.get(name)


def start_broker(undo: ExitStack) -> BrokerUnderTest:
    """The best broker that this machine can run; `undo` stops it."""
    wanted = os.environ.get("CONVOY_TEST_BROKER")
    starters = {"container": _start_container, "native": _start_native, "embedded": _start_embedded}
    lacks: list[str] = []
    for kind, start in starters.items():
        if wanted not in (None, kind):
            continue
        try:
            return start(undo, "; ".join(lacks))
        except NotHere as lack:
            lacks.append(f"no {kind}: {lack}")
    raise NotHere("; ".join(lacks) or f"CONVOY_TEST_BROKER={wanted} is none of {', '.join(starters)}")


def _start_container(undo: ExitStack, _lacks: str) -> BrokerUnderTest:
    find_image(IMAGE)
    if not testcontainers_config.ryuk_disabled:
        find_image(testcontainers_config.ryuk_image)  # removes our container should we be killed
    container = DockerContainer(IMAGE)
    host = container.get_docker_client().host()
    # A client connects again to the address that the broker advertises, so the port is chosen before.
    port = free_port()
    address = f"{host}:{port}"
    container.with_bind_ports(CONTAINER_PORT, port).with_envs(
        **CONFIGURATION,
        KAFKA_ADVERTISED_LISTENERS=f"EXTERNAL://{address},INTERNAL://localhost:19092",
    )
    undo.enter_context(container)
    try:
        _wait_until_ready(address)
    except TimeoutError as error:
        told = b"".join(container.get_logs()).decode(errors="replace").splitlines()
        raise TimeoutError(f"{error}\n" + "\n".join(told[-LOG_LINES:])) from None
    return BrokerUnderTest(address, f"container {IMAGE}")


def find_image(image: str) -> None:
    """Raise NotHere unless the engine answers and has, or can pull, an image."""
    try:
        client = docker.from_env()
    except DockerException as error:
        raise NotHere(f"Docker does not answer ({_one_line(error)})") from error
    try:
        client.images.get(image)
    except ImageNotFound:
        try:
            client.images.pull(image)
        except DockerException as error:
            raise NotHere(f"image {image} cannot be pulled ({_one_line(error)})") from error
    finally:
        client.close()


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _start_native(undo: ExitStack, lacks: str) -> BrokerUnderTest:
    lack = why_not_native()
    if lack is not None:
        raise NotHere(lack)
    try:
        fetch_jars()
    except JarsUnavailable as error:
        raise NotHere(_one_line(error)) from error
    native = undo.enter_context(NativeBroker(settings={"group.min.session.timeout.ms": "1000"}))
    return BrokerUnderTest(
        native.bootstrap_servers, _described(f"Kafka {kafka_version()} from its jars", lacks)
    )


def _start_embedded(undo: ExitStack, lacks: str) -> BrokerUnderTest:
    mock = undo.enter_context(EmbeddedBroker())
    description = _described("librdkafka's mock cluster", lacks)
    return BrokerUnderTest(mock.bootstrap_servers, description, f"needs a real broker; {description}", mock)


def _described(what: str, lacks: str) -> str:
    return f"{what} ({lacks})" if lacks else what


def _wait_until_ready(address: str) -> None:
    """Until topics and groups both answer; raises TimeoutError."""
    # Not by an admin client: asked about a group while its coordinator starts, librdkafka 2.16 crashes.
    settings = {"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 200}
    consumer = Consumer({**settings, "group.id": "convoy-nobody"})

    def answers() -> bool:
        try:
            consumer.list_topics(timeout=1)
            consumer.committed([TopicPartition("no-topic", 0)], timeout=5)
        except KafkaException:
            return False
        return True

    wait_until(answers, f"Kafka answers at {address}", READY_TIMEOUT_S)
    consumer.close()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(
    condition: Callable[[], object], what: str, timeout_s: float = 30.0, interval_s: float = 0.02
) -> None:
    """Return as soon as a condition holds; raises TimeoutError naming what did not come."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(interval_s)
