"""Produce, consume, analyze, as a user runs them: results on stdout, the rest on stderr, exit codes."""

import sys
from pathlib import Path

import pytest
from commands import Convoy
from marks import dispatches, keys
from streams import state_event
from trial import Raw, Trial

from lanes.dispatch import Dispatch
from lanes.event import encode
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.partitioner import Partitioner


@keys
@dispatches
def test_the_lesson_from_file_to_verdict(
    trial: Trial, convoy: Convoy, key: KeyChoice, dispatch: Dispatch
) -> None:
    shared = dispatch is Dispatch.SHARE
    partitions = 1 if shared else 5
    trial.make_topic(partitions)
    topic = ("--topic", trial.topic_name)

    produced = convoy.run(
        *("produce", *topic, "--key", key.value, "--partitions", partitions, "--json"),
        *(["--one-record-batches"] if shared else []),
    )
    consumed = convoy.run(
        *("consume", *topic, "--db", "states.db", "--dispatch", dispatch.value, "--until-caught-up"), "--json"
    )
    analyzed = convoy.run("analyze", "--db", "states.db", "--check", "--json")

    assert [ran.code for ran in (produced, consumed, analyzed)] == [0, 0, 0], analyzed.stdout
    assert produced.json["delivered"] == 20
    assert produced.json["key"] == key.value
    assert (consumed.json["applied"], consumed.json["caught_up"]) == (20, True)
    found = analyzed.json
    assert (found["topic"], found["records"], found["applied"]) == (trial.topic_name, 20, 20)
    assert found["check"]["verdict"] == "true"
    assert found["model"]["dispatch"] == dispatch.value
    assert found["backward_writes"] == consumed.json["backward_writes"]
    if key is not KeyChoice.NONE and not shared:
        assert found["backward_writes"] == 0
    for ran in (produced, consumed, analyzed):
        assert "Traceback" not in ran.stderr
    assert ("dealt over" in produced.stderr) is (key is KeyChoice.NONE)


def test_tables_for_people(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(3)
    topic = ("--topic", trial.topic_name)

    produced = convoy.run("produce", *topic, "--key", "line")
    consumed = convoy.run("consume", *topic, "--until-caught-up")
    analyzed = convoy.run("analyze")

    assert [ran.code for ran in (produced, consumed, analyzed)] == [0, 0, 0]
    assert "Key lanes: 3. Partition lanes: 1." in produced.stdout
    assert "L1, L2, L3 wait for each other" in produced.stdout
    assert "caught up" in consumed.stdout
    assert "Invariants hold: true" in analyzed.stdout
    assert analyzed.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["consume", "--gate", "line"],
        ["consume", "--workers", "0"],
        ["consume", "--tick-ms", "1"],
        ["consume", "--ties", "7"],
        ["produce", "--key", "colour"],
        ["produce", "--partitions", "0"],
        ["analyze", "--no-such-option"],
        ["no-such-command"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_and_touches_nothing(convoy: Convoy, arguments: list[str]) -> None:
    ran = convoy.run(*arguments)

    assert (ran.code, ran.stdout) == (2, "")
    assert "Usage: " in ran.stderr
    assert list(convoy.folder.iterdir()) == []


def test_dead_letters_are_exit_code_3(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(1)
    trial.send([Raw(b"?")])

    ran = convoy.run("consume", "--topic", trial.topic_name, "--until-caught-up", "--json")

    assert (ran.code, ran.json["dead_letters"]) == (3, 1)
    assert "1 records are no" in ran.stderr


def test_a_broken_invariant_is_exit_code_3_only_when_asked_to_check(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(15)
    for version, partitioner in ((2, Partitioner.MURMUR2), (1, Partitioner.CRC32)):
        trial.produce([state_event(version, shipment="TT0124", version=version)], partitioner=partitioner)
        trial.consume()

    checked = convoy.run("analyze", "--db", trial.db, "--check", "--json")
    unchecked = convoy.run("analyze", "--db", trial.db)

    assert checked.code == 3
    assert checked.json["check"]["verdict"] == "false"
    assert "backward writes" in checked.json["check"]["reasons"][0]
    assert unchecked.code == 0
    assert "Invariants hold: false" in unchecked.stdout


def test_what_is_not_yet_applied_is_exit_code_4(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(1)
    trial.produce(lesson_events()[:5])
    trial.consume()
    trial.produce(lesson_events()[5:])

    ran = convoy.run("analyze", "--db", trial.db, "--check", "--json")

    assert ran.code == 4
    assert ran.json["not_yet_applied"] == 15
    assert ran.json["check"]["verdict"] == "unknown"


def test_an_error_is_exit_code_1_with_what_to_do_next(convoy: Convoy) -> None:
    ran = convoy.run("analyze", "--db", "nowhere.db")

    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("Error: there is no database nowhere.db\n")
    assert "convoy consume" in ran.stderr


def test_each_command_runs_by_its_own_module_too(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(2)
    topic = ("--topic", trial.topic_name)
    commands = [
        ("producer", *topic, "--json"),
        ("consumer", *topic, "--until-caught-up", "--json"),
        ("analysis", "--check", "--json"),
    ]

    for module, *arguments in commands:
        ran = convoy.run_program(sys.executable, "-m", module, *arguments)
        assert ran.code == 0, ran.stderr
        assert ran.json["topic"] == trial.topic_name


def test_the_installed_script_is_the_same_command(convoy: Convoy) -> None:
    script = Path(sys.executable).with_name("convoy")

    assert convoy.run_program(script, "--help").stdout == convoy.run("--help").stdout


def test_a_reader_that_has_read_enough_is_no_error(trial: Trial, convoy: Convoy) -> None:
    trial.make_topic(2)
    trial.produce()
    trial.consume()
    convoy_analyze = f"{sys.executable} -m convoy analyze --json --db {trial.db}"

    ran = convoy.run_program("bash", "-c", f"set -o pipefail; {convoy_analyze} | head -n 1")

    assert (ran.code, ran.stdout) == (0, "{\n")
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr


def test_events_from_a_csv_file_as_a_spreadsheet_saves_it(
    trial: Trial, convoy: Convoy, tmp_path: Path
) -> None:
    trial.make_topic(2)
    rows = ["tracking_no,line,state,duration,order", "007,L1,accepted,1,0", "007,L1,delivered,2,1"]
    path = tmp_path / "events.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode())

    assert convoy.run("produce", "--topic", trial.topic_name, "--file", path).code == 0

    assert {record.key for record in trial.records()} == {b"007"}
    assert [record.value for record in trial.records()] == [
        encode(state_event(order, shipment="007", version=version, duration=order + 1))
        for order, version in ((0, 1), (1, 4))
    ]


def test_the_version_is_told(convoy: Convoy) -> None:
    told = convoy.run("--version")

    assert told.code == 0
    assert told.stdout.startswith("convoy")
