"""`convoy soak`: the live runs that must agree with the models, again and again."""

from pathlib import Path

import click

from console.entry import EXIT_ANOMALY, EXIT_CODES_HELP, EXIT_INTERRUPTED
from console.options import broker_options, live_tick_option, verbose_option
from console.output import note, set_up_logging
from console.progress import progress_bar
from console.signals import stop_on_signals
from convoy.arrangements import lesson_plans
from convoy.lesson import live_broker, live_directory
from convoy.live import Interrupted, LivePlan, LiveRuns
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from lanes.lesson import lesson_events

PARTITIONS = (1, 3, 5, 6, 8)
WORKERS = (1, 2, 4, 8)
FREE_SEEDS_A_RUN = 2

HELP = f"""Repeat the lesson's live runs and count how many agree with their model in every figure.

A run is the lesson's four arrangements in share dispatch; tracking number and line in group dispatch on
{PARTITIONS} partitions with {WORKERS} workers; and two free runs of new
seeds. The last line is the agreement, N of N; a disagreement prints the event where model and live part.

\b
Example:
  convoy soak --runs 1

{EXIT_CODES_HELP}"""


@click.command(help=HELP)
@broker_options
@click.option("--runs", type=click.IntRange(1, 1000), default=10, show_default=True, help="Repeats.")
@live_tick_option
@verbose_option
def soak(
    bootstrap_servers: str | None, config_file: Path | None, runs: int, tick_ms: int, verbose: int
) -> None:
    """Repeat the live runs that must agree with the models."""
    set_up_logging(verbose)
    plans = [plan for run in range(runs) for plan in plans_of_run(run)]
    agreeing = 0
    with live_broker(bootstrap_servers, config_file) as (broker, to), live_directory(keep=False) as folder:
        if broker.kind == "embedded":
            plans = [plan for plan in plans if plan.dispatch is Dispatch.GROUP]
            note("The mock cluster has no share groups: only group dispatch is run.")
        stopped = stop_on_signals()
        live = LiveRuns(broker, to, folder, tick_us=tick_ms * 1000, keep=False, stopped=stopped)
        with progress_bar("live runs", len(plans)) as advance:
            for done, plan in enumerate(plans):
                advance(done)
                try:
                    result = live.run(plan)
                except Interrupted:
                    click.echo(
                        f"Agreement: {agreeing} of {done}, interrupted before the rest of {len(plans)}"
                    )
                    raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
                agreeing += result.difference is None
                if result.difference:
                    click.echo(f"{name_of(plan)}: {result.difference}")
    click.echo(f"Agreement: {agreeing} of {len(plans)}")
    if agreeing < len(plans):
        raise click.exceptions.Exit(EXIT_ANOMALY)


def plans_of_run(run: int) -> list[LivePlan]:
    """One repeat; `run` counts from 0 and chooses the seeds."""
    events = lesson_events()
    group = [
        LivePlan(f"{key}-{partitions}p-{workers}w", events, key, Dispatch.GROUP, partitions, workers)
        for key in (KeyChoice.TRACKING_NO, KeyChoice.LINE)
        for partitions in PARTITIONS
        for workers in WORKERS
    ]
    seeds = range(FREE_SEEDS_A_RUN * run + 1, FREE_SEEDS_A_RUN * (run + 1) + 1)
    free = [LivePlan(f"free-{seed}", events, KeyChoice.NONE, Dispatch.GROUP, 5, seed=seed) for seed in seeds]
    return [*lesson_plans(4), *group, *free]


def name_of(plan: LivePlan) -> str:
    """A plan in words, for the report of a disagreement."""
    return (
        f"{plan.name}: {plan.dispatch} dispatch, key {plan.key}, {plan.partitions} partitions, "
        f"{plan.workers} workers, seed {plan.seed}"
    )
