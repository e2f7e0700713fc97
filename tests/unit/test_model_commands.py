"""`convoy model`, `cost` and `where`: results on stdout, notes on stderr, and exit code 2 for wrong usage."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from streams import state_event

from convoy.cost import cost, share_of
from convoy.model import model, names
from convoy.where import key_bytes, same_looking, where
from lanes.errors import ConvoyError
from lanes.event import encode

ARRANGEMENTS = ["free", "convoy", "convoy-line", "version-stamp"]


def run(command: click.Command, *arguments: str) -> Result:
    result = CliRunner().invoke(command, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def rows(result: Result) -> list[list[str]]:
    """The cells of every table on stdout, headings included."""
    marked = [line.replace("┃", "│") for line in result.stdout.splitlines()]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in marked if line.startswith("│")]


def row(result: Result, label: str) -> list[str]:
    """The cells behind the first row of that label."""
    return next(cells[1:] for cells in rows(result) if cells[0] == label)


def events_file(folder: Path) -> Path:
    """One shipment whose two events need two workers two ticks each way."""
    path = folder / "events.jsonl"
    events = [state_event(0, duration=2), state_event(1, version=2, duration=2)]
    path.write_bytes(b"\n".join(encode(event) for event in events))
    return path


@pytest.mark.parametrize("command", [model, cost, where], ids=lambda command: str(command.name))
def test_help_stands_with_examples_that_start_with_the_commands_name(command: click.Command) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"\n    convoy {command.name}" in result.stdout
    assert "Examples:\n" in result.stdout


@pytest.mark.parametrize(
    ("label", "cells"),
    [
        ("", ARRANGEMENTS),
        ("backward write", ["5", "0", "0", "5"]),
        ("wrong final state", ["1 (TR-4821)", "0", "0", "0"]),
        ("over ties of a tick", ["1 to 4", "-", "-", "-"]),
        ("skipped step", ["0", "0", "0", "5"]),
        ("tick", ["8", "13", "19", "8"]),
        ("ratio to free", ["1.000", "1.625", "2.375", "1.000"]),
        ("effective concurrency", ["4.00", "2.46", "1.68", "4.00"]),
        ("key lanes", ["0", "5", "3", "0"]),
        ("busiest key lane, ticks", ["0", "8", "14", "0"]),
    ],
)
def test_model_prints_the_lessons_table(label: str, cells: list[str]) -> None:
    assert row(run(model), label) == cells


def test_model_prints_the_sweep_over_workers() -> None:
    result = run(model)
    assert row(result, "workers") == ["1", "2", "4", "8"]
    sweep = [cells for cells in rows(result) if len(cells) == 5 and cells[1] == "32"]
    assert sweep == [
        ["free", "32", "16", "8", "5"],
        ["convoy", "32", "17", "13", "9"],
        ["convoy-line", "32", "23", "19", "14"],
    ]


def test_model_prints_what_ownership_gives_beside_it() -> None:
    result = run(model)
    ownership = rows(result)[rows(result).index(["key", "tracking number", "line"]) :]
    assert ["tick", "11", "19"] in ownership
    assert ["ratio to free", "1.375", "2.375"] in ownership
    assert ["key lanes", "5", "3"] in ownership
    assert ["partition lanes", "5", "2"] in ownership
    assert ["busiest partition lane, ticks", "8", "19"] in ownership


def test_model_names_the_keys_that_meet_in_a_partition() -> None:
    result = run(model, "--partitions", "3")
    assert row(result, "0") == ["TR-4821", "L1, L2, L3 (collision)"]
    assert row(result, "2") == ["TR-2214, TR-5533 (collision)", "-"]
    assert row(result, "partitions with a collision") == ["2", "1"]


def test_model_prints_one_json_object_with_both_models() -> None:
    result = run(model, "--json")
    printed = json.loads(result.stdout)
    assert list(printed) == [
        "workers",
        "partitions",
        "partitioner",
        "lesson_model",
        "kafka_model",
        "ticks_by_workers",
    ]
    assert (printed["workers"], printed["partitions"], printed["partitioner"]) == (4, 5, "murmur2_random")
    assert printed["lesson_model"]["free"] == {
        "backward_writes": 5,
        "skipped": 0,
        "wrong": ["TR-4821"],
        "wrong_final_state": 1,
        "tick": 8,
        "lanes": 0,
        "busiest_lane": 0,
        "workload": 32,
        "wrong_final_state_over_ties": [1, 4],
    }
    assert printed["kafka_model"]["line"] == {
        "backward_writes": 0,
        "skipped": 0,
        "wrong": [],
        "wrong_final_state": 0,
        "tick": 19,
        "keys": 3,
        "lanes": 2,
        "busiest_lane": 19,
        "partition_of": {"L1": 4, "L2": 1, "L3": 1},
    }
    assert printed["ticks_by_workers"]["convoy"] == {"1": 32, "2": 17, "4": 13, "8": 9}


def test_models_options_reach_the_models() -> None:
    result = run(model, "--workers", "8", "--partitions", "8", "--partitioner", "consistent_random", "--json")
    printed = json.loads(result.stdout)
    assert (printed["workers"], printed["partitions"], printed["partitioner"]) == (8, 8, "consistent_random")
    assert [printed["lesson_model"][name]["tick"] for name in ARRANGEMENTS] == [5, 9, 14, 5]
    assert printed["kafka_model"]["line"]["partition_of"] != {"L1": 7, "L2": 0, "L3": 4}


def test_model_reads_the_users_own_events(tmp_path: Path) -> None:
    printed = json.loads(run(model, "--file", str(events_file(tmp_path)), "--workers", "2", "--json").stdout)
    assert printed["lesson_model"]["free"]["workload"] == 4
    assert [printed["lesson_model"][name]["tick"] for name in ARRANGEMENTS] == [2, 4, 4, 2]


@pytest.mark.parametrize("command", [model, cost], ids=lambda command: str(command.name))
def test_a_broken_file_is_an_error_that_names_the_line(command: click.Command, tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text("{not json\n")
    with pytest.raises(ConvoyError, match="line 1"):
        run(command, "--file", str(path))


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (model, ["--workers", "0"]),
        (model, ["--workers", "2147483648"]),
        (model, ["--partitions", "0"]),
        (model, ["--partitions", "2147483647"]),
        (model, ["--partitioner", "murmur3"]),
        (model, ["--file", "no-such-file.jsonl"]),
        (cost, ["--rate", "0"]),
        (cost, ["--rate", "-1"]),
        (cost, ["--rate", "nan"]),
        (cost, ["--rate", "inf"]),
        (cost, ["--share", "5/4"]),
        (cost, ["--share", "-0.1"]),
        (cost, ["--share", "1/0"]),
        (cost, ["--share", "nan"]),
        (cost, ["--share", "half"]),
        (cost, ["--share", "1/2/3"]),
        (cost, ["--share", "9" * 400 + "/1"]),
        (cost, ["--ceiling-workers", "0"]),
        (where, []),
        (where, ["--hex", "4g"]),
        (where, ["--hex", "abc"]),
        (where, ["k", "--partitions", "0"]),
        (where, ["k", "--partitions", "3,"]),
        (where, ["k", "--partitions", "2147483648"]),
        (where, ["\ud800"]),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_so_on_stderr_only(
    command: click.Command, arguments: list[str]
) -> None:
    result = run(command, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_cost_prints_the_lessons_costs() -> None:
    result = run(cost)
    assert row(result, "4/7") == ["55.55", "41.67", "x1.357", "x1.786", "x1.625", "x2.375"]
    assert row(result, "5/7") == ["69.44", "27.78", "x1.446", "x1.982", "x1.625", "x2.375"]
    assert "97.22 events/s" in result.stdout


def test_cost_prints_the_ceilings_beside_the_busiest_lane() -> None:
    result = run(cost)
    assert row(result, "convoy") == ["9", "8"]
    assert row(result, "convoy-line") == ["14", "14"]
    assert row(result, "free") == ["5", "-"]


def test_cost_prints_json() -> None:
    printed = json.loads(
        run(cost, "--json", "--share", "1/2", "--rate", "10", "--ceiling-workers", "2").stdout
    )
    assert printed == {
        "workers": 4,
        "rate": 10.0,
        "costs": [
            {
                "share": 0.5,
                "constrained_rate": 5.0,
                "unconstrained_rate": 5.0,
                "selective": 1.3125,
                "selective_line": 1.6875,
                "everything": 1.625,
                "everything_line": 2.375,
            }
        ],
        "ceilings": {
            "workers": 2,
            "convoy": {"tick": 17, "busiest_lane": 8},
            "convoy-line": {"tick": 23, "busiest_lane": 14},
            "free": {"tick": 16, "busiest_lane": 0},
        },
    }


def test_costs_options_reach_the_figures(tmp_path: Path) -> None:
    result = run(cost, "--file", str(events_file(tmp_path)), "--workers", "2", "--share", "1", "--rate", "10")
    assert row(result, "1") == ["10.00", "0.00", "x2.000", "x2.000", "x2.000", "x2.000"]
    assert row(result, "convoy") == ["4", "4"]


@pytest.mark.parametrize(
    ("text", "value"), [("4/7", 4 / 7), ("0.25", 0.25), ("0", 0.0), ("1", 1.0), ("1/1", 1.0), ("0/5", 0.0)]
)
def test_a_share_is_a_fraction_or_a_decimal(text: str, value: float) -> None:
    assert share_of(text) == (text, value)


def test_where_prints_a_row_for_each_key_and_number_of_partitions() -> None:
    result = run(where, "TT0124", "--partitions", "15,1")
    assert rows(result)[1:] == [
        ["TT0124", "545430313234", "15", "10", "9"],
        ["TT0124", "545430313234", "1", "0", "0"],
    ]


def test_where_tries_3_6_and_12_partitions_unless_told() -> None:
    assert [cells[2] for cells in rows(run(where, "TR-4821"))[1:]] == ["3", "6", "12"]


def test_a_number_of_partitions_given_twice_is_tried_once() -> None:
    assert [cells[2] for cells in rows(run(where, "TR-4821", "--partitions", "6,3,6"))[1:]] == ["6", "3"]


def test_where_puts_the_three_lines_into_one_partition_of_3_two_of_6_and_three_of_8() -> None:
    printed = json.loads(run(where, "L1", "L2", "L3", "--partitions", "3,6,8", "--json").stdout)
    partitions = [[found["partition"][count]["murmur2"] for found in printed] for count in ("3", "6", "8")]
    assert partitions == [[0, 0, 0], [3, 0, 0], [7, 0, 4]]


def test_where_prints_json_with_the_bytes_of_each_key_in_the_order_given() -> None:
    printed = json.loads(run(where, "wu", "100:48069", "--partitions", "10,12", "--json").stdout)
    assert printed[0]["key_hex"] == "7775"
    assert printed[0]["partition"]["10"] == {"murmur2": 0, "crc32": 1}
    assert printed[1]["key_hex"] == "3130303a3438303639"
    assert printed[1]["partition"]["12"] == {"murmur2": 9, "crc32": 6}


def test_an_empty_key_goes_to_a_random_partition_under_crc32() -> None:
    result = run(where, "", "--partitions", "4")
    assert row(result, "''") == ["", "4", "1", "random"]
    printed = json.loads(run(where, "", "--partitions", "4", "--json").stdout)
    assert printed == [{"key_hex": "", "partition": {"4": {"murmur2": 1, "crc32": None}}}]


def test_hex_takes_keys_that_are_not_text() -> None:
    printed = json.loads(
        run(where, "--hex", "0000002a", "000000000000002A", "--partitions", "3", "--json").stdout
    )
    assert [(found["key_hex"], found["partition"]["3"]["murmur2"]) for found in printed] == [
        ("0000002a", 0),
        ("000000000000002a", 1),
    ]


def test_where_never_trims_a_key() -> None:
    printed = json.loads(run(where, "TR-4821", "TR-4821 ", "tr-4821", "--partitions", "4,3", "--json").stdout)
    assert [(f["partition"]["4"]["murmur2"], f["partition"]["3"]["murmur2"]) for f in printed] == [
        (3, 0),
        (3, 2),
        (0, 0),
    ]


def test_look_alike_keys_are_named_on_stderr_with_their_bytes() -> None:
    result = run(where, "TR-4821", "TR-4821 ", "TR-9007", "--partitions", "1", "--json")
    assert result.stderr.splitlines() == [
        "Look-alike keys: TR-4821 (hex 54522d34383231), 'TR-4821 ' (hex 54522d3438323120). "
        "Different bytes are different lanes."
    ]


def test_one_word_in_three_encodings_is_one_group_of_look_alikes() -> None:
    composed, decomposed, latin_1 = "Z\u00fcrich".encode(), "Zu\u0308rich".encode(), b"Z\xfcrich"
    assert same_looking([composed, decomposed, latin_1, b"other"]) == [[decomposed, composed, latin_1]]
    assert same_looking([composed, latin_1]) == [[composed, latin_1]]


def test_keys_that_two_kinds_of_producer_split_are_named_in_one_line_of_stderr() -> None:
    result = run(where, "TT0124", "TR-4821", "--partitions", "15")
    assert len(result.stderr.splitlines()) == 1
    assert "TT0124" in result.stderr
    assert "Java" in result.stderr
    assert "librdkafka" in result.stderr


def test_keys_that_both_rules_agree_on_need_no_note() -> None:
    assert run(where, "TR-4821", "", "--partitions", "1").stderr == ""


def test_many_differing_keys_are_counted_and_not_all_named() -> None:
    keys = [f"TR-{number}" for number in range(40)]
    lines = run(where, *keys, "--partitions", "1000").stderr.splitlines()
    assert len(lines) == 1
    assert "and 35 more" in lines[0]


def test_a_key_is_the_utf_8_bytes_of_the_argument_or_the_raw_bytes_behind_it() -> None:
    assert key_bytes("Zürich", is_hex=False) == b"Z\xc3\xbcrich"
    assert key_bytes("Z\udcfcrich", is_hex=False) == b"Z\xfcrich"
    assert key_bytes(" 5a ", is_hex=False) == b" 5a "


def test_a_process_takes_the_raw_bytes_of_its_arguments() -> None:
    program = "from convoy.where import where; where()"
    arguments: list[str | bytes] = [
        sys.executable,
        "-c",
        program,
        b"Z\xfcrich",
        "--partitions",
        "4,3",
        "--json",
    ]
    done = subprocess.run(arguments, capture_output=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert found[0]["key_hex"] == "5afc72696368"
    assert [found[0]["partition"][count]["murmur2"] for count in ("4", "3")] == [2, 0]


def test_a_long_list_of_names_is_cut_with_the_number_of_the_rest() -> None:
    assert names(["A", "B"], most=2) == "A, B"
    assert names(["A", "B", "C", "D"], most=2) == "A, B and 2 more"
    assert names([]) == "-"
    assert names(["A "]) == "'A '"


@pytest.mark.parametrize("key", ["[/x]", "[bold]x", ":smile:"])
def test_a_key_is_printed_as_it_is_whatever_it_would_mean_as_markup(key: str) -> None:
    assert row(run(where, key, "--partitions", "3"), key)[0] == key.encode().hex()
