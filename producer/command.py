"""The command `convoy produce`: a file of events, or the lesson's, to a topic."""

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import click

from broker.settings import connection
from broker.topics import Topics
from console.entry import EXIT_CODES_HELP, EXIT_INTERRUPTED
from console.options import (
    DEFAULT_BOOTSTRAP,
    broker_options,
    events_file_option,
    json_option,
    key_option,
    partitioner_option,
    topic_option,
    verbose_option,
)
from console.output import note, print_json, print_table, set_up_logging
from console.progress import progress_bar
from console.signals import stop_on_signals
from lanes.event import Event
from lanes.key import KeyChoice, look_alikes
from lanes.partitioner import Partitioner
from producer.produce import Production, produce_events
from producer.reading import events_or_lesson

DEFAULT_PARTITIONS = 5
ROWS_SHOWN = 20

HELP = f"""Write state events to a topic, keyed by tracking number, by line, or by nothing.

The topic is made where it is missing. Every delivery report is checked: the command ends well only when
the broker has acknowledged every event.

\b
Examples:
  convoy produce
      the lesson's 20 events, keyed by tracking number, on {DEFAULT_PARTITIONS} partitions
  convoy produce --key line --partitions 3 --topic by-line
      see three key lanes meet in one partition lane
  convoy produce --file events.csv --key none --seed 7
      your own events without a key, dealt over the partitions by a seed

\b
A file holds tracking_no, line, state, duration (ticks) and order (arrival order, each once), one event
a line, as JSONL or as CSV with a header. It is sent whole or not at all.

{EXIT_CODES_HELP}"""


@click.command(help=HELP)
@broker_options
@topic_option
@click.option(
    "--partitions",
    type=click.IntRange(1, 10_000),
    help=f"Partitions of a new topic (else {DEFAULT_PARTITIONS}); an existing one must have as many.",
)
@key_option
@partitioner_option
@events_file_option
@click.option(
    "--seed", type=int, help="Deals records without a key over partitions.  [default: drawn and printed]"
)
@click.option(
    "--selective", is_flag=True, help="Key only events that erase a state; history events have none."
)
@click.option("--one-record-batches", is_flag=True, help="For share groups, which hand out whole batches.")
@json_option
@verbose_option
def produce(
    bootstrap_servers: str | None,
    config_file: Path | None,
    topic: str,
    partitions: int | None,
    key: str,
    partitioner: str,
    path: Path | None,
    seed: int | None,
    selective: bool,
    one_record_batches: bool,
    as_json: bool,
    verbose: int,
) -> None:
    """Write events to a topic."""
    set_up_logging(verbose)
    choice = KeyChoice(key)
    events = events_or_lesson(path)
    to = connection(bootstrap_servers, config_file, DEFAULT_BOOTSTRAP)
    found = Topics(to).get_or_create(topic, partitions, DEFAULT_PARTITIONS)
    if seed is None:
        seed = random.randrange(2**32)
    if choice is KeyChoice.NONE or selective:
        which = "Records" if choice is KeyChoice.NONE else "History events"
        note(f"{which} carry no key; they are dealt over {found.partitions} partitions by seed {seed}.")
    warn_of_keys(events, choice)
    stopped = stop_on_signals()
    with progress_bar("events acknowledged", len(events)) as advance:
        production = produce_events(
            events,
            to,
            found,
            choice,
            partitioner=Partitioner(partitioner),
            selective=selective,
            seed=seed,
            one_record_batches=one_record_batches,
            stopped=stopped,
            on_progress=advance,
        )
    for moved, where in production.moved().items():
        note(f"Key {moved} is in partitions {where}: the topic's partitions changed while we wrote.")
    if as_json:
        print_json(as_object(production, seed))
    else:
        print_production(production)
    if production.interrupted:
        orders = ", ".join(map(str, production.unsent[:ROWS_SHOWN]))
        note(f"Interrupted: {production.delivered} of {production.total} events are in the topic.")
        note(f"Not acknowledged: {len(production.unsent)} events, orders {orders or 'none'} ...")
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


def warn_of_keys(events: Sequence[Event], key: KeyChoice) -> None:
    """Name keys that look alike, and shipments that a key by line does not keep together."""
    for group in look_alikes({value for event in events if (value := key.value_of(event)) is not None}):
        note(f"Different keys that look alike, each a lane of its own: {', '.join(map(repr, group))}")
    lines: dict[str, set[str]] = defaultdict(set)
    for event in events:
        lines[event.tracking_no].add(event.line)
    changed = {shipment: sorted(found) for shipment, found in lines.items() if len(found) > 1}
    for shipment, found in list(changed.items())[:ROWS_SHOWN]:
        risk = "; keyed by line, its events have no common lane" if key is KeyChoice.LINE else ""
        note(f"Shipment {shipment} changes its line ({', '.join(found)}){risk}.")
    if len(changed) > ROWS_SHOWN:
        note(f"... and {len(changed) - ROWS_SHOWN} more shipments change their line.")


def as_object(production: Production, seed: int) -> dict[str, object]:
    """The result as JSON: what `print_production` shows, with every key."""
    lanes = production.lanes
    keyed = production.key is not KeyChoice.NONE
    return {
        "topic": production.topic.name,
        "partitions": production.topic.partitions,
        "key": production.key.value,
        "partitioner": production.partitioner.value if keyed else None,
        "seed": seed if production.selective or not keyed else None,
        "delivered": production.delivered,
        "not_delivered": production.unsent,
        "records_in_partition": {str(p): n for p, n in sorted(production.records_in.items())},
        "partitions_of_key": lanes.partitions_of,
        "key_lanes": lanes.key_lanes if keyed else None,
        "partition_lanes": len(production.records_in),
        "collisions": {str(p): keys for p, keys in lanes.collisions.items()},
    }


def print_production(production: Production) -> None:
    """Key to partition with loads, or partition to records where there is no key; then the lanes."""
    topic = production.topic
    title = f"{production.delivered} events in topic {topic.name}, {topic.partitions} partitions"
    lanes = production.lanes
    if production.key is KeyChoice.NONE:
        rows = [(str(p), production.records_in[p]) for p in range(topic.partitions)]
        print_table(title, ["partition", "events"], rows)
        click.echo(
            "No key: no key lanes; the partitions that hold records keep their order, no shipment does."
        )
        return
    busiest = sorted(lanes.partitions_of, key=lambda key: (-production.ticks_of[key], key))
    print_table(
        title,
        [f"key ({production.key.value})", "partition", "events", "ticks"],
        [
            (
                key,
                " ".join(map(str, lanes.partitions_of[key])),
                production.records_of[key],
                production.ticks_of[key],
            )
            for key in busiest[:ROWS_SHOWN]
        ],
    )
    if len(busiest) > ROWS_SHOWN:
        click.echo(f"... and {len(busiest) - ROWS_SHOWN} more keys (--json lists all)")
    click.echo(f"Key lanes: {lanes.key_lanes}. Partition lanes: {lanes.partition_lanes}.")
    for partition, keys in list(lanes.collisions.items())[:ROWS_SHOWN]:
        shown = ", ".join(keys[:6]) + (f" and {len(keys) - 6} more" if len(keys) > 6 else "")
        click.echo(f"Collision in partition {partition}: {shown} wait for each other.")
