"""Topic to table: each event once, and in its partition's order."""

import pytest
from marks import dispatches, keys
from trial import Trial

from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.outcome import expected_states

EXPECTED = {shipment: state.value for shipment, state in expected_states(lesson_events()).items()}


@keys
@dispatches
def test_every_event_of_the_lesson_is_applied_once(trial: Trial, dispatch: Dispatch, key: KeyChoice) -> None:
    shared = dispatch is Dispatch.SHARE
    trial.make_topic(1 if shared else 5)
    trial.produce(key=key, seed=7, one_record_batches=shared)

    result = trial.consume(workers=3, dispatch=dispatch)

    assert result.totals.in_history == 20
    assert result.totals.dead_letters == 0
    applied = trial.rows("select arrival_order from history")
    assert sorted(order for (order,) in applied) == list(range(20))
    found = trial.findings()
    assert (found["records"], found["applied"], found["not_yet_applied"]) == (20, 20, 0)
    assert (found["lost"], found["applied_twice"]) == ([], [])
    assert found["key"] == key.value
    assert found["check"]["verdict"] == "true"


@keys
def test_each_partition_is_applied_in_its_order(trial: Trial, key: KeyChoice) -> None:
    trial.make_topic(3)
    trial.produce(key=key, seed=1)

    trial.consume(workers=2)

    read: dict[int, list[int]] = {}
    for partition, offset in trial.rows("select partition, offset from history order by step"):
        read.setdefault(partition, []).append(offset)
    assert read == {partition: list(range(len(offsets))) for partition, offsets in read.items()}
    if key is not KeyChoice.NONE:
        assert trial.states() == EXPECTED
        assert trial.findings()["backward_writes"] == 0


@pytest.mark.real_broker
@pytest.mark.parametrize("key", [KeyChoice.TRACKING_NO, KeyChoice.LINE])
def test_a_gate_keeps_each_lane_in_order_in_share_dispatch(trial: Trial, key: KeyChoice) -> None:
    trial.make_topic(1)
    trial.produce(key=key, one_record_batches=True)

    trial.consume(workers=4, dispatch=Dispatch.SHARE, gate=key)

    assert trial.states() == EXPECTED
    lane = "tracking_no" if key is KeyChoice.TRACKING_NO else "line"
    orders: dict[str, list[int]] = {}
    for name, order in trial.rows(f"select {lane}, arrival_order from history order by step"):
        orders.setdefault(name, []).append(order)
    assert all(applied == sorted(applied) for applied in orders.values())


def test_a_second_run_finds_nothing_left_to_do(trial: Trial) -> None:
    trial.make_topic(3)
    trial.produce()
    trial.consume()

    again = trial.consume()

    assert (again.run, again.totals.in_history) == (2, 0)
    assert trial.count("history") == 20


@dispatches
def test_a_later_run_goes_on_where_the_database_is(trial: Trial, dispatch: Dispatch) -> None:
    shared = dispatch is Dispatch.SHARE
    trial.make_topic(1 if shared else 3)
    events = lesson_events()
    trial.produce(events[:8], one_record_batches=shared)
    trial.consume(dispatch=dispatch)
    trial.produce(events[8:], one_record_batches=shared)

    second = trial.consume(dispatch=dispatch)

    assert second.totals.in_history == 12
    assert sorted(trial.rows("select arrival_order, run from history")) == [
        (order, 1 if order < 8 else 2) for order in range(20)
    ]


def test_a_run_applies_what_is_written_while_it_goes_on(trial: Trial) -> None:
    trial.make_topic(3)
    events = lesson_events()
    with trial.consuming(2, until_caught_up=False) as running:
        trial.produce(events[:8])
        trial.wait_for_rows("history", 8, running)
        trial.produce(events[8:])
        trial.wait_for_rows("history", 20, running)
        result = running.stop()

    assert result.totals.in_history == 20
    assert trial.states() == EXPECTED


def test_the_group_s_committed_offsets_follow_the_database(trial: Trial) -> None:
    topic = trial.make_topic(3)
    trial.produce(key=KeyChoice.NONE, seed=1)
    result = trial.consume(2)

    committed = trial.topics.committed(result.source.group_id, topic)

    ends = {partition: here.high for partition, here in trial.topics.offsets(topic).items()}
    assert committed == ends


def test_an_empty_topic_is_caught_up_at_once(trial: Trial) -> None:
    trial.make_topic(2)

    assert trial.consume().totals.in_history == 0
    assert trial.findings()["check"]["verdict"] == "true"


@pytest.mark.parametrize("workers", [1, 2])
def test_two_runs_at_once_share_out_one_database_and_apply_each_event_once(
    trial: Trial, workers: int
) -> None:
    trial.make_topic(6)
    trial.produce(key=KeyChoice.NONE, seed=3)

    with trial.consuming(workers) as first, trial.consuming(workers) as second:
        results = [first.result(), second.result()]

    assert sorted(result.run for result in results) == [1, 2]
    assert sum(result.totals.in_history for result in results) == 20
    assert sorted(order for (order,) in trial.rows("select arrival_order from history")) == list(range(20))
    assert trial.findings()["check"]["verdict"] == "true"
