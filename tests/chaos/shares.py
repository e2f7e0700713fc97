"""Share dispatch: a record whose worker dies, or takes too long, comes to another one."""

from functools import partial

from chaos.arena import Arena
from chaos.gang import Gang
from chaos.saboteurs import Act, Sabotage
from chaos.scene import Ground, Outcome, Play, conclude
from chaos.zombies import retire_awake
from consumer.leftovers import RUN_ITSELF
from lanes.dispatch import Dispatch

LOCK_S = 2.0
"""As the broker is set; see scene.BROKER_SETTINGS."""

DELIVERIES = 2
"""After so many a record is handed out no more; as the broker is set."""

SOME = 20
HOLDING = "after take"


def killed_holding(moment: str, name: str, ground: Ground, wanted: int) -> Outcome:
    """Workers die with a record in hand: before it is applied, or applied and not acknowledged."""
    arena = ground.arena(f"share-{name}", Dispatch.SHARE)

    def sabotage_of(_number: int) -> Sabotage:
        return Sabotage(arena.log, Act.KILL, moment, arena.rng.randint(2, 6))

    _keep_some(arena)
    with Gang(arena, sabotage_of) as gang:

        def enough() -> bool:
            _keep_some(arena)
            return min(arena.noted(Act.KILL), gang.killed) >= wanted

        gang.until(enough)
        landed = min(arena.noted(Act.KILL), gang.killed)
    return conclude(arena, wanted, landed)


def _keep_some(arena: Arena) -> None:
    """Write a few shipments where hardly any record waits: records go out one by one."""
    if arena.sent - arena.done() < SOME:
        arena.send(arena.shipments(SOME // 2))


def lock_expires(ground: Ground, wanted: int) -> Outcome:
    """A worker holds a record for longer than its lock; another one applies it, then the first one tries.

    Landed are those that woke and found their record applied already.
    """
    arena = ground.arena("share-lock", Dispatch.SHARE)
    _keep_some(arena)
    sleeper = Sabotage(arena.log, Act.SLEEP, HOLDING, 2, LOCK_S * 2)
    with Gang(arena, lambda n: Sabotage(arena.log) if n < 2 else sleeper) as gang:

        def enough() -> bool:
            _keep_some(arena)
            retire_awake(arena, gang)
            return arena.noted("came again") >= wanted

        gang.until(enough)
        landed = min(arena.noted("came again"), arena.noted("awake"))
    return conclude(arena, wanted, landed)


def delivery_limit(ground: Ground, wanted: int) -> Outcome:
    """Each worker dies holding its first record, until the broker hands the records out no more.

    Landed are records that no worker got in the drain: the run itself applied them, from the topic.
    """
    arena = ground.arena("share-limit", Dispatch.SHARE)
    arena.send(arena.shipments(wanted)[:wanted])
    with Gang(arena, lambda _: Sabotage(arena.log, Act.KILL, HOLDING)) as gang:
        gang.until(lambda: gang.killed >= arena.sent * DELIVERIES)
    outcome = conclude(arena, wanted, 0)
    landed = arena.number(f"select count(*) from history where worker = {RUN_ITSELF}")
    return Outcome(wanted, landed, outcome.judged)


SHARES: dict[str, Play] = {
    "share: killed holding a record": partial(killed_holding, HOLDING, "killed"),
    "share: killed after COMMIT": partial(killed_holding, "applied", "applied"),
    "share: lock expires": lock_expires,
    "share: delivery limit reached": delivery_limit,
}
