"""What a run and an analysis refuse before they touch anything, and what they say."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from brokers import free_port
from commands import Convoy
from transactions import Writer
from trial import Trial

from broker.errors import TopicMissing
from consumer.errors import OffsetGone
from lanes.lesson import lesson_events
from state.errors import DatabaseError, OtherSource

CONSUME = ("consume", "--until-caught-up", "--workers", 1)
ANSWER_WITHIN_S = 10.0


def change(db: Path, statement: str) -> None:
    """One statement by another program, folded into the file."""
    with closing(sqlite3.connect(db, isolation_level=None)) as file:
        file.execute(statement)
        file.execute("pragma wal_checkpoint(truncate)")


@pytest.fixture
def applied(trial: Trial) -> Trial:
    """Five events of the lesson, applied from one partition."""
    trial.make_topic(1)
    trial.produce(lesson_events()[:5])
    trial.consume()
    return trial


@pytest.mark.real_broker
@pytest.mark.parametrize("command", [CONSUME, ("analyze", "--check")], ids=["consume", "analyze"])
def test_a_topic_made_anew_under_its_old_name_is_refused(
    applied: Trial, convoy: Convoy, command: tuple[object, ...]
) -> None:
    applied.remake_topic(1)
    applied.produce(lesson_events()[:3])

    ran = convoy.run(*command, "--topic", applied.topic_name, "--db", applied.db)

    assert ran.code == 1
    assert f"topic {applied.topic_name} was deleted and made anew" in ran.stderr
    assert ran.stdout == ""
    assert applied.count("history") == 5


@pytest.mark.real_broker
def test_a_topic_made_anew_is_refused_even_with_more_records_than_before(applied: Trial) -> None:
    applied.remake_topic(1)
    applied.produce(lesson_events())

    with pytest.raises(OtherSource, match=applied.topic_name):
        applied.consume()
    assert applied.count("history") == 5


def test_an_offset_beyond_the_end_is_never_called_caught_up(applied: Trial) -> None:
    change(applied.db, "update progress set next_offset = 8")

    with pytest.raises(OffsetGone) as refused:
        applied.consume()

    error = refused.value
    assert (error.topic, error.partition, error.offset) == (applied.topic_name, 0, 8)
    found = applied.findings()
    assert found["check"]["verdict"] == "false"
    assert "partition 0" in found["check"]["reasons"][0]


@pytest.mark.real_broker
def test_records_deleted_before_they_were_applied_are_never_skipped_in_silence(applied: Trial) -> None:
    applied.produce(lesson_events()[5:10])
    applied.delete_records_before(7)

    with pytest.raises(OffsetGone) as refused:
        applied.consume()

    assert (refused.value.partition, refused.value.offset) == (0, 5)
    found = applied.findings()
    assert found["check"]["verdict"] == "false"
    assert "partition 0" in found["check"]["reasons"][0]


@pytest.mark.real_broker
def test_records_deleted_after_they_were_applied_are_no_loss(applied: Trial) -> None:
    applied.delete_records_before(4)

    assert applied.consume().totals.in_history == 0
    found = applied.findings()
    assert (found["records"], found["lost"]) == (1, [])
    assert found["check"]["verdict"] == "true"


@pytest.mark.real_broker
def test_markers_deleted_after_they_were_met_are_no_loss(trial: Trial) -> None:
    trial.make_topic(1)
    events = lesson_events()
    Writer(trial).write(events[:3], commit=True)
    trial.consume()
    trial.delete_records_before(4)

    assert trial.consume().totals.in_history == 0
    trial.produce(events[3:5])
    assert trial.consume().totals.in_history == 2
    assert trial.findings()["check"]["verdict"] == "true"


@pytest.mark.real_broker
@pytest.mark.parametrize("verb", ["consume", "analyze"])
def test_a_missing_topic_is_named(applied: Trial, convoy: Convoy, verb: str) -> None:
    ran = convoy.run(verb, "--topic", "no-such-topic", "--db", applied.db)

    assert ran.code == 1
    assert ran.stderr.startswith("Error: topic no-such-topic does not exist")
    assert applied.topics.find("no-such-topic") is None


@pytest.mark.real_broker
def test_consuming_a_missing_topic_makes_neither_topic_nor_file(trial: Trial) -> None:
    with pytest.raises(TopicMissing, match=trial.topic_name):
        trial.consume()

    assert not trial.db.exists()
    assert trial.topics.find(trial.topic_name) is None


def test_a_broker_that_does_not_answer_is_named_in_time(applied: Trial, convoy: Convoy) -> None:
    address = f"localhost:{free_port()}"
    commands = [("produce",), ("consume", "--db", applied.db), ("analyze", "--db", applied.db)]
    begun = time.monotonic()

    started = [convoy.start(*command, "--bootstrap-servers", address) for command in commands]
    results = [command.result() for command in started]

    assert time.monotonic() - begun < ANSWER_WITHIN_S
    for ran in results:
        assert ran.code == 1
        assert f"no Kafka broker answers at {address}" in ran.stderr
        assert ran.stdout == ""


def test_another_group_on_the_same_database_is_refused(applied: Trial) -> None:
    with pytest.raises(OtherSource, match="not another-group"):
        applied.consume(group="another-group")


def test_a_group_that_was_named_once_stays(trial: Trial, group: str) -> None:
    trial.make_topic(1)
    trial.produce()

    assert trial.consume(group=group).source.group_id == group
    assert trial.consume().source.group_id == group
    assert trial.consume(group=group).source.group_id == group


def test_a_database_of_another_topic_is_refused(applied: Trial, convoy: Convoy) -> None:
    other = f"{applied.topic_name}.other"
    applied.broker.create_topic(other, 1)

    for command in (CONSUME, ("analyze",)):
        ran = convoy.run(*command, "--topic", other, "--db", applied.db)

        assert ran.code == 1
        assert f"follows topic {applied.topic_name}, not {other}" in ran.stderr


def test_another_schema_version_is_refused(applied: Trial) -> None:
    change(applied.db, "pragma user_version = 99")

    for use in (applied.consume, applied.report):
        with pytest.raises(DatabaseError, match="schema version 99"):
            use()


@pytest.mark.parametrize("content", [b"tracking_no,line\n" * 200, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(trial: Trial, content: bytes) -> None:
    trial.make_topic(1)
    trial.db.write_bytes(content)

    for use in (trial.consume, trial.report):
        with pytest.raises(DatabaseError, match=trial.db.name):
            use()
    assert trial.db.read_bytes() == content


def test_another_program_s_database_is_refused_and_left_alone(trial: Trial) -> None:
    trial.make_topic(1)
    change(trial.db, "create table mine (a)")

    for use in (trial.consume, trial.report):
        with pytest.raises(DatabaseError, match="another program's database"):
            use()
    assert trial.rows("select name from sqlite_schema") == [("mine",)]


def test_a_read_only_database_is_refused_for_a_run_and_read_for_an_analysis(applied: Trial) -> None:
    applied.db.chmod(0o444)

    with pytest.raises(DatabaseError, match="is read-only"):
        applied.consume()
    assert applied.findings()["applied"] == 5


def test_a_folder_that_is_missing_is_named(trial: Trial, tmp_path: Path) -> None:
    trial.make_topic(1)
    trial.db = tmp_path / "nowhere" / "states.db"

    with pytest.raises(DatabaseError, match="nowhere"):
        trial.consume()


def test_an_analysis_needs_a_database(trial: Trial) -> None:
    trial.make_topic(1)

    with pytest.raises(DatabaseError, match="there is no database"):
        trial.report()
