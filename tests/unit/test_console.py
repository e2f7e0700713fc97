"""How every command speaks: errors with place and hint, exit codes, tables, notes, and lists of numbers."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import click
import pytest

from console.entry import message_of, position, run
from console.options import NumberList
from console.output import note, print_json, print_table, set_up_logging
from console.progress import progress_bar
from console.signals import stop_on_signals
from lanes.errors import ConvoyError


@pytest.fixture(autouse=True)
def no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process take their arguments from there."""
    monkeypatch.setattr("sys.argv", ["convoy"])


def exit_code(body: Callable[[], object]) -> object:
    """The exit code of a command that does this."""

    @click.command()
    def command() -> object:
        return body()

    with pytest.raises(SystemExit) as ended:
        run(command, "convoy")
    return ended.value.code


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def test_an_error_says_what_happened_where_in_kafka_and_what_to_do() -> None:
    error = ConvoyError(
        "it broke", hint="Mend it.", topic="shipments", partition=2, offset=17, key=b"TR-4821"
    )
    assert message_of(error) == "Error: it broke\n  at shipments[2]@17 TR-4821\n  Mend it."


def test_what_is_not_known_is_left_out_of_an_error() -> None:
    assert message_of(ConvoyError("it broke")) == "Error: it broke"
    assert message_of(ConvoyError("it broke", hint="Mend it.")) == "Error: it broke\n  Mend it."
    assert message_of(ConvoyError("it broke", topic="t")) == "Error: it broke"


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (ConvoyError("", topic="t", partition=0), "t[0]"),
        (ConvoyError("", topic="t", partition=0, offset=0), "t[0]@0"),
        (ConvoyError("", topic="t", partition=3, offset=9, key=b"\xff\x00"), "t[3]@9 hex:ff00"),
        (ConvoyError("", topic="t", partition=3, offset=9, key=b""), "t[3]@9 ''"),
        (ConvoyError("", partition=3, offset=9), ""),
    ],
)
def test_a_place_is_topic_partition_offset_and_key_as_far_as_known(error: ConvoyError, place: str) -> None:
    assert position(error) == place


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (lambda: None, 0),
        (lambda: 3, 3),
        (raising(click.exceptions.Exit(3)), 3),
        (raising(click.exceptions.Exit(4)), 4),
        (raising(ConvoyError("it broke")), 1),
        (raising(click.ClickException("it broke")), 1),
        (raising(click.UsageError("not so")), 2),
        (raising(click.BadParameter("not so", param_hint="--key")), 2),
        (raising(KeyboardInterrupt()), 130),
        (raising(click.Abort()), 130),
    ],
    ids=[
        "fine",
        "its own",
        "anomaly",
        "unknown",
        "error",
        "click's error",
        "usage",
        "parameter",
        "^C",
        "abort",
    ],
)
def test_a_command_ends_with_the_exit_code_of_what_happened(body: Callable[[], object], code: int) -> None:
    assert exit_code(body) == code


def test_an_error_is_text_on_stderr_and_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code(raising(ConvoyError("it broke", hint="Mend it.", topic="t", partition=1)))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "Error: it broke\n  at t[1]\n  Mend it.\n"


def test_an_interrupted_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code(raising(KeyboardInterrupt()))
    assert capsys.readouterr().err.strip() == "Interrupted."


def test_wrong_usage_shows_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code(raising(click.UsageError("not so")))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Usage: convoy")
    assert "Error: not so" in said.err


def test_a_fault_of_the_program_is_not_dressed_up_as_an_error_of_the_user() -> None:
    @click.command()
    def command() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(command, "convoy")


TABLE_WITHOUT_END = """
import click
from console.entry import run
from console.output import print_table, print_json

@click.command()
def command():
    for _ in range(1000):
        {body}

run(command, "convoy")
"""


@pytest.mark.parametrize("body", ["print_table('t', ['a'], [['x' * 100]] * 50)", "print_json(['x' * 5000])"])
def test_a_reader_that_has_what_it_wanted_ends_the_command_well_and_in_silence(body: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TABLE_WITHOUT_END.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(30), said) == (0, "")


@pytest.mark.parametrize(
    "text", ["[bold]TR-1[/bold]", "[/x]", "[red]", ":smile:", "a\\[b]", "[link=http://x]y[/link]"]
)
def test_markup_in_a_cell_or_a_title_is_printed_as_it_is(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    print_table(text, ["key", "value"], [[text, "plain"], ["plain", text]])
    assert capsys.readouterr().out.count(text) == 3


def test_numbers_stand_to_the_right_and_text_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t", ["name", "ticks", "ratio", "word"], [["A", 8, "1.625", "x"], ["BB", "-", "10.5", "7y"]])
    lines = [line.replace("┃", "│") for line in capsys.readouterr().out.splitlines()]
    assert "│ A    │     8 │ 1.625 │ x    │" in lines
    assert "│ BB   │     - │  10.5 │ 7y   │" in lines


def test_a_first_column_of_numbers_stands_to_the_left_because_it_names_the_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table("t", ["partition", "events"], [["3", 7]])
    assert "│ 3         │      7 │" in capsys.readouterr().out


def test_a_long_cell_is_folded_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t", ["key"], [["k" * 400]])
    assert capsys.readouterr().out.count("k") == 400 + len("k")


def test_a_table_without_rows_is_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t", ["key", "value"], [])
    assert "key" in capsys.readouterr().out


def test_json_is_one_document_on_stdout_with_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"key": "Zürich", "partitions": [1, 2]})
    said = capsys.readouterr()
    assert json.loads(said.out) == {"key": "Zürich", "partitions": [1, 2]}
    assert "Zürich" in said.out
    assert said.err == ""


def test_a_note_is_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    note("worth knowing")
    assert capsys.readouterr() == ("", "worth knowing\n")


def test_progress_is_silent_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("events", None) as advance:
        advance(1, 5)
        advance(5)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def logging_put_back() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


@pytest.mark.usefixtures("logging_put_back")
@pytest.mark.parametrize(
    ("verbose", "shown"),
    [
        (0, ["warning"]),
        (1, ["warning", "info"]),
        (2, ["warning", "info", "debug"]),
        (7, ["warning", "info", "debug"]),
    ],
)
def test_logs_go_to_stderr_as_much_as_was_asked_for(
    capsys: pytest.CaptureFixture[str], verbose: int, shown: list[str]
) -> None:
    set_up_logging(verbose)
    log = logging.getLogger("consumer.membership")
    log.warning("said at warning [bold]")
    log.info("said at info")
    log.debug("said at debug")
    said = capsys.readouterr()
    assert said.out == ""
    assert [level for level in ("warning", "info", "debug") if f"said at {level}" in said.err] == shown
    assert "consumer.membership: said at warning [bold]" in said.err


@pytest.fixture
def signals_put_back() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals_put_back")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_question_that_a_loop_can_ask(number: signal.Signals) -> None:
    stopped = stop_on_signals()
    assert not stopped()
    os.kill(os.getpid(), number)
    assert stopped()
    assert not stop_on_signals()()


@pytest.mark.parametrize(
    ("text", "numbers"), [("3", [3]), ("3,6,12", [3, 6, 12]), ("12,3,3", [12, 3, 3]), (" 1, 2 ", [1, 2])]
)
def test_a_list_of_numbers_is_taken_in_the_order_given(text: str, numbers: list[int]) -> None:
    assert NumberList().convert(text, None, None) == numbers
    assert NumberList().convert(numbers, None, None) == numbers


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not a list of whole numbers such as 3,6,12"),
        ("3,,6", "'3,,6' is not a list of whole numbers such as 3,6,12"),
        ("3,x", "'3,x' is not a list of whole numbers such as 3,6,12"),
        ("1.5", "'1.5' is not a list of whole numbers such as 3,6,12"),
        ("3,0", "'3,0' holds a number below 1"),
        ("-4", "'-4' holds a number below 1"),
    ],
)
def test_what_is_no_list_of_numbers_is_refused(text: str, reason: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        NumberList().convert(text, None, None)
    assert refused.value.message == reason
