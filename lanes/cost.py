"""What a key costs in throughput, at a rate and a share of events that need order.

Source of the formulas and defaults: the lesson (see the README). A rate is in events per second, a ratio
is ticks with the constraint over ticks without.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lanes.event import Event
from lanes.model import CONVOY, CONVOY_LINE, FREE, lesson_schedule
from lanes.schedule import ticks

PEAK_RATE = 97.22
"""State events per second at the lesson's peak: a computed estimate there."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What keeping order costs beside doing without, for one share of constrained events."""

    share: float
    constrained_rate: float
    unconstrained_rate: float
    selective: float
    selective_line: float
    everything: float
    everything_line: float


def selective_ratio(share: float, ratio: float) -> float:
    """Workers needed beside free when only the constrained share goes through the convoy."""
    return share * ratio + (1 - share)


def cost_of_order(events: Sequence[Event], workers: int, rate: float, share: float) -> Cost:
    """Cost beside free for lanes by tracking number and by line, at `rate` events/s."""
    free = ticks(lesson_schedule(events, workers, FREE))
    convoy = ticks(lesson_schedule(events, workers, CONVOY)) / free
    line = ticks(lesson_schedule(events, workers, CONVOY_LINE)) / free
    return Cost(
        share=share,
        constrained_rate=rate * share,
        unconstrained_rate=rate * (1 - share),
        selective=selective_ratio(share, convoy),
        selective_line=selective_ratio(share, line),
        everything=convoy,
        everything_line=line,
    )


def ticks_by_workers(events: Sequence[Event], workers: Sequence[int]) -> dict[str, list[int]]:
    """Arrangement to its ticks for each number of workers: where it stops falling is its ceiling."""
    return {
        arrangement.name: [ticks(lesson_schedule(events, count, arrangement)) for count in workers]
        for arrangement in (FREE, CONVOY, CONVOY_LINE)
    }
