"""Share dispatch: a record whose worker dies, or takes too long, comes to another one."""

from functools import partial

from chaos.gang import Gang
from chaos.saboteurs import Act, Sabotage
from chaos.scene import Ground, Outcome, Play, conclude
from lanes.dispatch import Dispatch

LOCK_S = 2.0
"""As the broker is set; see scene.BROKER_SETTINGS."""

HOLDING = "after take"
AGAIN = "select count(*) from history where delivery > 1"


def killed_holding(moment: str, name: str, ground: Ground, wanted: int) -> Outcome:
    """Workers die with a record in hand: before it is applied, or applied and not acknowledged."""
    arena = ground.arena(f"share-{name}", Dispatch.SHARE)
    arena.send(arena.shipments(10 + wanted))
    with Gang(arena, lambda _: _kill(arena, moment)) as gang:

        def enough() -> bool:
            return min(arena.noted(Act.KILL), gang.killed) >= wanted

        gang.until(enough)
        landed = min(arena.noted(Act.KILL), gang.killed)
    return conclude(arena, wanted, landed)


def _kill(arena: object, moment: str) -> Sabotage:
    countdown = arena.rng.randint(2, 6)  # type: ignore[attr-defined]
    return Sabotage(arena.log, Act.KILL, moment, countdown)  # type: ignore[attr-defined]


def lock_expires(ground: Ground, wanted: int) -> Outcome:
    """A worker holds a record for longer than its lock; another one applies it, then the first one tries."""
    arena = ground.arena("share-lock", Dispatch.SHARE)
    arena.send(arena.shipments(10 + wanted))
    sleeper = Sabotage(arena.log, Act.SLEEP, HOLDING, 2, LOCK_S * 2)
    with Gang(arena, lambda n: sleeper if n % 2 else Sabotage(arena.log), size=4) as gang:

        def enough() -> bool:
            if arena.noted("awake") == arena.noted(Act.SLEEP) and arena.number(AGAIN) < wanted:
                gang.add(sleeper)
                arena.send(arena.shipments(2))
            return arena.number(AGAIN) >= wanted

        gang.until(enough)
        landed = min(arena.number(AGAIN), arena.noted("awake"))
    return conclude(arena, wanted, landed)


SHARES: dict[str, Play] = {
    "share: killed holding a record": partial(killed_holding, HOLDING, "killed"),
    "share: killed after COMMIT": partial(killed_holding, "applied", "applied"),
    "share: lock expires": lock_expires,
}
