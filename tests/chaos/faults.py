"""All faults, in the order in which a run tries them, with how often each is to land."""

from dataclasses import dataclass

from chaos.accused import ACCUSED
from chaos.bad_records import BAD_RECORDS
from chaos.kills import KILLS
from chaos.outages import outages
from chaos.scene import Play
from chaos.shares import SHARES
from chaos.storms import STORMS
from chaos.tables import tables
from chaos.topics_changed import TOPICS_CHANGED
from chaos.zombies import ZOMBIES

FREEZE_S = 30.0
LOCK_S = 30.0
SHORT_S = 4.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `first` landings are tried in the first round, `most` over the whole run."""

    name: str
    play: Play
    first: int
    most: int


def faults(*, short: bool) -> list[Fault]:
    """The suite; `short` freezes and locks for seconds where the full length would fill the time box."""
    freeze_s, lock_s = (SHORT_S, SHORT_S) if short else (FREEZE_S, LOCK_S)
    counted: list[tuple[dict[str, Play], int, int]] = [
        (KILLS, 4, 100),
        (ACCUSED, 1, 1),
        (ZOMBIES, 2, 50),
        (STORMS, 10, 200),
        (BAD_RECORDS, 50, 1000),
        (outages(freeze_s), 1, 5),
        (tables(lock_s), 2, 20),
        (TOPICS_CHANGED, 1, 5),
        (SHARES, 3, 50),
    ]
    return [Fault(name, play, first, most) for plays, first, most in counted for name, play in plays.items()]
