"""Workers that die, stall, come back late or have nothing to do: each event is still applied once."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest
from brokers import wait_until
from commands import Convoy, Started, descendants, wait_until_gone
from confluent_kafka.admin import AdminClient
from locks import write_lock
from streams import state_event
from trial import Trial, workers_here

from consumer.errors import WorkerFailed
from lanes.key import KeyChoice
from lanes.lesson import lesson_events

TICK_US = 100_000
SHORT = {"session_timeout_ms": "3000", "max_poll_interval_ms": "3000"}
"""A worker counts as gone after 3 s."""


@pytest.fixture
def impatient(trial: Trial) -> Trial:
    """A trial in whose group a worker that is not heard of loses its partitions after 3 s."""
    trial.connection = trial.broker.connection(**SHORT)
    return trial


def assert_lesson_applied_once(trial: Trial) -> None:
    """All 20 events, each once, and none lost."""
    applied = [order for (order,) in trial.rows("select arrival_order from history")]
    assert sorted(applied) == list(range(20))
    found = trial.findings()
    assert (found["lost"], found["not_yet_applied"]) == ([], 0)
    assert found["check"]["verdict"] == "true"


@pytest.mark.real_broker
def test_the_others_take_over_from_a_worker_that_is_killed(impatient: Trial) -> None:
    impatient.make_topic(4)
    impatient.produce(key=KeyChoice.NONE, seed=1)

    with impatient.consuming(2, tick_us=TICK_US) as running:
        impatient.wait_for_rows("history", 2, running)
        victim, _ = workers_here()
        os.kill(victim.pid, signal.SIGKILL)
        result = running.result()

    assert result.ended == ["worker 0 was killed by signal 9; its partitions go to the others"]
    assert result.caught_up
    assert result.assignment == {1: [0, 1, 2, 3]}
    assert_lesson_applied_once(impatient)


def test_a_run_whose_every_worker_is_killed_ends_with_an_error(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(2)
    trial.produce()

    started = convoy.start(
        *("consume", "--topic", trial.topic_name, "--db", trial.db),
        *("--workers", 2, "--tick-ms", 100, "--until-caught-up"),
    )
    trial.wait_for_rows("history", 1, started)
    for pid in worker_pids(trial, partitions=2):
        os.kill(pid, signal.SIGKILL)
    ran = started.result()

    assert ran.code == 1
    assert "No worker is left" in ran.stderr
    assert trial.rows("pragma integrity_check") == [("ok",)]


def test_a_worker_that_is_gone_before_a_paced_run_begins_is_told_at_once(trial: Trial) -> None:
    trial.make_topic(2)
    trial.produce()

    with trial.consuming(2, tick_us=TICK_US) as running:
        wait_until(lambda: len(workers_here()) == 2, "two workers")
        os.kill(workers_here()[0].pid, signal.SIGKILL)
        with pytest.raises(WorkerFailed, match="worker 0 was killed by signal 9"):
            running.result()

    assert trial.count("history") == 0


def worker_pids(trial: Trial, partitions: int) -> set[int]:
    """The processes that own the partitions, waited for until each partition is owned by one."""

    def owners() -> set[int]:
        if not trial.count("progress"):
            return set()
        rows = trial.rows("select owner from progress")
        return {int(owner.rpartition("process ")[2].rstrip(")")) for (owner,) in rows}

    wait_until(lambda: len(owners()) == partitions, f"{partitions} partitions with an owner each")
    return owners()


@pytest.mark.real_broker
def test_a_worker_that_was_stopped_and_comes_back_late_changes_nothing(impatient: Trial) -> None:
    impatient.make_topic(2)
    impatient.produce(key=KeyChoice.NONE, seed=1)

    with impatient.consuming(2, tick_us=TICK_US) as running:
        impatient.wait_for_rows("history", 2, running)
        sleeper, _ = workers_here()
        os.kill(sleeper.pid, signal.SIGSTOP)
        asleep = f"select count(*) from progress where owner like '%process {sleeper.pid})'"
        try:
            wait_until(lambda: impatient.rows(asleep) == [(0,)], "the other has taken over")
        finally:
            os.kill(sleeper.pid, signal.SIGCONT)
        result = running.result()

    assert result.ended == []
    assert_lesson_applied_once(impatient)


@pytest.mark.real_broker
@pytest.mark.parametrize("workers", [1, 2])
def test_an_event_that_outlasts_the_poll_interval_is_applied_once(impatient: Trial, workers: int) -> None:
    impatient.make_topic(2)
    impatient.produce([state_event(0)])

    with impatient.consuming(workers, until_caught_up=False) as running:
        impatient.wait_for_rows("history", 1, running)
        group = impatient.rows("select group_id from source")[0][0]
        wait_until(members_are(impatient, group, workers), f"{workers} members")
        with write_lock(impatient.db):
            # The worker that has the event waits for the lock, and is thrown out of the group for it.
            impatient.produce([state_event(1, version=2)])
            wait_until(members_are(impatient, group, workers - 1), "one member less")
        impatient.wait_for_rows("history", 2, running)
        impatient.produce([state_event(2, version=3)])
        impatient.wait_for_rows("history", 3, running)
        result = running.stop()

    assert result.ended == []
    assert impatient.rows("select arrival_order from history order by step") == [(0,), (1,), (2,)]
    assert impatient.findings()["check"]["verdict"] == "true"


def members_are(trial: Trial, group: str, number: int) -> Callable[[], bool]:
    """Whether the group, at rest, has so many members."""
    admin = AdminClient(trial.connection.client())

    def asked() -> bool:
        told = admin.describe_consumer_groups([group], request_timeout=10)[group].result(11)
        return told.state.name in ("STABLE", "EMPTY") and len(told.members) == number

    return asked


def test_a_worker_without_a_partition_is_named_and_holds_up_nothing(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(2)
    trial.produce()

    ran = convoy.run(
        *("consume", "--topic", trial.topic_name, "--db", trial.db),
        *("--workers", 3, "--until-caught-up", "--json"),
    )

    assert ran.code == 0, ran.stderr
    assert sorted(map(len, ran.json["assignment"].values())) == [0, 1, 1]
    (idle,) = (worker for worker, partitions in ran.json["assignment"].items() if not partitions)
    assert f"Idle: worker {idle} had no partition" in ran.stderr
    assert "2 of 3 workers busy" in ran.stderr


def test_a_paced_run_starts_though_a_worker_has_no_partition(trial: Trial) -> None:
    trial.make_topic(2)
    trial.produce(lesson_events()[:3])

    result = trial.consume(workers=3, tick_us=TICK_US)

    assert sorted(map(len, result.assignment.values())) == [0, 1, 1]
    assert trial.report().beside.live is not None


@pytest.mark.parametrize("send", [Started.interrupt, Started.interrupt_all, Started.terminate])
def test_a_signal_ends_a_run_well_and_leaves_no_worker(
    trial: Trial, convoy: Convoy, send: Callable[[Started], None]
) -> None:
    trial.make_topic(3)
    trial.produce()
    started = convoy.start("consume", "--topic", trial.topic_name, "--db", trial.db, "--workers", 3, "--json")
    trial.wait_for_rows("history", 20, started)
    workers = descendants(started.pid)

    send(started)
    ran = started.result()

    assert ran.code == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert (ran.json["applied"], ran.json["caught_up"]) == (20, True)
    assert len(workers) >= 3
    wait_until_gone(workers)
    assert trial.rows("pragma integrity_check") == [("ok",)]
    assert_lesson_applied_once(trial)


@pytest.mark.real_broker
@pytest.mark.parametrize(("goal", "code"), [([], 0), (["--until-caught-up"], 130)], ids=["no goal", "a goal"])
def test_a_run_that_is_interrupted_in_the_middle_goes_on_where_it_was(
    trial: Trial, convoy: Convoy, goal: list[str], code: int
) -> None:
    trial.make_topic(3)
    trial.produce()
    paced = ("consume", "--topic", trial.topic_name, "--db", trial.db, "--tick-ms", 100)
    started = convoy.start(*paced, "--workers", 2, "--json", *goal)
    trial.wait_for_rows("history", 3, started)

    started.terminate()
    ran = started.result()

    assert (ran.code, ran.json["caught_up"]) == (code, False)
    assert 3 <= ran.json["applied"] < 20
    trial.consume(2)
    assert_lesson_applied_once(trial)


@pytest.mark.real_broker
def test_workers_end_when_the_command_is_killed(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(3)
    trial.produce()
    started = convoy.start(
        "consume", "--topic", trial.topic_name, "--db", trial.db, "--workers", 3, "--tick-ms", 100
    )
    trial.wait_for_rows("history", 2, started)
    workers = descendants(started.pid)
    assert len(workers) >= 3

    started.kill()
    started.result()

    try:
        wait_until_gone(workers)
    finally:
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    trial.consume(2)
    assert_lesson_applied_once(trial)
