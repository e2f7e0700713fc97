"""`convoy lesson`: the lesson's arrangements live on a broker, beside the models that predict them."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from analysis.swimlanes import save
from broker.choose import choose_broker
from broker.running import RunningBroker
from broker.settings import Connection, connection
from console.entry import EXIT_ANOMALY, EXIT_CODES_HELP, EXIT_INTERRUPTED
from console.options import (
    broker_options,
    json_option,
    live_seed_option,
    live_tick_option,
    verbose_option,
)
from console.output import note, print_json, set_up_logging
from console.progress import progress_bar
from console.signals import stop_on_signals
from convoy.arrangements import kafka_plans, lesson_plans, selective_plans
from convoy.comparison import as_object, print_agreement, print_section, print_selective
from convoy.live import Interrupted, LivePlan, LiveResult, LiveRuns

HELP = f"""Run the lesson's arrangements live and print them beside the models that predict them.

Each arrangement gets a fresh topic and a fresh database. Workers take as long for an event as it says, in
ticks of a clock that they share; every live figure comes from the topic, the database and that clock.

\b
Without --bootstrap-servers it takes the broker that answers on localhost:9092, else starts Kafka from its
own jars (Java 17 and Maven), else librdkafka's mock cluster; it says which and why. The lesson's own
dispatcher needs a share group (Kafka 4.2 or newer) and is left out on the mock.

\b
Examples:
  convoy lesson
  convoy lesson --swimlanes lanes
  convoy lesson --bootstrap-servers broker:9092 --config client.properties

The exit code is 3 when model and live differ in a figure.

{EXIT_CODES_HELP}"""


@click.command(help=HELP)
@broker_options
@click.option("--workers", type=click.IntRange(1, 16), default=4, show_default=True, help="Worker processes.")
@live_tick_option
@live_seed_option
@click.option(
    "--keep", is_flag=True, help="Keep topics, and databases in ./convoy-lesson, for convoy analyze."
)
@click.option(
    "--swimlanes",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each arrangement's swimlanes, model above live, into this folder as .svg.",
)
@json_option
@verbose_option
def lesson(
    bootstrap_servers: str | None,
    config_file: Path | None,
    workers: int,
    tick_ms: int,
    seed: int,
    keep: bool,
    swimlanes: Path | None,
    as_json: bool,
    verbose: int,
) -> None:
    """Run the lesson live, beside the models."""
    set_up_logging(verbose)
    note(f"Records without a key are dealt over partitions by seed {seed}.")
    with live_broker(bootstrap_servers, config_file) as (broker, to), live_directory(keep) as directory:
        if keep and broker.kind in ("native", "embedded"):
            raise click.UsageError("--keep needs a broker that stays; name one with --bootstrap-servers")
        sections = plans_for(broker, workers, seed)
        stopped = stop_on_signals()
        runs = LiveRuns(broker, to, directory, tick_us=tick_ms * 1000, keep=keep, stopped=stopped)
        results = run_all(runs, sections)
    if swimlanes is not None:
        save_all(results, swimlanes)
    if as_json:
        print_json(as_object(results))
    else:
        print_results(results)
    if keep:
        for result in flat(results):
            note(f"convoy analyze --bootstrap-servers {to.bootstrap_servers} --db {result.db}")
    if any(result.difference for result in flat(results)):
        raise click.exceptions.Exit(EXIT_ANOMALY)


@contextmanager
def live_broker(
    bootstrap_servers: str | None, config_file: Path | None
) -> Iterator[tuple[RunningBroker, Connection]]:
    """A broker to run on, started where none was named and none answers, and how to reach it."""
    named = connection(bootstrap_servers, config_file, "")
    choice = choose_broker(named.bootstrap_servers or None, named.properties, note)
    note(choice.reason)
    with choice.broker as broker:
        properties = named.properties if broker.kind in ("named", "local") else {}
        yield broker, Connection(broker.bootstrap_servers, properties)


@contextmanager
def live_directory(keep: bool) -> Iterator[Path]:
    """Where the databases go: a folder that stays, or one that goes."""
    if keep:
        folder = Path("convoy-lesson")
        folder.mkdir(exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="convoy-") as temporary:
        yield Path(temporary)


Sections = dict[str, list[LivePlan]]
Results = dict[str, list[LiveResult]]

LESSON = "The lesson's dispatcher, live as a share group"
KAFKA = "Kafka's ownership of partitions, live as a consumer group"
SELECTIVE = "Selective convoy: seven events a shipment, three of them only appended"


def plans_for(broker: RunningBroker, workers: int, seed: int) -> Sections:
    """What this broker can run, by section."""
    kafka = {KAFKA: kafka_plans(workers, seed)}
    if broker.kind == "embedded":
        note("The mock cluster has no share groups: only Kafka's own dispatch is run.")
        return kafka
    return {LESSON: lesson_plans(workers), **kafka, SELECTIVE: selective_plans(workers)}


def run_all(runs: LiveRuns, sections: Sections) -> Results:
    """Run every plan, one after the other; Ctrl-C ends it after the clean-up of the one at hand."""
    total = sum(map(len, sections.values()))
    done = 0
    results: Results = {title: [] for title in sections}
    with progress_bar("arrangements run", total) as advance:
        for title, plans in sections.items():
            for plan in plans:
                advance(done)
                try:
                    results[title].append(runs.run(plan))
                except Interrupted:
                    note(f"Interrupted after {done} of {total} arrangements; nothing was left behind.")
                    raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
                done += 1
    return results


def flat(results: Results) -> Sequence[LiveResult]:
    """The results of all sections."""
    return [result for section in results.values() for result in section]


def print_results(results: Results) -> None:
    """A table a section, then whether model and live agree."""
    for title, section in results.items():
        print_section(title, section)
    if SELECTIVE in results:
        print_selective(results[SELECTIVE])
    print_agreement(flat(results))


def save_all(results: Results, folder: Path) -> None:
    """One picture an arrangement."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, result in enumerate(flat(results), start=1):
        lanes = result.report.swimlanes
        if lanes is not None:
            save(
                lanes, folder / f"{number:02}-{result.plan.dispatch}-{result.plan.name.replace(' ', '-')}.svg"
            )
    note(f"Swimlanes are in {folder}.")
