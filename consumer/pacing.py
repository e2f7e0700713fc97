"""The clock of a paced run: ticks of a wall clock that all workers of the run share.

Durations are waited for, not computed: what a run took is read from the times it stored.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from state.database import now_us

LATE_TOLERANCE = 0.85
"""Part of a tick that work may begin late and still count as begun in it: handing over takes time."""

SPREAD = 0.5
"""Part of a tick over which the writes of one tick are spread."""

LEAST_STEP_US = 1_500
"""Least time between the writes of two neighbours in arrival order, so that their order is certain."""

LAST_WAIT_US = 3_000
"""The last stretch before a boundary is slept through without looking at anything else."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run is paced. `events` is about how many there are: it sets the distance of writes.

    With `ties_seed`, events that finish in one tick are written in an order drawn from it; without, in
    arrival order.
    """

    tick_us: int
    events: int
    ties_seed: int | None = None

    def offset_us(self, order: int) -> int:
        """How long after the finish boundary an event is written."""
        spread_us = int(self.tick_us * SPREAD)
        if self.ties_seed is not None:
            return random.Random(f"{self.ties_seed}/{order}").randrange(spread_us)
        slots = max(1, min(self.events, spread_us // LEAST_STEP_US))
        return (order % slots) * spread_us // slots


class TickClock:
    """The shared clock. `zero_us` is when tick 0 begins, in microseconds since 1970."""

    def __init__(self, zero_us: int, tick_us: int) -> None:
        self._zero_us = zero_us
        self._tick_us = tick_us

    def starting_tick(self) -> int:
        """The tick in which work that is ready now may begin: this one, or the next if it is too late."""
        tick, late_us = divmod(now_us() - self._zero_us, self._tick_us)
        return max(0, tick if late_us <= LATE_TOLERANCE * self._tick_us else tick + 1)

    def boundary_us(self, tick: int) -> int:
        """When a tick begins, in microseconds since 1970."""
        return self._zero_us + tick * self._tick_us


def wait_until(moment_us: int, meanwhile: Callable[[float], None]) -> None:
    """Wait until a moment; `meanwhile` is called with the seconds that it may take, while there are some.

    It may return early; what it takes too long delays the end of the wait.
    """
    while (left_us := moment_us - now_us()) > 0:
        if left_us > LAST_WAIT_US:
            meanwhile((left_us - LAST_WAIT_US) / 1e6)
        else:
            time.sleep(left_us / 1e6)
