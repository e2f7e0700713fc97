"""Each way to a backward write, made on purpose, and the cause that the analysis gives for it."""

from collections import Counter

import pytest
from brokers import wait_until
from confluent_kafka.admin import AdminClient, NewPartitions
from marks import keys
from streams import state_event
from trial import Raw, Trial, raw

from lanes.event import encode
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.partitioner import Partitioner

TICK_US = 100_000
NEWER, OLDER = state_event(1, version=2), state_event(0, version=1)


def causes(trial: Trial) -> list[str]:
    """The cause of each backward write, in the order applied."""
    return [backward["cause"] for backward in trial.findings()["backward"]]


def apply_one_by_one(trial: Trial, *steps) -> None:
    """Apply what each step writes before the next step writes."""
    for step in steps:
        step()
        trial.consume()


def grow(trial: Trial, partitions: int) -> None:
    """Add partitions to the topic, and wait until everybody is told of them."""
    admin = AdminClient(trial.connection.client())
    admin.create_partitions([NewPartitions(trial.topic_name, partitions)])[trial.topic_name].result(10)
    wait_until(lambda: trial.topic.partitions == partitions, f"{partitions} partitions")


def test_no_key(trial: Trial) -> None:
    trial.make_topic(2)
    apply_one_by_one(
        trial,
        lambda: trial.send([Raw(encode(NEWER), None, 0)]),
        lambda: trial.send([Raw(encode(OLDER), None, 1)]),
    )

    assert causes(trial) == ["no_key"]
    assert trial.findings()["split_shipments"] == {"TR-1": [0, 1]}


def test_other_key(trial: Trial) -> None:
    trial.make_topic(2)
    apply_one_by_one(
        trial,
        lambda: trial.send([raw(NEWER, partition=0, key=b"L1")]),
        lambda: trial.send([raw(OLDER, partition=1, key=b"TR-1")]),
    )

    assert causes(trial) == ["other_key"]


def test_two_partitioners_in_one_topic(trial: Trial) -> None:
    trial.make_topic(15)
    newer, older = (event.model_copy(update={"tracking_no": "TT0124"}) for event in (NEWER, OLDER))
    apply_one_by_one(
        trial,
        lambda: trial.produce([newer], partitioner=Partitioner.MURMUR2),
        lambda: trial.produce([older], partitioner=Partitioner.CRC32),
    )

    assert causes(trial) == ["other_partitioner"]
    found = trial.findings()
    assert found["split_keys"] == {"TT0124": [9, 10]}
    assert found["check"]["verdict"] == "false"


@pytest.mark.real_broker
def test_partitions_added(trial: Trial) -> None:
    trial.make_topic(3)
    events = lesson_events()
    moved = [event for event in events if event.tracking_no in ("TR-4821", "TR-9007", "TR-5533")]
    # Work on the first partitions takes long, so what was written later to new ones is applied before it.
    slow = [event.model_copy(update={"duration": 20}) for event in moved if event.state == "accepted"]
    trial.produce(slow)
    grow(trial, 5)
    trial.produce([event.model_copy(update={"duration": 1}) for event in moved if event.state == "delivered"])

    trial.consume(workers=5, tick_us=20_000)

    assert causes(trial) == ["partitions_added"] * 2


@pytest.mark.real_broker
def test_entities_that_straddle_an_addition_of_partitions_are_named(trial: Trial) -> None:
    trial.make_topic(3)
    events = lesson_events()
    with trial.consuming(2, until_caught_up=False) as running:
        trial.produce(events[:10])
        trial.wait_for_rows("history", 10, running)
        grow(trial, 5)
        trial.produce(events[10:])
        trial.wait_for_rows("history", 20, running)
        result = running.stop()

    assert result.partitions == 5
    assert result.caught_up
    before = {event.tracking_no for event in events[:10]}
    after = {event.tracking_no for event in events[10:]}
    moves = {"TR-4821": [0, 4], "TR-9007": [0, 1], "TR-5533": [2, 3]}
    expected = {shipment: partitions for shipment, partitions in moves.items() if shipment in before & after}
    found = trial.findings()
    assert found["split_shipments"] == found["split_keys"] == expected
    assert set(causes(trial)) <= {"partitions_added"}
    assert sorted(order for (order,) in trial.rows("select arrival_order from history")) == list(range(20))


def test_the_producer_out_of_order(trial: Trial) -> None:
    trial.make_topic(1)
    trial.produce([NEWER, OLDER])
    trial.consume()

    assert causes(trial) == ["sent_out_of_order"]


def test_the_stream_itself(trial: Trial) -> None:
    trial.make_topic(1)
    trial.produce([state_event(0, version=4), state_event(1, version=2)])
    trial.consume()

    assert causes(trial) == ["stream"]
    found = trial.findings()
    assert found["wrong"] == []
    assert found["check"]["verdict"] == "true"


@keys
def test_a_stream_that_is_written_twice(trial: Trial, key: KeyChoice) -> None:
    trial.make_topic(3)
    apply_one_by_one(
        trial,
        lambda: trial.produce(key=key, seed=1),
        lambda: trial.produce(key=key, seed=1),
    )

    found = trial.findings()

    assert found["repeated_orders"] == 20
    counted = Counter(causes(trial))
    assert counted["replay"] >= 5
    if key is not KeyChoice.NONE:
        assert set(counted) == {"replay"}
        assert found["wrong"] == []
