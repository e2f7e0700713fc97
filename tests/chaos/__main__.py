"""`python -m chaos`: the fault suite on a real broker, in a time box; its last line is the verdict."""

import random
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import click

from broker.jars import kafka_version
from broker.native import NativeBroker
from chaos.faults import faults
from chaos.kills import kill_at_random
from chaos.scene import BROKER_SETTINGS, Ground, Play
from chaos.schedule import Schedule
from chaos.table import COLUMNS, EXIT_CODE, Row, last_line, verdict_of
from console.output import print_table

SHIPMENTS = 20_000
RECORDS = 5 * SHIPMENTS
SHORT_BELOW_MINUTES = 12.0
"""In a shorter run a frozen broker and a foreign lock last seconds and not half a minute."""

LAST_SHARE = 0.2
"""Of the time box, kept for the rest of the records, under random kills."""

LAST_KILLS = 20


@click.command()
@click.option("--minutes", type=float, default=15.0, envvar="CHAOS_MINUTES", show_default=True)
@click.option("--seed", type=int, envvar="CHAOS_SEED", help="Repeats a run's draws.  [default: drawn]")
@click.option("--only", multiple=True, help="Faults whose name holds this text; the rest is left out.")
def main(minutes: float, seed: int | None, only: tuple[str, ...]) -> None:
    """Break everything in turn, and let the checker judge the table after each drain.

    Exit code 0 for a true verdict, 3 for false, 4 for unknown.
    """
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    click.echo(
        f"chaos: Kafka {kafka_version()}, {minutes:g} minutes, seed {seed} (CHAOS_SEED={seed} repeats it)"
    )
    deadline = time.monotonic() + minutes * 60
    folder = Path(tempfile.mkdtemp(prefix="convoy-chaos-"))
    chosen = [
        fault
        for fault in faults(short=minutes < SHORT_BELOW_MINUTES)
        if not only or any(text in fault.name for text in only)
    ]
    rows = {fault.name: Row(fault.name) for fault in chosen}
    box_s = minutes * 60 * (1 - LAST_SHARE)
    schedule = Schedule(chosen, lambda: box_s - (minutes * 60 - (deadline - time.monotonic())))
    with NativeBroker(settings=BROKER_SETTINGS) as broker:
        ground = Ground(broker, folder, seed)
        while (planned := schedule.next()) is not None:
            turn, count = planned
            turn.spent_s += play(ground, turn.fault.play, count, rows[turn.fault.name])
            turn.tried += count
        if not only:
            play_rest(ground, rows)
    finish(list(rows.values()), folder)


def play_rest(ground: Ground, rows: dict[str, Row]) -> None:
    """Write what is missing of the 100,000 records at once, and kill workers at random over it."""
    written = sum(row.records for row in rows.values() if not row.accused)
    shipments = -(-max(0, RECORDS - written) // 5)
    rest = Row(f"SIGKILL at random, {shipments * 5:,} at once")
    rows[rest.fault] = rest
    play(ground, partial(kill_at_random, shipments=shipments), LAST_KILLS, rest)


def play(ground: Ground, play: Play, count: int, row: Row) -> float:
    """One turn of a fault into its row; how many seconds it took."""
    begun = time.monotonic()
    try:
        outcome = play(ground, count)
        row.add(outcome)
        ground.broker.check_running()
    except Exception as error:  # a suite that dies judges nothing: it goes on, and the verdict is unknown
        row.fail(f"{type(error).__name__}: {error}")
    took_s = time.monotonic() - begun
    said = "" if row.holds == "true" else f": {'; '.join(row.reasons[-3:])}"
    click.echo(f"{took_s:6.1f} s  {row.fault}: {row.landed} landed, {row.holds.value}{said}", err=True)
    return took_s


def finish(rows: list[Row], folder: Path) -> None:
    """The table, the reasons, the verdict, the exit code. The evidence is kept unless all is true."""
    print_table("Faults", COLUMNS, [row.cells() for row in rows])
    for row in rows:
        for reason in dict.fromkeys(row.reasons):
            click.echo(f"{row.fault}: {reason}")
    verdict = verdict_of(rows)
    if verdict == "true":
        shutil.rmtree(folder, ignore_errors=True)
    else:
        click.echo(f"kept for a closer look: {folder}")
    click.echo(last_line(rows))
    sys.exit(EXIT_CODE[verdict])


if __name__ == "__main__":
    main()
