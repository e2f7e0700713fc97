"""The command `convoy analyze`: topic and database, beside the models."""

from pathlib import Path

import click

from analysis.observation import observe
from analysis.report import Report, as_object, print_audit, print_report
from analysis.swimlanes import save
from analysis.verdict import Holds
from broker.settings import connection
from console.entry import EXIT_ANOMALY, EXIT_CODES_HELP, EXIT_UNKNOWN
from console.options import DEFAULT_BOOTSTRAP, broker_options, db_option, json_option, verbose_option
from console.output import note, print_json, set_up_logging
from console.progress import progress_bar

HELP = f"""Compare a topic with the database that follows it, beside what both tick models say.

It reports records applied, skipped, kept as dead letters and not yet applied; key lanes, partition lanes
and collisions; backward writes, wrong final states and skipped steps. It reads only: no group is joined,
nothing is committed or changed.

\b
Examples:
  convoy analyze
      the topic that convoy.db follows
  convoy analyze --audit
      every invariant, and whether it holds
  convoy analyze --db states.db --check
      for scripts: exit code 3 when an invariant is broken, 4 when that cannot be told yet

\b
The audit reads the whole topic and holds it against the history: each record applied once or a dead letter
once, each row the fold of its history and of the topic, no write by a stale owner, offsets right behind
what is done; and where the key keeps a shipment in one lane, no backward write and no wrong final state
beyond those of the stream itself.

{EXIT_CODES_HELP}"""

EXIT_CODES = {Holds.TRUE: 0, Holds.FALSE: EXIT_ANOMALY, Holds.UNKNOWN: EXIT_UNKNOWN}


@click.command(help=HELP)
@broker_options
@click.option("--topic", help="The topic.  [default: the one the database follows]")
@db_option
@click.option("--check", is_flag=True, help="Exit 3 when an invariant is broken, 4 when that is unknown.")
@click.option(
    "--swimlanes",
    type=click.Path(dir_okay=False, path_type=Path),
    help="After a paced run: write who worked on what at which tick to a .txt, .svg or .html file.",
)
@click.option("--audit", is_flag=True, help="List every invariant and whether it holds; implies --check.")
@json_option
@verbose_option
def analyze(
    bootstrap_servers: str | None,
    config_file: Path | None,
    topic: str | None,
    db: Path,
    check: bool,
    swimlanes: Path | None,
    audit: bool,
    as_json: bool,
    verbose: int,
) -> None:
    """Compare topic and database, beside the models."""
    set_up_logging(verbose)
    to = connection(bootstrap_servers, config_file, DEFAULT_BOOTSTRAP)
    with progress_bar("offsets read", None) as advance:
        report = Report.of(observe(to, db, topic, advance))
    if swimlanes is not None:
        save_swimlanes(report, swimlanes)
    if as_json:
        print_json(as_object(report))
    else:
        print_report(report)
        if audit:
            print_audit(report)
    if check or audit:
        raise click.exceptions.Exit(EXIT_CODES[report.verdict.holds])


def save_swimlanes(report: Report, path: Path) -> None:
    """Write the swimlanes of a paced run; a note where there are none."""
    lanes = report.swimlanes
    if lanes is None:
        note("No swimlanes: the last run was not paced (convoy consume --tick-ms 100).")
        return
    save(lanes, path)
    note(f"Swimlanes are in {path}.")
