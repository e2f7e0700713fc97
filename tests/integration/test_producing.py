"""Events to topic: where each record lies, and that each one arrived."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from brokers import wait_until
from commands import Convoy
from marks import keys, partitioners
from streams import state_event
from trial import Raw, Trial

from broker.topics import Topics
from lanes.event import StateEvent, decode, encode
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.partitioner import Partitioner
from producer.errors import DeliveryFailed


@pytest.fixture
def trial(trial: Trial) -> Trial:
    """A trial that produces exactly as the command does."""
    trial.producing = trial.connection
    return trial


def write_jsonl(path: Path, events: Sequence[StateEvent]) -> Path:
    """A file of events."""
    path.write_bytes(b"\n".join(map(encode, events)))
    return path


def ends(trial: Trial) -> list[int]:
    """Number of records by partition, where nothing leaves holes."""
    offsets = Topics(trial.connection).offsets(trial.topic)
    return [offsets[partition].high for partition in sorted(offsets)]


@pytest.mark.real_broker
def test_a_missing_topic_is_made_with_the_partitions_asked_for(trial: Trial, convoy: Convoy) -> None:
    ran = convoy.run("produce", "--topic", trial.topic_name, "--partitions", 7, "--json")

    assert ran.code == 0, ran.stderr
    assert trial.topic.partitions == 7
    assert ran.json["delivered"] == 20
    assert sum(ends(trial)) == 20


def test_a_topic_with_another_number_of_partitions_is_refused(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(3)

    ran = convoy.run("produce", "--topic", trial.topic_name, "--partitions", 5)

    assert (ran.code, ran.stdout) == (1, "")
    assert f"topic {trial.topic_name} has 3 partitions, not 5" in ran.stderr
    assert sum(ends(trial)) == 0


def test_a_topic_is_used_as_it_is_where_no_number_is_asked_for(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(3)

    assert convoy.run("produce", "--topic", trial.topic_name).code == 0
    assert (trial.topic.partitions, sum(ends(trial))) == (3, 20)


@partitioners
@pytest.mark.parametrize("key", [KeyChoice.TRACKING_NO, KeyChoice.LINE])
def test_keyed_records_lie_where_the_rule_predicts(
    trial: Trial, key: KeyChoice, partitioner: Partitioner
) -> None:
    trial.make_topic(8)
    trial.produce(key=key, partitioner=partitioner)

    records = trial.records()

    assert len(records) == 20
    for record in records:
        assert record.key == key.value_of(record.event).encode()
        assert record.partition == partitioner.partition_of(record.key, 8)


@partitioners
def test_one_key_lies_elsewhere_by_another_rule(trial: Trial, partitioner: Partitioner) -> None:
    trial.make_topic(15)
    trial.produce([state_event(shipment="TT0124")], partitioner=partitioner)

    (record,) = trial.records()

    assert record.partition == {Partitioner.MURMUR2: 10, Partitioner.CRC32: 9}[partitioner]


@keys
def test_records_of_a_partition_keep_the_order_in_which_they_were_sent(trial: Trial, key: KeyChoice) -> None:
    trial.make_topic(4)
    events = [state_event(order, shipment=f"TR-{order % 40}") for order in range(3000)]
    trial.produce(events, key=key, seed=5)

    orders: dict[int, list[int]] = {}
    for record in trial.records():
        orders.setdefault(record.partition, []).append(record.event.order)

    assert sum(map(len, orders.values())) == 3000
    assert all(sent == sorted(sent) for sent in orders.values())


def test_records_without_a_key_are_dealt_again_alike_by_the_same_seed(
    trial: Trial, broker, topic_name: str
) -> None:
    dealt = []
    for seed in (1, 1, 2):
        other = Trial(broker, f"{topic_name}.{len(dealt)}", trial.db)
        other.make_topic(4)
        other.produce(key=KeyChoice.NONE, seed=seed)
        dealt.append([(record.partition, record.event.order) for record in other.records()])

    assert dealt[0] == dealt[1]
    assert dealt[0] != dealt[2]
    assert {partition for partition, _ in dealt[0]} == {0, 1, 2, 3}


@pytest.mark.parametrize(("count", "least"), [(40, 4), (10_000, 2300)])
def test_records_without_a_key_are_spread_and_the_analysis_shows_how(
    trial: Trial, count: int, least: int
) -> None:
    trial.make_topic(4)
    events = [state_event(order, shipment=f"TR-{order}") for order in range(count)]
    production = trial.produce(events, key=KeyChoice.NONE, seed=0)
    trial.consume()

    found = trial.findings()

    measured = {partition["partition"]: partition["records"] for partition in found["partitions"]}
    assert measured == production.records_in
    assert min(measured.values()) >= least
    assert found["records_without_key"] == count
    assert (found["key"], found["key_lanes"], found["partition_lanes"]) == ("none", 0, 4)


@pytest.mark.real_broker
@partitioners
def test_empty_keys_and_no_keys_go_different_ways_and_are_counted_apart(
    trial: Trial, partitioner: Partitioner
) -> None:
    trial.make_topic(4)
    events = [encode(state_event(order, shipment=f"TR-{order}")) for order in range(80)]
    left_to_the_rule = -1
    empty = [Raw(value, b"", left_to_the_rule) for value in events[:40]]
    absent = [Raw(value, None, left_to_the_rule) for value in events[40:]]
    trial.send([*empty, *absent], **trial.connection.producer(partitioner))
    trial.consume()

    lie = {key: {r.partition for r in trial.records() if r.key == key} for key in (b"", None)}
    if partitioner is Partitioner.MURMUR2:
        assert lie[b""] == {1}
    else:
        assert len(lie[b""]) > 1
    assert len(lie[None]) > 1
    found = trial.findings()
    assert (found["records_with_empty_key"], found["records_without_key"]) == (40, 40)


def test_a_value_that_is_too_large_is_named_with_its_size(
    trial: Trial, convoy: Convoy, tmp_path: Path
) -> None:
    trial.make_topic(1)
    sizes = [100_000, 999_000, 1_100_000, 10]
    events = [state_event(order, line="L" * size) for order, size in enumerate(sizes)]
    path = write_jsonl(tmp_path / "large.jsonl", events)

    ran = convoy.run("produce", "--topic", trial.topic_name, "--file", path)

    assert (ran.code, ran.stdout) == (1, "")
    assert (
        f"order 2 (key TR-1, {len(encode(events[2]))} bytes): it, or its batch, is larger than" in ran.stderr
    )
    assert "2 of 4 events were not delivered" in ran.stderr
    assert sum(ends(trial)) == 2


@pytest.mark.real_broker
def test_a_value_that_only_the_broker_refuses_is_named_as_well(trial: Trial) -> None:
    trial.make_topic(1, max_message_bytes="10000")
    events = [state_event(0), state_event(1, line="L" * 20_000)]

    with pytest.raises(DeliveryFailed) as refused:
        trial.produce(events)

    sizes = {failure.order: failure.size for failure in refused.value.failures}
    assert sizes[1] == len(encode(events[1]))
    assert refused.value.delivered + len(sizes) == 2


@pytest.mark.parametrize("signal", ["interrupt", "terminate"])
def test_a_production_that_is_interrupted_says_what_was_not_sent(
    trial: Trial, convoy: Convoy, tmp_path: Path, signal: str
) -> None:
    trial.make_topic(3)
    events = [state_event(order, shipment=f"TR-{order % 50}") for order in range(20_000)]
    path = write_jsonl(tmp_path / "events.jsonl", events)
    slow = tmp_path / "slow.properties"
    slow.write_text("queue.buffering.max.messages=100\nlinger.ms=50\n")

    started = convoy.start(
        *("produce", "--topic", trial.topic_name, "--file", path, "--config", slow, "--json")
    )
    wait_until(lambda: sum(ends(trial)) > 0, "the first records")
    getattr(started, signal)()
    ran = started.result()

    assert ran.code == 130, ran.stderr
    delivered, lacking = ran.json["delivered"], ran.json["not_delivered"]
    assert 0 < delivered < len(events)
    orders = sorted(record.event.order for record in trial.records())
    assert len(orders) == delivered
    assert orders + lacking == list(range(len(events)))
    assert f"Interrupted: {delivered} of 20000 events are in the topic." in ran.stderr
    assert f"Not acknowledged: {len(lacking)} events, orders {lacking[0]}, {lacking[1]}" in ran.stderr


def test_keys_that_look_alike_are_named_and_stay_apart(trial: Trial, convoy: Convoy, tmp_path: Path) -> None:
    trial.make_topic(4)
    alike = ["TR-4821", "TR-4821 ", "tr-4821"]
    events = [state_event(order, shipment=shipment) for order, shipment in enumerate(alike)]

    ran = convoy.run(
        "produce", "--topic", trial.topic_name, "--file", write_jsonl(tmp_path / "events.jsonl", events)
    )
    trial.consume()

    assert "look alike, each a lane of its own: 'TR-4821', 'TR-4821 ', 'tr-4821'" in ran.stderr
    assert [record.partition for record in trial.records()] == [0, 3, 3]
    found = trial.findings()
    assert found["look_alike_keys"] == [alike]
    assert found["key_lanes"] == 3
    assert set(trial.states()) == set(alike)


@keys
def test_a_line_that_changes_within_a_shipment_is_named(
    trial: Trial, convoy: Convoy, tmp_path: Path, key: KeyChoice
) -> None:
    trial.make_topic(5)
    events = [
        state_event(0, line="L1"),
        state_event(1, version=2, line="L2"),
        state_event(2, shipment="TR-2"),
    ]
    path = write_jsonl(tmp_path / "events.jsonl", events)

    ran = convoy.run("produce", "--topic", trial.topic_name, "--file", path, "--key", key.value)

    assert "Shipment TR-1 changes its line (L1, L2)" in ran.stderr
    assert ("no common lane" in ran.stderr) is (key is KeyChoice.LINE)
    trial.consume()
    assert trial.findings()["line_changes"] == {"TR-1": ["L1", "L2"]}


def test_a_file_with_a_bad_line_is_not_sent_at_all(trial: Trial, convoy: Convoy, tmp_path: Path) -> None:
    trial.make_topic(1)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join([*map(encode, lesson_events()[:3]), b"{not json"]))

    ran = convoy.run("produce", "--topic", trial.topic_name, "--file", path)

    assert (ran.code, ran.stdout) == (1, "")
    assert "line 4: Invalid JSON" in ran.stderr
    assert sum(ends(trial)) == 0


def test_values_read_back_as_the_events_that_were_sent(trial: Trial) -> None:
    trial.make_topic(1)
    events = [state_event(0, shipment='TR-ü𝄞 \\"\n'), *lesson_events()[1:]]
    trial.produce(events)

    assert [decode(record.value) for record in trial.records()] == events
