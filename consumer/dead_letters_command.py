"""The commands `convoy dead-letters list|show|retry`: what was not applied, and a second try."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from console.entry import EXIT_CODES_HELP
from console.options import db_option, json_option
from console.output import print_json, print_table
from lanes.errors import BadEvent
from lanes.key import key_text
from state.applying import Applier
from state.reading import Reading
from state.records import DeadLetter
from state.store import Store

HELP = f"""Records that were not applied: look at them, and try them again.

\b
Examples:
  convoy dead-letters list
  convoy dead-letters show 2 17
      the record of partition 2, offset 17, its bytes on stdout
  convoy dead-letters retry 2 17 --value mended.json
      apply it with a mended value, and what is parked behind it

{EXIT_CODES_HELP}"""

VALUE_SHOWN = 60


@click.group(name="dead-letters", help=HELP)
def dead_letters() -> None:
    """The group of its three commands."""


@dead_letters.command(name="list")
@db_option
@click.option("--all", "show_all", is_flag=True, help="Those that a retry has applied as well.")
@json_option
def list_letters(db: Path, show_all: bool, as_json: bool) -> None:
    """List dead letters by partition and offset.

    \b
    Example:
      convoy dead-letters list --db states.db --json
    """
    with Reading(db) as reading:
        topic = reading.source.topic
        letters = [each for each in reading.dead_letters() if show_all or each.resolved_us is None]
    if as_json:
        print_json([as_object(letter) for letter in letters])
        return
    print_table(
        f"{len(letters)} dead letters of topic {topic}",
        ["partition", "offset", "key", "reason", "sent on", "applied", "value"],
        [
            (
                str(letter.partition),
                letter.offset,
                "none" if letter.key is None else key_text(letter.key),
                letter.reason,
                _clock(letter.sent_us),
                _clock(letter.resolved_us),
                _shown(letter.value),
            )
            for letter in letters
        ],
    )


@dead_letters.command()
@db_option
@click.argument("partition", type=click.IntRange(0))
@click.argument("offset", type=click.IntRange(0))
@json_option
def show(db: Path, partition: int, offset: int, as_json: bool) -> None:
    """Write a dead letter's value to stdout, byte for byte, and what is known of it to stderr.

    \b
    Example:
      convoy dead-letters show 2 17 > record.bin
    """
    with Reading(db) as reading:
        letter = reading.dead_letter(partition, offset)
    if as_json:
        print_json(as_object(letter))
        return
    key = "none" if letter.key is None else key_text(letter.key)
    click.echo(f"key {key}; {letter.reason}; kept {_clock(letter.kept_us)}", err=True)
    sys.stdout.buffer.write(letter.value or b"")
    sys.stdout.buffer.flush()


@dead_letters.command()
@db_option
@click.argument("partition", type=click.IntRange(0))
@click.argument("offset", type=click.IntRange(0))
@click.option(
    "--value",
    "value_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the mended value.  [default: the value as it was kept]",
)
@json_option
def retry(db: Path, partition: int, offset: int, value_file: Path | None, as_json: bool) -> None:
    """Apply a dead letter, and what is parked behind it, in offset order, in one transaction.

    A retry never writes backwards: under park-key the later records of its key have waited, and under skip
    an event older than its row goes to the history and is skipped.

    \b
    Example:
      convoy dead-letters retry 2 17 --value mended.json
    """
    with Reading(db) as reading:
        letter = reading.dead_letter(partition, offset)
        checked = any(run.version_check for run in reading.runs() if run.run == letter.run)
        source = reading.source
    store = Store.open(db, source.topic, source.topic_id, source.group_id)
    try:
        applier = Applier(store, letter.run, letter.worker, version_check=checked)
        tried, skipped = applier.retry(partition, offset, value_file.read_bytes() if value_file else None)
    except BadEvent as error:
        raise BadEvent(
            f"still no event: {error}",
            hint="Name a file with its mended value by --value.",
            topic=source.topic,
            partition=partition,
            offset=offset,
        ) from error
    finally:
        store.close()
    if as_json:
        print_json({"partition": partition, "tried": tried, "skipped": skipped})
        return
    click.echo(f"Tried again in partition {partition}: offsets {', '.join(map(str, tried))}.")
    if skipped:
        late = ", ".join(map(str, skipped))
        click.echo(f"Older than their rows, so in the history only: offsets {late}.")


def as_object(letter: DeadLetter) -> dict[str, object]:
    """A dead letter as JSON: bytes as hex, and as text where they are UTF-8."""
    fields: dict[str, object] = asdict(letter)
    for name, content in (("key", letter.key), ("value", letter.value)):
        del fields[name]
        fields[f"{name}_hex"] = None if content is None else content.hex()
        fields[f"{name}_text"] = _text(content)
    fields["parked"] = bool(letter.parked)
    return fields


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _shown(value: bytes | None) -> str:
    if value is None:
        return "null"
    text = _text(value[:VALUE_SHOWN])
    shown = f"hex:{value[: VALUE_SHOWN // 2].hex()}" if text is None else repr(text)[1:-1]
    return shown if len(value) <= VALUE_SHOWN else f"{shown}... ({len(value)} bytes)"


def _clock(moment_us: int | None) -> str:
    if moment_us is None:
        return "-"
    return datetime.fromtimestamp(moment_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
