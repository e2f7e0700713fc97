"""Workers that are broken on purpose, under the faults that show it: the checker must accuse each of them."""

from collections.abc import Callable
from functools import partial

from analysis.verdict import Holds
from chaos.arena import Arena
from chaos.kills import kill_until
from chaos.load import bad_run
from chaos.scene import Ground, Outcome, Play, conclude
from chaos.zombies import two_sleepers

SEEDS = 5
"""Within so many tries each broken worker is to be caught."""

Provoke = Callable[[Arena, str], None]
"""Puts a fault on a worker that is broken as named."""


def _zombie(arena: Arena, broken: str) -> None:
    two_sleepers(arena, broken, landed_by="applied")


def _kill(point: str, arena: Arena, broken: str) -> None:
    kill_until(arena, point, 2, broken)


def _bad_records(arena: Arena, _broken: str) -> None:
    arena.send(bad_run(12, partition=0))
    arena.keep_loaded()


PROVOKE: dict[str, Provoke] = {
    "fence removed": _zombie,
    "offset in a second transaction": partial(_kill, "after COMMIT"),
    "group commit before the database": partial(_kill, "after BEGIN"),
    "bad record swallowed": _bad_records,
    "epoch ignored": _zombie,
}


def accuse(broken: str, ground: Ground, wanted: int) -> Outcome:
    """Try a broken worker with new seeds until the checker says false; landed is how often it did.

    Each caught time takes the least number of tries, at most SEEDS; one that is never caught lands never.
    """
    caught = 0
    for _ in range(SEEDS * wanted):
        arena = ground.arena(f"broken-{broken.replace(' ', '-')}")
        PROVOKE[broken](arena, broken)
        outcome = conclude(arena, 1, 1, broken=broken)
        caught += outcome.judged.holds is Holds.FALSE
        if caught >= wanted:
            break
    return Outcome(wanted, caught, outcome.judged, counts=False)


ACCUSED: dict[str, Play] = {f"caught: {broken}": partial(accuse, broken) for broken in PROVOKE}
