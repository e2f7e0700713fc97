"""`convoy sweep`: live ticks over workers and partitions, beside the Kafka model, in one grid."""

from collections.abc import Sequence
from pathlib import Path

import click

from console.entry import EXIT_ANOMALY, EXIT_CODES_HELP
from console.options import (
    NumberList,
    broker_options,
    events_file_option,
    json_option,
    key_option,
    live_seed_option,
    live_tick_option,
    verbose_option,
)
from console.output import note, print_json, print_table, set_up_logging
from console.signals import stop_on_signals
from convoy.comparison import live_ticks, predicted
from convoy.lesson import flat, live_broker, live_directory, run_all
from convoy.live import LivePlan, LiveResult, LiveRuns
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from producer.reading import events_or_lesson

MOST_WORKERS = 32
MOST_PARTITIONS = 1_000

HELP = f"""Run one key over numbers of workers and partitions, live, and print the ticks beside the model's.

Consumer groups, each run on a fresh topic: one lane a partition. A cell reads model/live. The floor is the
busiest lane: no number of workers finishes sooner. A star marks partitions on which keys collide: several
key lanes, one partition lane.

\b
Examples:
  convoy sweep --key line --partitions 3,6,8 --workers 2,4,8
      three lines on 3 partitions are one lane, on 6 two, on 8 three
  convoy sweep --file events.csv --key tracking-no --partitions 6,12 --workers 4 --json

The exit code is 3 when model and live differ.

{EXIT_CODES_HELP}"""


@click.command(help=HELP)
@broker_options
@key_option
@click.option(
    "--workers", type=NumberList(), default="1,2,4,8", show_default=True, help="Numbers of workers."
)
@click.option(
    "--partitions", type=NumberList(), default="1,3,5,6,8,12", show_default=True, help="Partition counts."
)
@events_file_option
@live_tick_option
@live_seed_option
@json_option
@verbose_option
def sweep(
    bootstrap_servers: str | None,
    config_file: Path | None,
    key: str,
    workers: list[int],
    partitions: list[int],
    path: Path | None,
    tick_ms: int,
    seed: int,
    as_json: bool,
    verbose: int,
) -> None:
    """Sweep workers and partitions live."""
    set_up_logging(verbose)
    if max(workers) > MOST_WORKERS or max(partitions) > MOST_PARTITIONS:
        raise click.UsageError(f"at most {MOST_WORKERS} workers and {MOST_PARTITIONS} partitions")
    workers, partitions = list(dict.fromkeys(workers)), list(dict.fromkeys(partitions))
    events = events_or_lesson(path)
    choice = KeyChoice(key)
    plans = {
        str(count): [
            LivePlan(f"{key}-{count}p", events, choice, Dispatch.GROUP, count, crew, seed=seed)
            for crew in workers
        ]
        for count in partitions
    }
    with live_broker(bootstrap_servers, config_file) as (broker, to), live_directory(keep=False) as folder:
        stopped = stop_on_signals()
        runs = LiveRuns(broker, to, folder, tick_us=tick_ms * 1000, keep=False, stopped=stopped)
        results = run_all(runs, plans)
    if choice is KeyChoice.NONE:
        note(f"Records without a key were dealt over partitions by seed {seed}.")
    if as_json:
        print_json({"key": key, "points": [point_object(result) for result in flat(results)]})
    else:
        print_grid(key, workers, list(results.values()))
    if any(result.difference for result in flat(results)):
        raise click.exceptions.Exit(EXIT_ANOMALY)


def point_object(result: LiveResult) -> dict[str, object]:
    """One point of the grid as JSON."""
    found = result.report.found
    return {
        "partitions": result.plan.partitions,
        "workers": result.plan.workers,
        "model_tick": predicted(result).tick,
        "live_tick": live_ticks(result),
        "key_lanes": found.lanes.key_lanes,
        "partition_lanes": found.partition_lanes,
        "busiest_lane": found.busiest_lane.ticks,
        "collisions": {str(p): keys for p, keys in found.lanes.collisions.items()},
        "assignment": {str(worker): owned for worker, owned in result.run.assignment.items()},
        "difference": result.difference,
    }


def print_grid(key: str, workers: Sequence[int], rows: Sequence[Sequence[LiveResult]]) -> None:
    """Partitions down, workers across, then the lanes and each collision in words."""
    print_table(
        f"Ticks by key {key}, model/live",
        ["partitions", *(f"{count} workers" for count in workers), "floor", "key lanes", "partition lanes"],
        [_grid_row(row) for row in rows],
    )
    for row in rows:
        for partition, keys in row[0].report.found.lanes.collisions.items():
            click.echo(
                f"* {row[0].plan.partitions} partitions: {', '.join(keys)} share partition {partition}."
            )
    for result in (result for row in rows for result in row if result.difference):
        click.echo(f"{result.plan.partitions} partitions, {result.plan.workers} workers: {result.difference}")


def _grid_row(row: Sequence[LiveResult]) -> list[object]:
    found = row[0].report.found
    star = "*" if found.lanes.collisions else ""
    return [
        f"{row[0].plan.partitions}{star}",
        *(f"{predicted(result).tick}/{live_ticks(result)}" for result in row),
        found.busiest_lane.ticks,
        found.lanes.key_lanes,
        found.partition_lanes,
    ]
