"""`convoy cost`: what a key costs in workers, at a rate and a share of events that need order.

State events enter, from a file or the lesson's own; two tables or one JSON object leave on stdout. The
formulas and the default rate are the lesson's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import click

from console.entry import EXIT_CODES_HELP
from console.options import events_file_option, json_option
from console.output import print_json, print_table
from convoy.model import COUNT, workers_option
from lanes.cost import PEAK_RATE, Cost, cost_of_order
from lanes.model import CONVOY, CONVOY_LINE, FREE, LessonFigures, lesson_figures
from producer.reading import events_or_lesson


class Share(NamedTuple):
    """A part of the events, 0 to 1, beside the text it was given as."""

    text: str
    value: float


def share_of(text: str) -> Share:
    """A share written as a fraction (4/7) or a decimal (0.57); raises ValueError for anything else."""
    above, slash, below = text.partition("/")
    try:
        value = int(above) / int(below) if slash else float(text)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"{text!r} is neither a fraction such as 4/7 nor a decimal such as 0.57") from error
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is not between 0 and 1")
    return Share(text, value)


def _shares(_ctx: click.Context, _param: click.Parameter, given: Sequence[str]) -> list[Share]:
    try:
        return [share_of(text) for text in given]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _positive(_ctx: click.Context, _param: click.Parameter, rate: float) -> float:
    """click's own range lets `nan` and `inf` through."""
    if not 0 < rate < math.inf:
        raise click.BadParameter(f"{rate} is not a rate above 0")
    return rate


@click.command(epilog=EXIT_CODES_HELP)
@click.option(
    "--rate",
    type=float,
    default=PEAK_RATE,
    show_default=True,
    callback=_positive,
    help="State events per second; the default is the lesson's peak, an estimate.",
)
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="SHARE",
    default=("4/7", "5/7"),
    show_default=True,
    callback=_shares,
    help="Part of the events that need order, 4/7 or 0.57. Repeat it to compare.",
)
@workers_option
@click.option(
    "--ceiling-workers",
    type=COUNT,
    default=8,
    show_default=True,
    help="Workers at which the ceilings are read.",
)
@events_file_option
@json_option
def cost(
    rate: float,
    shares: list[Share],
    workers: int,
    ceiling_workers: int,
    path: Path | None,
    as_json: bool,
) -> None:
    """Say how many more workers order costs, beside doing without (x1).

    Selective: only the events that need order go through a lane. The ratios are ticks of the lesson's
    dispatcher, by tracking number and by line, over ticks without lanes.

    \b
    Examples:
      convoy cost
      convoy cost --rate 250 --share 1/2 --share 0.9
      convoy cost --file events.jsonl --workers 8 --ceiling-workers 32
    """
    events = events_or_lesson(path)
    costs = {share: cost_of_order(events, workers, rate, share.value) for share in shares}
    ceilings = {a.name: lesson_figures(events, ceiling_workers, a) for a in (CONVOY, CONVOY_LINE, FREE)}
    if as_json:
        print_json(
            {
                "workers": workers,
                "rate": rate,
                "costs": [asdict(found) for found in costs.values()],
                "ceilings": {"workers": ceiling_workers, **_ceilings_json(ceilings)},
            }
        )
        return
    _print_costs(costs, rate, workers)
    _print_ceilings(ceilings, ceiling_workers)


def _print_costs(costs: Mapping[Share, Cost], rate: float, workers: int) -> None:
    print_table(
        f"Workers beside free (x1), at {rate:g} events/s, ratios with {workers} workers",
        [
            "share",
            "constrained events/s",
            "unconstrained events/s",
            "selective convoy",
            "selective by line",
            "everything",
            "everything by line",
        ],
        [[share.text, *_cells(found)] for share, found in costs.items()],
    )


def _cells(found: Cost) -> list[str]:
    rates = (found.constrained_rate, found.unconstrained_rate)
    factors = (found.selective, found.selective_line, found.everything, found.everything_line)
    return [f"{rate:.2f}" for rate in rates] + [f"x{factor:.3f}" for factor in factors]


def _print_ceilings(ceilings: Mapping[str, LessonFigures], workers: int) -> None:
    """The busiest lane is the fewest ticks that any number of workers can reach; free has no lane."""
    print_table(
        f"Ceilings with {workers} workers",
        ["arrangement", "ticks", "busiest key lane, ticks"],
        [[name, found.tick, found.busiest_lane if found.lanes else "-"] for name, found in ceilings.items()],
    )


def _ceilings_json(ceilings: Mapping[str, LessonFigures]) -> dict[str, dict[str, int]]:
    return {name: {"tick": f.tick, "busiest_lane": f.busiest_lane} for name, f in ceilings.items()}
