"""Which broker to work on when the user may not have one: the best of those that this machine offers."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from broker.clients import open_admin
from broker.embedded import EmbeddedBroker
from broker.errors import BrokerUnreachable
from broker.jars import JarsUnavailable, cached_jars, fetch_jars, kafka_version
from broker.native import NativeBroker, java_version, why_not_native
from broker.running import BorrowedBroker, RunningBroker
from broker.settings import REQUEST_TIMEOUT_S, Connection

LOCAL_HOST = "localhost"
LOCAL_PORT = 9092
LOCAL_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A broker to be used in a `with` block, and one sentence: which one, and why not a better one."""

    broker: RunningBroker
    reason: str


def choose_broker(
    bootstrap_servers: str | None, config: dict[str, str], say: Callable[[str], None] = lambda _: None
) -> Choice:
    """The servers that are named, else a broker on localhost:9092, else Kafka's jars, else the mock.

    `config` are the client properties for brokers that others run; clients of one started here need none.
    `say` hears of a download before it begins. Raises BrokerUnreachable if named servers do not answer.
    """
    if bootstrap_servers is not None:
        silence = why_silent(bootstrap_servers, config, REQUEST_TIMEOUT_S)
        if silence is not None:
            raise BrokerUnreachable(bootstrap_servers, silence)
        return Choice(BorrowedBroker("named", bootstrap_servers), f"Using the broker {bootstrap_servers}.")
    no_local = _why_not_local(config)
    if no_local is None:
        address = f"{LOCAL_HOST}:{LOCAL_PORT}"
        return Choice(BorrowedBroker("local", address), f"Using the broker that answers on {address}.")
    no_native = why_not_native() or _why_no_jars(say)
    if no_native is None:
        here = f"Java {java_version()} is here"
        return Choice(
            NativeBroker(), f"{no_local}; {here}: starting Kafka {kafka_version()} from its own jars."
        )
    return Choice(
        EmbeddedBroker(),
        f"{no_local}; {no_native}: using librdkafka's mock cluster, in this process. "
        "`docker compose up --wait` starts a real one.",
    )


def why_silent(bootstrap_servers: str, config: dict[str, str], timeout_s: float) -> str | None:
    """Why no broker answers there within the time, as far as the client knows; None if one does."""
    heard: list[KafkaError] = []
    settings: dict[str, Any] = {**Connection(bootstrap_servers, config).client(), "error_cb": heard.append}
    admin = open_admin(settings)
    try:
        admin.list_topics(timeout=timeout_s)
    except KafkaException as error:
        admin.poll(0)
        causes = [cause.str() for cause in heard if cause.code() != KafkaError._ALL_BROKERS_DOWN]
        return causes[-1] if causes else f"{error.args[0].str()} within {timeout_s:.0f} s"
    return None


def _why_not_local(config: dict[str, str]) -> str | None:
    address = f"{LOCAL_HOST}:{LOCAL_PORT}"
    try:
        socket.create_connection((LOCAL_HOST, LOCAL_PORT), timeout=LOCAL_TIMEOUT_S).close()
    except OSError:
        return f"No broker answers on {address}"
    silence = why_silent(address, config, LOCAL_TIMEOUT_S)
    return None if silence is None else f"What listens on {address} does not answer as a broker ({silence})"


def _why_no_jars(say: Callable[[str], None]) -> str | None:
    if cached_jars() is None:
        say(f"Downloading Kafka {kafka_version()} with Maven, once (45 MB).")
    try:
        fetch_jars()
    except JarsUnavailable as error:
        return str(error).replace("\n", " ")
    return None
