"""Members that come and go faster than the group can settle, under each way of dealing partitions out."""

import os
import signal
import time
from functools import partial
from typing import Any

from chaos.evidence import notes
from chaos.gang import Gang
from chaos.saboteurs import Sabotage
from chaos.scene import Ground, Outcome, Play, conclude

CHANGE_INTERVAL_S = 0.25
MOST_MEMBERS = 6

PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {},
    "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer protocol": {"group_protocol": "consumer"},
}
"""What the table calls it, and the properties that choose it."""


def storm(protocol: str, ground: Ground, wanted: int) -> Outcome:
    """Join and leave until so many members were seen to have come (the group answered them) or gone."""
    arena = ground.arena(f"storm-{protocol.replace(' ', '-')}", **PROTOCOLS[protocol])
    arena.keep_loaded()
    with Gang(arena, lambda _: Sabotage(arena.log), size=1) as gang:
        next_change = time.monotonic()
        left: set[int] = set()

        def changes() -> int:
            return len(members()) + len(left - {process.pid for process in gang.processes()})

        def members() -> set[int]:
            return {each.pid for each in notes(arena.log, "after assigned")}

        def enough() -> bool:
            nonlocal next_change
            arena.keep_loaded()
            if time.monotonic() > next_change:
                next_change = time.monotonic() + CHANGE_INTERVAL_S
                _change(gang, members(), left)
            return changes() >= wanted

        gang.until(enough)
        landed = changes()
    return conclude(arena, wanted, landed)


def _change(gang: Gang, members: set[int], left: set[int]) -> None:
    """One more member, or one that the group knows less; the first worker stays."""
    staying = [each for each in gang.processes() if each.pid not in left]
    known = [each.pid for each in staying[1:] if each.pid in members]
    if known and len(staying) >= MOST_MEMBERS // 2:
        os.kill(known[0] or 0, signal.SIGTERM)
        left.add(known[0] or 0)
    elif len(staying) < MOST_MEMBERS:
        gang.add()


STORMS: dict[str, Play] = {f"join and leave, {name}": partial(storm, name) for name in PROTOCOLS}
