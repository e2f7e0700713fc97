"""Paced runs in share dispatch: the lesson's own figures, on a broker."""

import os
import signal

import pytest
from brokers import BrokerUnderTest
from trial import Trial, workers_here

from broker.embedded import EmbeddedBroker
from consumer.errors import ShareGroupsMissing
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.outcome import expected_states
from lanes.schedule import ticks

TICK_US = 150_000
WORKERS = 4


def run_lesson(trial: Trial, key: KeyChoice, *, version_check: bool = False) -> dict[str, object]:
    """The lesson in one partition, each record in a batch of its own; what the run came to."""
    trial.make_topic(1)
    trial.produce(key=key, one_record_batches=True)
    trial.consume(WORKERS, dispatch=Dispatch.SHARE, gate=key, version_check=version_check, tick_us=TICK_US)
    report = trial.report()
    lesson = report.beside.lesson
    figures = {
        "backward": len(report.found.backward),
        "wrong": [wrong.tracking_no for wrong in report.found.wrong],
        "skipped": report.found.skipped,
        "ticks": ticks(report.beside.live),
    }
    assert figures == {
        "backward": lesson.backward_writes,
        "wrong": lesson.wrong,
        "skipped": lesson.skipped,
        "ticks": lesson.tick,
    }
    assert {backward.cause.name for backward in report.backward} <= {"SEVERAL_WORKERS"}
    return figures


@pytest.mark.real_broker
def test_the_free_arrangement(trial: Trial) -> None:
    assert run_lesson(trial, KeyChoice.NONE) == {
        "backward": 5,
        "wrong": ["TR-4821"],
        "skipped": 0,
        "ticks": 8,
    }


@pytest.mark.real_broker
def test_the_version_stamp(trial: Trial) -> None:
    assert run_lesson(trial, KeyChoice.NONE, version_check=True) == {
        "backward": 5,
        "wrong": [],
        "skipped": 5,
        "ticks": 8,
    }


@pytest.mark.real_broker
@pytest.mark.parametrize(("key", "expected_ticks"), [(KeyChoice.TRACKING_NO, 13), (KeyChoice.LINE, 19)])
def test_the_convoy_by(trial: Trial, key: KeyChoice, expected_ticks: int) -> None:
    assert run_lesson(trial, key) == {"backward": 0, "wrong": [], "skipped": 0, "ticks": expected_ticks}


@pytest.mark.real_broker
def test_workers_that_are_killed_do_not_hold_up_those_who_wait_at_a_gate_for_them(trial: Trial) -> None:
    trial.make_topic(1)
    trial.produce(key=KeyChoice.LINE, one_record_batches=True)

    with trial.consuming(WORKERS, dispatch=Dispatch.SHARE, gate=KeyChoice.LINE, tick_us=TICK_US) as running:
        # Orders 0 and 3 are done in tick 1. Then 1 is worked on, 2 waits for it, and whoever was done with
        # the others waits for both, with later events of that line in hand.
        trial.wait_for_rows("history", 2, running)
        done = {worker for (worker,) in trial.rows("select worker from history")}
        crew = workers_here()
        for number in set(range(WORKERS)) - done:
            os.kill(crew[number].pid, signal.SIGKILL)
        result = running.result(120)

    assert result.caught_up
    assert len(result.ended) == WORKERS - len(done)
    orders = [order for (order,) in trial.rows("select arrival_order from history")]
    assert sorted(orders) == list(range(20))
    assert trial.states() == {name: state.value for name, state in expected_states(lesson_events()).items()}
    assert trial.findings()["check"]["verdict"] == "true"


def test_a_broker_without_share_groups_is_told_from_one_with_them(trial: Trial, topic_name: str) -> None:
    with EmbeddedBroker() as mock:
        trial = Trial(BrokerUnderTest(mock.bootstrap_servers, "", "", mock), topic_name, trial.db)
        trial.make_topic(1)

        with pytest.raises(ShareGroupsMissing, match="no share groups") as refused:
            trial.consume(dispatch=Dispatch.SHARE)

    assert "Kafka 4.2 or newer" in refused.value.hint
    assert not trial.count("run")
