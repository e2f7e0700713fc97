"""Clients made from settings; what the client library refuses in them becomes an error of ours."""

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient

from broker.errors import BadConfigFile
from broker.settings import Settings

Client = TypeVar("Client")


def _make(kind: Callable[[Settings], Client], settings: Settings) -> Client:
    try:
        return kind(settings)
    except KafkaException as error:
        raise BadConfigFile(
            f"the Kafka client refuses its settings: {error.args[0].str()}",
            hint="Look for that property in the --config file.",
        ) from error


def open_admin(settings: Settings) -> AdminClient:
    """An admin client; raises BadConfigFile. So do the other three."""
    return _make(AdminClient, settings)


def open_producer(settings: Settings) -> Producer:
    """A producer."""
    return _make(Producer, settings)


def open_consumer(settings: Settings) -> Consumer:
    """A consumer."""
    return _make(Consumer, settings)


def open_share_consumer(settings: Settings) -> ShareConsumer:
    """A member of a share group."""
    return _make(ShareConsumer, settings)
