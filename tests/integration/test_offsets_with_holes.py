"""Transactions: offsets that hold no record, records that are no events, and ends that no record shows."""

import pytest
from confluent_kafka import Producer
from marks import dispatches
from transactions import Writer
from trial import Trial

from lanes.dispatch import Dispatch
from lanes.event import encode
from lanes.lesson import lesson_events

pytestmark = pytest.mark.real_broker


@dispatches
def test_aborted_records_are_no_events_and_markers_are_no_loss(trial: Trial, dispatch: Dispatch) -> None:
    topic = trial.make_topic(1)
    events = lesson_events()
    writer = Writer(trial)
    writer.write(events[:2], commit=True)
    writer.write(events[2:3], commit=False)
    trial.produce(events[3:4])
    assert trial.topics.offsets(topic)[0].high == 6

    result = trial.consume(workers=2, dispatch=dispatch)

    assert result.totals.in_history == 3
    assert trial.rows("select offset from history order by offset") == [(0,), (1,), (5,)]
    found = trial.findings()
    assert (found["records"], found["applied"], found["not_yet_applied"]) == (3, 3, 0)
    assert found["lost"] == []
    assert found["check"]["verdict"] == "true"


@dispatches
@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_a_run_ends_where_the_last_offset_is_a_marker(
    trial: Trial, dispatch: Dispatch, *, commit: bool
) -> None:
    trial.make_topic(2)
    events = lesson_events()
    writer = Writer(trial)
    writer.write(events[:3], commit=True)
    writer.write(events[3:5], commit=commit)

    result = trial.consume(workers=2, dispatch=dispatch)

    assert result.totals.in_history == (5 if commit else 3)
    again = trial.consume(workers=2, dispatch=dispatch)
    assert again.totals.in_history == 0
    assert trial.findings()["check"]["verdict"] == "true"


def test_records_of_a_transaction_that_is_still_open_wait_for_its_end(trial: Trial) -> None:
    trial.make_topic(1)
    events = lesson_events()
    trial.produce(events[:2])
    producer = Producer({**trial.connection.client(), "transactional.id": trial.topic_name})
    producer.init_transactions(20)
    producer.begin_transaction()
    for event in events[2:5]:
        producer.produce(trial.topic_name, encode(event), event.tracking_no.encode(), 0)
    assert producer.flush(10) == 0

    assert trial.consume().totals.in_history == 2

    producer.commit_transaction(20)
    assert trial.consume().totals.in_history == 3
