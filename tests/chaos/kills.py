"""Workers that die: by themselves at a point of their work, and by a stranger's hand at any time."""

import os
import signal
import time
from contextlib import suppress
from functools import partial

from chaos.arena import Arena
from chaos.gang import Gang
from chaos.saboteurs import KILL_POINTS, Act, Sabotage
from chaos.scene import Ground, Outcome, Play, conclude

BAD_EVERY = 5
"""For the points around the dead-letter relay: every fifth record is no event."""

KILL_INTERVALS_S = (0.2, 0.8)


def kill_at(point: str, ground: Ground, wanted: int) -> Outcome:
    """Workers that kill themselves at a point, one after the other, until so many have."""
    arena = ground.arena(point.lower().replace(" ", "-").replace(",", ""))
    landed = kill_until(arena, point, wanted)
    return conclude(arena, wanted, landed)


def kill_until(arena: Arena, point: str, wanted: int, broken: str = "") -> int:
    """Keep workers and load coming until so many have died at the point; how many did."""
    bad_every = BAD_EVERY if "dead letter" in point else 0

    def sabotage_of(_number: int) -> Sabotage:
        countdown = arena.rng.randint(1, 3)
        return Sabotage(arena.log, Act.KILL, KILL_POINTS[point], countdown, broken=broken)

    arena.keep_loaded(bad_every)
    with Gang(arena, sabotage_of) as gang:

        def enough() -> bool:
            arena.keep_loaded(bad_every)
            return min(arena.noted(Act.KILL), gang.killed) >= wanted

        gang.until(enough)
        return min(arena.noted(Act.KILL), gang.killed)


def kill_at_random(ground: Ground, wanted: int, shipments: int = 0) -> Outcome:
    """SIGKILL from outside, to any worker at any time; `shipments` are written at the start."""
    arena = ground.arena("random-sigkill")
    if shipments:
        arena.send(arena.shipments(shipments))
    with Gang(arena, lambda _: Sabotage(arena.log)) as gang:
        next_kill = time.monotonic() + 1

        def enough() -> bool:
            nonlocal next_kill
            arena.keep_loaded()
            if time.monotonic() > next_kill and gang.processes():
                next_kill = time.monotonic() + arena.rng.uniform(*KILL_INTERVALS_S)
                victim = arena.rng.choice(gang.processes())
                with suppress(ProcessLookupError):
                    os.kill(victim.pid or 0, signal.SIGKILL)
            return gang.killed >= wanted

        gang.until(enough)
        landed = gang.killed
    return conclude(arena, wanted, landed)


KILLS: dict[str, Play] = {
    **{f"SIGKILL {point}": partial(kill_at, point) for point in KILL_POINTS},
    "SIGKILL at random": kill_at_random,
}
