"""The command `convoy consume`: workers of one consumer group apply a topic to a database."""

import random
from dataclasses import asdict
from pathlib import Path

import click

from broker.settings import connection
from console.entry import EXIT_ANOMALY, EXIT_CODES_HELP, EXIT_INTERRUPTED
from console.options import (
    DEFAULT_BOOTSTRAP,
    broker_options,
    db_option,
    json_option,
    topic_option,
    verbose_option,
)
from console.output import note, print_json, print_table, set_up_logging
from console.progress import progress_bar
from console.signals import stop_on_signals
from consumer.plan import RunPlan
from consumer.run import RunResult, consume_topic
from lanes.bad_records import OnBadRecord
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice

HELP = f"""Apply a topic's state events to a database, each once and in its partition's order.

N worker processes form one consumer group; each owns some of the partitions. State, history and the
next offset of a partition change in one transaction, so a worker may die at any point: the next one goes
on where the database is. Ctrl-C or SIGTERM stops after the transaction at hand.

\b
Examples:
  convoy consume --until-caught-up
      4 workers apply what is in the topic, then stop
  convoy consume --workers 2 --db states.db --version-check
      run until Ctrl-C; an event older than the row is kept in the history and skipped
  convoy consume --tick-ms 100 --until-caught-up
      each event takes its duration, on a clock that the workers share: the run that the models predict
  convoy produce --topic one-by-one --partitions 1 --one-record-batches
  convoy consume --topic one-by-one --db one.db --dispatch share --gate tracking-no --tick-ms 100 \\
      --until-caught-up
      a share group: whoever is free takes the next record, and waits for the shipment's earlier ones

\b
Dispatch:
  group  a worker owns partitions; each partition's records are applied in order
  share  a free worker takes the next record of a share group (Kafka 4.2 or newer); no order but the gate's

A record that is no event is kept as a dead letter with its bytes, reason and position, and sent to
<topic>.dead-letter; the exit code is 3 when there were any. --on-bad-record says what becomes of its lane:

\b
  skip            the partition goes on; the shipment's later events are applied past the gap
  park-key        later records of its key are kept behind it, in order, until `convoy dead-letters retry`
  halt-partition  its partition stops before it, the others go on; nothing is applied past it

{EXIT_CODES_HELP}"""


@click.command(help=HELP)
@broker_options
@topic_option
@db_option
@click.option(
    "--workers", type=click.IntRange(1, 256), default=4, show_default=True, help="Worker processes."
)
@click.option("--group", help="Consumer group.  [default: the database's own]")
@click.option("--version-check", is_flag=True, help="Skip an event whose version is lower than the row's.")
@click.option("--until-caught-up", is_flag=True, help="Stop when every partition is applied to its end.")
@click.option(
    "--on-bad-record",
    type=click.Choice([policy.value for policy in OnBadRecord]),
    default=OnBadRecord.SKIP.value,
    show_default=True,
    help="What happens to the lane of a record that is no event.",
)
@click.option(
    "--dispatch",
    type=click.Choice([dispatch.value for dispatch in Dispatch]),
    default=Dispatch.GROUP.value,
    show_default=True,
    help="How records reach workers.",
)
@click.option(
    "--gate",
    type=click.Choice([choice.value for choice in KeyChoice]),
    default=KeyChoice.NONE.value,
    show_default=True,
    help="In share dispatch: hold an event until earlier ones of the same key are applied.",
)
@click.option("--selective", is_flag=True, help="Let history events, which erase nothing, pass the gate.")
@click.option(
    "--tick-ms",
    type=click.IntRange(10, 60_000),
    help="Let each event take its duration, with ticks of this length.  [default: full speed]",
)
@click.option(
    "--ties",
    default="order",
    show_default=True,
    metavar="order|random|SEED",
    help="Order of writes within one tick: arrival order, or drawn from a seed.",
)
@json_option
@verbose_option
def consume(
    bootstrap_servers: str | None,
    config_file: Path | None,
    topic: str,
    db: Path,
    workers: int,
    group: str | None,
    version_check: bool,
    until_caught_up: bool,
    on_bad_record: str,
    dispatch: str,
    gate: str,
    selective: bool,
    tick_ms: int | None,
    ties: str,
    as_json: bool,
    verbose: int,
) -> None:
    """Apply a topic to a database."""
    set_up_logging(verbose)
    if gate != KeyChoice.NONE and dispatch != Dispatch.SHARE:
        raise click.UsageError("--gate is for --dispatch share; a group keeps each partition's order")
    if selective and gate == KeyChoice.NONE:
        raise click.UsageError("--selective says what passes a gate; name one with --gate")
    if on_bad_record != OnBadRecord.SKIP and dispatch == Dispatch.SHARE:
        raise click.UsageError(
            f"--on-bad-record {on_bad_record} needs --dispatch group: a share group has no order"
        )
    plan = RunPlan(
        connection=connection(bootstrap_servers, config_file, DEFAULT_BOOTSTRAP),
        topic=topic,
        db=db,
        workers=workers,
        group=group,
        version_check=version_check,
        until_caught_up=until_caught_up,
        on_bad_record=OnBadRecord(on_bad_record),
        dispatch=Dispatch(dispatch),
        gate=KeyChoice(gate),
        selective=selective,
        tick_us=None if tick_ms is None else tick_ms * 1000,
        ties_seed=ties_seed(ties, paced=tick_ms is not None),
        verbose=verbose,
    )
    stopped = stop_on_signals()
    with progress_bar("offsets applied", None) as advance:
        result = consume_topic(plan, stopped=stopped, on_progress=advance)
    for sentence in notes_on(result, plan):
        note(sentence)
    if as_json:
        print_json(as_object(result))
    else:
        print_result(result)
    if until_caught_up and not result.caught_up and not result.halted:
        note("Interrupted before the end of the topic; the next run goes on from here.")
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if result.totals.dead_letters or result.halted:
        raise click.exceptions.Exit(EXIT_ANOMALY)


def ties_seed(ties: str, *, paced: bool) -> int | None:
    """The seed that orders writes within a tick, printed where it is drawn; None for arrival order."""
    if ties == "order":
        return None
    if not paced:
        raise click.UsageError("--ties needs --tick-ms: without pacing there are no ticks")
    if ties == "random":
        seed = random.randrange(2**32)
        note(f"Writes within a tick are in random order, by seed {seed} (--ties {seed} repeats it).")
        return seed
    try:
        return int(ties)
    except ValueError:
        wrong = f"{ties!r} is neither order, random nor a number"
        raise click.BadParameter(wrong, param_hint="--ties") from None


def notes_on(result: RunResult, plan: RunPlan) -> list[str]:
    """What a person should know about the crew: workers that ended early, workers without a partition."""
    workers = plan.workers
    notes = [f"Note: {sentence}." for sentence in result.ended]
    idle = [str(worker) for worker, partitions in result.assignment.items() if not partitions]
    if idle and workers <= result.partitions:
        notes.append(
            f"Idle: worker {', '.join(idle)} had no partition; other members of the group have them."
        )
    elif idle:
        notes.append(
            f"Idle: worker {', '.join(idle)} had no partition; {result.partitions} partitions keep at "
            f"most {result.partitions} of {workers} workers busy."
        )
    bad = result.totals.dead_letters - result.totals.parked
    if bad:
        notes.append(
            f"{bad} records are no events; kept as dead letters (`convoy dead-letters list --db {plan.db}`)."
        )
    if result.totals.parked:
        notes.append(f"{result.totals.parked} records are parked behind an earlier one of their key.")
    for halted in result.halted:
        place = f"{result.source.topic}[{halted.partition}]@{halted.offset}"
        notes.append(
            f"Halted: {place} is no event: {halted.reason}. Nothing was applied past it; "
            "another --on-bad-record goes on from there."
        )
    return notes


def as_object(result: RunResult) -> dict[str, object]:
    """The result as JSON."""
    totals = result.totals
    return {
        "run": result.run,
        "topic": result.source.topic,
        "group": result.source.group_id,
        "caught_up": result.caught_up,
        "applied": totals.in_history - totals.skipped,
        "backward_writes": totals.backward,
        "skipped": totals.skipped,
        "dead_letters": totals.dead_letters,
        "parked": totals.parked,
        "halted": [asdict(halted) for halted in result.halted],
        "assignment": {str(worker): partitions for worker, partitions in result.assignment.items()},
        "ended_early": result.ended,
    }


def print_result(result: RunResult) -> None:
    """The counts of the run and who had which partition."""
    totals = result.totals
    print_table(
        f"Run {result.run} on {result.source.topic}, group {result.source.group_id}",
        ["applied", "backward writes", "skipped steps", "dead letters", "caught up"],
        [
            (
                totals.in_history - totals.skipped,
                totals.backward,
                totals.skipped,
                totals.dead_letters,
                "yes" if result.caught_up else "no",
            )
        ],
    )
    for worker, partitions in result.assignment.items():
        click.echo(f"worker {worker}: partitions {', '.join(map(str, partitions)) or 'none'}")
