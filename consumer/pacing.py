"""The clock of a paced run: ticks of a wall clock that all workers of the run share.

Durations are waited for, not computed: what a run took is read from the times it stored.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from lanes.event import Event
from state.database import now_us
from state.records import Timing

LATE_TOLERANCE = 0.85
"""Part of a tick that work may begin late and still count as begun in it: handing over takes time."""

SPREAD = 0.5
"""Part of a tick over which the writes of one tick are spread."""

LEAST_STEP_US = 1_500
"""Least time between the writes of two neighbours in arrival order, so that their order is certain."""

LAST_WAIT_US = 3_000
"""The last stretch before a boundary is slept through without looking at anything else."""

LONGEST_LOOK_S = 0.1

Meanwhile = Callable[[float], None]
"""What a worker does while it waits; takes the seconds that it may last, and may return early."""


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


class Pacer:
    """Lets events take their time on the shared clock. `zero_us` is when tick 0 begins."""

    def __init__(self, zero_us: int, pace: Pace, meanwhile: Meanwhile, stopped: Callable[[], bool]) -> None:
        self._zero_us = zero_us
        self._pace = pace
        self._meanwhile = meanwhile
        self._stopped = stopped

    def take_time(self, event: Event) -> Timing | None:
        """Wait as long as an event lasts, and until it may be written; None when told to stop.

        Work begins at a tick boundary and ends at one; the write follows by the event's offset.
        """
        start = self._starting_tick()
        finish_us = self._boundary_us(start + event.duration)
        if not self._wait_until(self._boundary_us(start)):
            return None
        started_us = now_us()
        if not self._wait_until(finish_us):
            return None
        finished_us = now_us()
        if not self._wait_until(finish_us + self._pace.offset_us(event.order)):
            return None
        return Timing(started_us, finished_us)

    def _starting_tick(self) -> int:
        """The tick in which work that is ready now may begin: this one, or the next if it is too late."""
        tick, late_us = divmod(now_us() - self._zero_us, self._pace.tick_us)
        return max(0, tick if late_us <= LATE_TOLERANCE * self._pace.tick_us else tick + 1)

    def _boundary_us(self, tick: int) -> int:
        return self._zero_us + tick * self._pace.tick_us

    def _wait_until(self, moment_us: int) -> bool:
        """Wait until a moment; False when told to stop before. What takes too long meanwhile delays it."""
        while (left_us := moment_us - now_us()) > 0:
            if self._stopped():
                return False
            if left_us > LAST_WAIT_US:
                self._meanwhile(min(LONGEST_LOOK_S, (left_us - LAST_WAIT_US) / 1e6))
            else:
                time.sleep(left_us / 1e6)
        return True
