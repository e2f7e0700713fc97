"""Other programs on the same database: they are waited for, with a deadline."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from locks import write_lock
from trial import Trial

from lanes.lesson import lesson_events
from state.errors import DatabaseBusy
from state.store import Store


def test_a_run_that_begins_under_a_lock_waits_for_it(trial: Trial) -> None:
    trial.make_topic(3)
    events = lesson_events()
    trial.produce(events[:5])
    trial.consume()
    trial.produce(events[5:])

    with ExitStack() as held:
        held.enter_context(write_lock(trial.db))
        with trial.consuming(2) as running:
            time.sleep(1)  # the length of the lock, not a guess at how long something takes
            assert not running.ended
            assert trial.count("history") == 5
            held.close()
            result = running.result()

    assert result.totals.in_history == 15
    assert result.ended == []


def test_a_new_file_that_another_program_has_locked_is_waited_for(trial: Trial) -> None:
    trial.make_topic(1)
    trial.produce()

    with ExitStack() as held:
        held.enter_context(write_lock(trial.db))
        with trial.consuming() as running:
            time.sleep(0.3)  # as above
            assert not running.ended
            held.close()
            result = running.result()

    assert result.totals.in_history == 20


def test_a_lock_in_the_middle_of_a_run_delays_it_and_loses_nothing(trial: Trial) -> None:
    trial.make_topic(3)
    events = lesson_events()
    trial.produce(events[:5])
    with trial.consuming(2, until_caught_up=False) as running:
        trial.wait_for_rows("history", 5, running)
        with write_lock(trial.db):
            trial.produce(events[5:])
            time.sleep(1)  # as above
            assert trial.count("history") == 5
            assert not running.ended
        trial.wait_for_rows("history", 20, running)
        result = running.stop()

    assert result.ended == []
    read: dict[int, list[int]] = {}
    for partition, offset in trial.rows("select partition, offset from history order by step"):
        read.setdefault(partition, []).append(offset)
    assert all(offsets == list(range(len(offsets))) for offsets in read.values())


@pytest.mark.parametrize("new", [False, True], ids=["an old file", "a new file"])
def test_a_lock_beyond_the_deadline_is_an_error_that_names_the_file(
    trial: Trial, db: Path, *, new: bool
) -> None:
    topic = trial.make_topic(1)
    if not new:
        trial.consume()

    with write_lock(db), pytest.raises(DatabaseBusy, match=str(db)) as busy:
        Store.open(db, topic.name, topic.topic_id, busy_timeout_s=0.3)

    assert "locked by another process" in str(busy.value)


def test_an_analysis_reads_while_another_program_writes(trial: Trial) -> None:
    trial.make_topic(1)
    trial.produce()
    trial.consume()

    with write_lock(trial.db):
        assert trial.findings()["applied"] == 20
