"""Records that are no state event: kept whole with the reason, and their partition goes on."""

import pytest
from commands import Convoy
from confluent_kafka import Producer
from marks import dispatches
from trial import Raw, Trial

from lanes.dispatch import Dispatch
from lanes.event import encode
from lanes.lesson import lesson_events

UNKNOWN_STATE = encode(lesson_events()[0]).replace(b"accepted", b"lost")
BAD = [b"{not json", b"[]", b"\xff\xfe", UNKNOWN_STATE]


@dispatches
def test_four_bad_records_in_the_middle_hold_up_nothing(
    trial: Trial, convoy: Convoy, dispatch: Dispatch
) -> None:
    shared = dispatch is Dispatch.SHARE
    topic = trial.make_topic(1 if shared else 5)
    events = lesson_events()
    trial.produce(events[:10], one_record_batches=shared)
    trial.send(
        [Raw(value, b"TR-4821", number % topic.partitions) for number, value in enumerate(BAD)],
        **{"batch.num.messages": 1},
    )
    trial.produce(events[10:], one_record_batches=shared)

    ran = convoy.run(
        *("consume", "--topic", trial.topic_name, "--db", trial.db, "--workers", 2),
        *("--dispatch", dispatch.value, "--until-caught-up", "--json"),
    )

    assert ran.code == 3, ran.stderr
    assert (ran.json["applied"], ran.json["dead_letters"], ran.json["caught_up"]) == (20, 4, True)
    letters = trial.rows("select partition, offset, key, value, reason from dead_letter")
    assert {value: partition for partition, _, _, value, _ in letters} == {
        value: number % topic.partitions for number, value in enumerate(BAD)
    }
    assert len({(partition, offset) for partition, offset, *_ in letters}) == 4
    assert {key for _, _, key, _, _ in letters} == {b"TR-4821"}
    reason_of = {value: reason for *_, value, reason in letters}
    assert "Invalid JSON" in reason_of[b"{not json"]
    assert "should be an object" in reason_of[b"[]"]
    assert "Invalid JSON" in reason_of[b"\xff\xfe"]
    assert reason_of[UNKNOWN_STATE].startswith("state: ")
    assert "'lost'" in reason_of[UNKNOWN_STATE]
    found = trial.findings()
    assert (found["records"], found["applied"], found["dead_lettered"]) == (24, 20, 4)
    assert found["check"]["verdict"] == "true"
    if not shared:
        lags = {p["partition"]: p["high"] - p["committed"] for p in found["partitions"]}
        assert set(lags.values()) == {0}


@dispatches
def test_the_three_kinds_of_nothing_are_told_apart(trial: Trial, dispatch: Dispatch) -> None:
    trial.make_topic(1)
    trial.send([Raw(None, b"TR-1"), Raw(b"", b"TR-1"), Raw(b"null", b"TR-1")])

    result = trial.consume(dispatch=dispatch)

    assert result.totals.dead_letters == 3
    assert trial.rows("select value, reason from dead_letter order by offset") == [
        (None, "tombstone: the record has a null value"),
        (b"", "empty value: 0 bytes"),
        (b"null", "event: Input should be an object (found None)"),
    ]
    assert set(trial.findings()["dead_letter_reasons"].values()) == {1}


@pytest.mark.real_broker
def test_a_value_of_two_megabytes_is_kept_whole(trial: Trial) -> None:
    trial.make_topic(1, max_message_bytes="3000000")
    value = b'{"tracking_no": "' + b"x" * 2_000_000
    first, *rest = lesson_events()
    trial.produce([first])
    trial.send([Raw(value, b"TR-4821")], **{"message.max.bytes": 3_000_000})
    trial.produce(rest)

    result = trial.consume()

    assert (result.totals.in_history, result.totals.dead_letters) == (20, 1)
    assert trial.rows("select partition, offset, value from dead_letter") == [(0, 1, value)]


def test_a_key_that_is_no_text_is_kept_and_shown_as_bytes(trial: Trial) -> None:
    trial.make_topic(1)
    event = lesson_events()[0]
    trial.send([Raw(encode(event), b"\xff\xfe"), Raw(b"?", b"\xff\xfd")])

    trial.consume()

    found = trial.findings()
    assert (found["applied"], found["dead_lettered"]) == (1, 1)
    assert found["collisions"] == {"0": ["hex:fffd", "hex:fffe"]}
    assert trial.rows("select key from dead_letter") == [(b"\xff\xfd",)]
    assert found["check"]["verdict"] == "true"


def test_a_topic_of_bad_records_only_is_caught_up(trial: Trial) -> None:
    trial.make_topic(2)
    trial.send(Raw(b"?", None, number % 2) for number in range(50))

    result = trial.consume()

    assert (result.totals.in_history, result.totals.dead_letters) == (0, 50)


def test_dead_letters_are_kept_once_over_two_runs(trial: Trial) -> None:
    trial.make_topic(1)
    trial.send([Raw(b"?"), Raw(b"??")])
    trial.consume()
    trial.send([Raw(b"???")])

    assert trial.consume().totals.dead_letters == 1
    assert trial.count("dead_letter") == 3


def test_record_headers_and_times_change_nothing(trial: Trial) -> None:
    trial.make_topic(1)
    producer = Producer(trial.connection.client())
    event = lesson_events()[0]
    headers = [("trace", b"\x00\xff"), ("trace", None)]
    producer.produce(trial.topic_name, encode(event), b"TR-4821", 0, headers=headers, timestamp=1)
    assert producer.flush(10) == 0

    assert trial.consume().totals.in_history == 1
