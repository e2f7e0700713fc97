"""Settings of Kafka clients: what the promises rest on is really set, and a --config file cannot unset it."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer

from broker.clients import open_producer
from broker.errors import BadConfigFile
from broker.settings import Connection, Settings, connection, read_config_file
from lanes.partitioner import Partitioner

NOWHERE = Connection("localhost:1")

READING_PROMISES: Settings = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}
PRODUCER_PROMISES: Settings = {
    "enable.idempotence": True,
    "acks": "all",
    "sticky.partitioning.linger.ms": 0,
    "partitioner": "murmur2_random",
}
GROUP_PROMISES: Settings = {
    **READING_PROMISES,
    "partition.assignment.strategy": "range",
    "group.id": "workers",
}
SHARE_PROMISES: Settings = {
    "share.acknowledgement.mode": "explicit",
    "max.poll.records": 1,
    "group.id": "workers",
}


def config_file(folder: Path, text: str) -> Path:
    path = folder / "client.properties"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    path = config_file(folder, text)
    with pytest.raises(BadConfigFile) as refused:
        read_config_file(path)
    return str(refused.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("settings", "promises"),
    [
        (NOWHERE.producer(Partitioner.MURMUR2), PRODUCER_PROMISES),
        (NOWHERE.reader(), READING_PROMISES),
        (NOWHERE.group_member("workers"), GROUP_PROMISES),
        (NOWHERE.share_member("workers"), SHARE_PROMISES),
    ],
    ids=["producer", "reader", "group member", "share member"],
)
def test_every_setting_that_a_promise_rests_on_is_set(settings: Settings, promises: Settings) -> None:
    assert {name: settings.get(name) for name in promises} == promises


def test_the_partitioner_is_the_one_asked_for() -> None:
    assert NOWHERE.producer(Partitioner.CRC32)["partitioner"] == "consistent_random"


def test_records_alone_in_their_batches_are_so_whatever_the_user_tuned() -> None:
    tuned = Connection("localhost:1", {"linger.ms": "50", "batch.num.messages": "1000"})
    settings = tuned.producer(Partitioner.MURMUR2, one_record_batches=True)
    assert (settings["batch.num.messages"], settings["linger.ms"]) == (1, 0)
    assert tuned.producer(Partitioner.MURMUR2)["batch.num.messages"] == "1000"


def test_a_reader_has_a_group_of_its_own_beside_the_workers() -> None:
    assert NOWHERE.reader()["group.id"] == "convoy-reader"


@pytest.mark.parametrize(
    "settings",
    [
        NOWHERE.producer(Partitioner.MURMUR2),
        NOWHERE.reader(),
        NOWHERE.group_member("workers"),
        NOWHERE.share_member("workers"),
    ],
    ids=["producer", "reader", "group member", "share member"],
)
def test_every_client_starts_from_the_address_and_the_users_properties(settings: Settings) -> None:
    assert settings["bootstrap.servers"] == "localhost:1"
    assert settings["log_level"] == 2
    secured = Connection("kafka:9093", {"security.protocol": "SASL_SSL"})
    for made in (
        secured.producer(Partitioner.MURMUR2),
        secured.reader(),
        secured.group_member("g"),
        secured.share_member("g"),
    ):
        assert made["security.protocol"] == "SASL_SSL"
        assert made["bootstrap.servers"] == "kafka:9093"


def test_the_client_library_knows_every_setting() -> None:
    Producer(NOWHERE.producer(Partitioner.MURMUR2, one_record_batches=True)).flush(0)
    for consumer in (Consumer(NOWHERE.reader()), Consumer(NOWHERE.group_member("workers"))):
        consumer.close()
    ShareConsumer(NOWHERE.share_member("workers")).close()


def test_a_users_tuning_wins_over_defaults_that_no_promise_rests_on() -> None:
    tuned = Connection(
        "localhost:1",
        {"linger.ms": "50", "delivery.timeout.ms": "9000", "session.timeout.ms": "45000"},
    )
    assert tuned.producer(Partitioner.MURMUR2)["linger.ms"] == "50"
    assert tuned.producer(Partitioner.MURMUR2)["delivery.timeout.ms"] == "9000"
    assert tuned.group_member("g")["session.timeout.ms"] == "45000"


def test_a_config_file_is_names_and_values_with_comments_and_blank_lines(tmp_path: Path) -> None:
    path = config_file(
        tmp_path,
        "# how to reach it\n\n"
        "security.protocol=SASL_SSL\n"
        "  sasl.username =  me  \n"
        "  # another comment\n"
        "sasl.password=a=b#c\n"
        "ssl.ca.location=\n",
    )
    assert read_config_file(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "me",
        "sasl.password": "a=b#c",
        "ssl.ca.location": "",
    }


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"\xef\xbb\xbflinger.ms=7\n")
    assert read_config_file(path) == {"linger.ms": "7"}


def test_a_config_file_that_is_not_utf_8_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"client.id=caf\xe9\n")
    with pytest.raises(BadConfigFile, match=r"client\.properties is not UTF-8"):
        read_config_file(path)


@pytest.mark.parametrize(
    ("name", "value"), [("no.such.property", "1"), ("linger.ms", "soon"), ("max.in.flight", "10")]
)
def test_a_property_that_the_client_refuses_is_named(name: str, value: str) -> None:
    connection = Connection("localhost:1", {name: value})
    with pytest.raises(BadConfigFile, match="the Kafka client refuses its settings"):
        open_producer(connection.producer(Partitioner.MURMUR2))


def test_an_empty_config_file_sets_nothing(tmp_path: Path) -> None:
    assert read_config_file(config_file(tmp_path, "")) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("linger.ms=5\n\nlinger.ms 50\n", ":3: not a property: 'linger.ms 50'"),
        ("=5\n", ":1: not a property: '=5'"),
        ("linger.ms=5\n# once more\nlinger.ms=5\n", ":3: linger.ms is set a second time"),
        ("linger.ms=5\nacks=1\n", ":2: acks is decided by the program"),
    ],
)
def test_a_bad_line_is_named_with_file_and_number(tmp_path: Path, text: str, reason: str) -> None:
    assert refusal(tmp_path, text) == reason


def test_how_a_group_deals_out_its_partitions_is_the_users_and_told_to_members_alone() -> None:
    sticky = Connection("localhost:1", {"partition.assignment.strategy": "cooperative-sticky"})
    assert sticky.group_member("g")["partition.assignment.strategy"] == "cooperative-sticky"
    assert sticky.deals_incrementally
    assert not NOWHERE.deals_incrementally
    for other in (
        sticky.producer(Partitioner.MURMUR2),
        sticky.reader(),
        sticky.share_member("g"),
        sticky.client(),
    ):
        assert "partition.assignment.strategy" not in other


def test_a_group_that_the_broker_leads_is_not_told_what_the_broker_decides() -> None:
    led = Connection("localhost:1", {"group.protocol": "consumer"})
    member = led.group_member("workers")
    assert member["group.protocol"] == "consumer"
    assert led.deals_incrementally
    assert not {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"} & set(member)
    assert {name: member.get(name) for name in READING_PROMISES} == READING_PROMISES
    Consumer(member).close()


@pytest.mark.parametrize(
    "name", sorted({*PRODUCER_PROMISES, *READING_PROMISES, *SHARE_PROMISES, "max.poll.interval.ms"})
)
def test_a_setting_that_a_promise_rests_on_is_refused_in_a_file(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path, f"{name}=1\n") == f":1: {name} is decided by the program"


@pytest.mark.parametrize(
    "name",
    [
        "linger.ms",
        "delivery.timeout.ms",
        "fetch.queue.backoff.ms",
        "session.timeout.ms",
        "partition.assignment.strategy",
        "group.protocol",
        "sasl.mechanism",
        "compression.type",
        "client.id",
    ],
)
def test_a_setting_that_no_promise_rests_on_is_the_users(tmp_path: Path, name: str) -> None:
    assert read_config_file(config_file(tmp_path, f"{name}=1\n")) == {name: "1"}


@pytest.mark.parametrize(
    ("option", "text", "address"),
    [
        ("option:1", "bootstrap.servers=file:2\n", "option:1"),
        (None, "bootstrap.servers=file:2\n", "file:2"),
        (None, "metadata.broker.list=file:3\n", "file:3"),
        (None, "linger.ms=5\n", "default:4"),
        (None, None, "default:4"),
        ("option:1", None, "option:1"),
        ("", None, "default:4"),
    ],
)
def test_the_option_wins_over_the_file_and_the_file_over_the_default(
    tmp_path: Path, option: str | None, text: str | None, address: str
) -> None:
    made = connection(option, config_file(tmp_path, text) if text else None, "default:4")
    assert made.client()["bootstrap.servers"] == address
    assert made.bootstrap_servers == address
    assert "metadata.broker.list" not in made.client()
