"""Every Kafka setting that order, delivery or reading depends on, each set and explained once.

A user's --config file comes first (addresses, SASL, TLS, tuning); what is set here is set on top of it,
because the promises of the program rest on it. A file that tries to set one of these is refused.
"""

from dataclasses import dataclass, field
from pathlib import Path

from broker.errors import BadConfigFile
from lanes.partitioner import Partitioner

Settings = dict[str, str | int | float | bool]

METADATA_TIMEOUT_S = 5.0
"""How long the first answer may take: whoever mistyped an address waits no longer."""

REQUEST_TIMEOUT_S = 8.0
"""How long a question to the broker may take before the broker counts as unreachable."""

PRODUCER: Settings = {
    # Retries cannot write a record twice or swap two records of a partition.
    "enable.idempotence": True,
    "acks": "all",
    # Keyless records get their partition from us, one by one; stickiness would keep runs together.
    "sticky.partitioning.linger.ms": 0,
    # A delivery report comes within this time, good or bad.
    "delivery.timeout.ms": 60_000,
    "linger.ms": 5,
}

CONSUMER: Settings = {
    # The database is the truth about progress; group offsets follow it and are committed by hand.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Offsets come from the database. One that the log no longer has is an error, never a silent jump.
    "auto.offset.reset": "error",
    # Records of aborted transactions are not events.
    "isolation.level": "read_committed",
    # The end of a partition is told even behind transaction markers, which no record shows.
    "enable.partition.eof": True,
    # The default of 1,000 ms idles the fetcher whenever its queue is full for a moment.
    "fetch.queue.backoff.ms": 5,
}

GROUP: Settings = {
    # One topic, dealt in ranges: what the Kafka model computes.
    "partition.assignment.strategy": "range",
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 500,
    "max.poll.interval.ms": 300_000,
    # Partitions that are added while a run goes on are dealt out within this time; the default is 5 minutes.
    "topic.metadata.refresh.interval.ms": 5_000,
}

SHARE: Settings = {
    # A record is acknowledged when its transaction is committed, not when it was handed out.
    "share.acknowledgement.mode": "explicit",
    # One record at a time to whoever is free; producers put records into batches of their own for it.
    "max.poll.records": 1,
    "max.poll.interval.ms": 300_000,
}

ONE_RECORD_BATCHES: Settings = {"batch.num.messages": 1, "linger.ms": 0}
"""A share group hands out whole batches; only records alone in theirs go one by one."""

MEMBERSHIP = {"group.protocol", "partition.assignment.strategy"}
"""How a group deals out its partitions, where a --config file says so; members alone are told."""

BROKER_DECIDES = {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"}
"""Under `group.protocol=consumer` these are the broker's; a client that sets them is refused."""

DECIDED = {
    *PRODUCER,
    *CONSUMER,
    *SHARE,
    "partitioner",
    "group.id",
    "group.instance.id",
    "transactional.id",
} - {
    "delivery.timeout.ms",
    "linger.ms",
    "fetch.queue.backoff.ms",
}
"""Settings that a --config file may not hold."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach the brokers: their addresses and the user's own properties."""

    bootstrap_servers: str
    properties: dict[str, str] = field(default_factory=dict)

    def client(self) -> Settings:
        """What every client starts from."""
        common = {name: value for name, value in self.properties.items() if name not in MEMBERSHIP}
        return {**common, "bootstrap.servers": self.bootstrap_servers, "log_level": 2}

    def producer(self, partitioner: Partitioner, *, one_record_batches: bool = False) -> Settings:
        """Settings of a producer."""
        batches = ONE_RECORD_BATCHES if one_record_batches else {}
        return {**PRODUCER, **self.client(), **batches, "partitioner": partitioner.value}

    def reader(self) -> Settings:
        """Settings of a consumer that assigns partitions by hand and belongs to no group's progress."""
        return {**CONSUMER, **self.client(), "group.id": "convoy-reader"}

    def group_member(self, group: str) -> Settings:
        """Settings of a worker in a consumer group."""
        dealt = {name: self.properties[name] for name in MEMBERSHIP & self.properties.keys()}
        settings: Settings = {**CONSUMER, **GROUP, **self.client(), **dealt, "group.id": group}
        if self._is_broker_led:
            return {name: value for name, value in settings.items() if name not in BROKER_DECIDES}
        return settings

    @property
    def deals_incrementally(self) -> bool:
        """Whether a rebalance moves single partitions and leaves a member the others."""
        strategy = self.properties.get("partition.assignment.strategy", "")
        return self._is_broker_led or "cooperative" in strategy

    @property
    def _is_broker_led(self) -> bool:
        return self.properties.get("group.protocol") == "consumer"

    def share_member(self, group: str) -> Settings:
        """Settings of a worker in a share group."""
        return {**SHARE, **self.client(), "group.id": group}


def read_config_file(path: Path) -> dict[str, str]:
    """Properties of a librdkafka configuration file: `name=value` lines, `#` comments.

    Raises BadConfigFile with the line's number for a line of another shape, a name given twice, or a
    setting that the program decides itself.
    """
    properties: dict[str, str] = {}
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadConfigFile(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    for number, line in enumerate(content.splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise BadConfigFile(f"{path}:{number}: not a property: {text!r}", hint="Write name=value.")
        if name in properties:
            raise BadConfigFile(f"{path}:{number}: {name} is set a second time")
        if name in DECIDED:
            raise BadConfigFile(
                f"{path}:{number}: {name} is decided by the program",
                hint="The promises about order and delivery rest on it; remove the line.",
            )
        properties[name] = value
    return properties


def connection(bootstrap_servers: str | None, config_file: Path | None, default: str) -> Connection:
    """The connection a user asked for: the option wins over the file, the file over the default."""
    properties = read_config_file(config_file) if config_file else {}
    from_file = properties.pop("bootstrap.servers", None) or properties.pop("metadata.broker.list", None)
    return Connection(bootstrap_servers or from_file or default, properties)
