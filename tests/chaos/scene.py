"""What every fault has in common: the ground it is tried on, and how its outcome is told."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from analysis.verdict import Holds
from broker.native import NativeBroker
from broker.settings import Connection
from chaos.arena import Arena, Judged
from consumer.errors import WorkerFailed
from lanes.dispatch import Dispatch

IMPATIENT = {
    "session.timeout.ms": "1500",
    "heartbeat.interval.ms": "200",
    "topic.metadata.refresh.interval.ms": "1000",
    "reconnect.backoff.max.ms": "500",
}
"""Groups that notice soon that a member is gone, so that a suite lives to see many faults."""

BROKER_SETTINGS = {
    "group.min.session.timeout.ms": "300",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "2000",
    "group.share.delivery.count.limit": "2",
}
"""The broker's side of the same."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fault on one arena. `landed` is counted by evidence."""

    wanted: int
    landed: int
    judged: Judged
    counts: bool = True
    """Whether its records are the product's: a worker broken on purpose loses some by design."""

    @property
    def holds(self) -> Holds:
        """The checker's word; unknown for a fault that was not seen to land as often as it should."""
        if self.judged.holds is Holds.TRUE and self.landed < self.wanted:
            return Holds.UNKNOWN
        return self.judged.holds

    @property
    def reasons(self) -> list[str]:
        """Why it is not true."""
        missing = self.landed < self.wanted
        return self.judged.reasons + [f"landed {self.landed} of {self.wanted}"] * missing


@dataclass(slots=True)
class Ground:
    """A broker of our own, a folder, and a seed from which each arena draws its own."""

    broker: NativeBroker
    folder: Path
    seed: int
    _made: int = 0
    rng: Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)

    def connection(self, **properties: str) -> Connection:
        """How to reach the broker, with properties such as `max_poll_interval_ms="2000"`."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        return Connection(self.broker.bootstrap_servers, {**IMPATIENT, **named})

    def connection_for(self, dispatch: Dispatch, **properties: str) -> Connection:
        """The same for a dispatch: what a share group's members are patient about is the broker's."""
        if dispatch is Dispatch.SHARE:
            return Connection(self.broker.bootstrap_servers)
        return self.connection(**properties)

    def arena(self, name: str, dispatch: Dispatch = Dispatch.GROUP, **properties: str) -> Arena:
        """A topic and a table of their own."""
        self._made += 1
        connection = self.connection_for(dispatch, **properties)
        label = f"{name}-{self._made}"
        return Arena(connection, label, self.folder / label, self.rng.randrange(2**32), dispatch)


Play = Callable[[Ground, int], Outcome]
"""Tries a fault until it has landed so often, drains and judges."""


def conclude(arena: Arena, wanted: int, landed: int, *, broken: str = "") -> Outcome:
    """Drain the arena, let the checker judge it."""
    over = time.monotonic()
    try:
        arena.drain(broken)
    except WorkerFailed as failed:
        judged = arena.judge(over)
        said = Judged(
            judged.holds if judged.holds is not Holds.TRUE else Holds.FALSE,
            [*judged.reasons, str(failed)],
            judged.records,
            judged.lost,
            judged.duplicated,
            judged.refused,
            judged.recovery_s,
        )
        return Outcome(wanted, landed, said, counts=not broken)
    return Outcome(wanted, landed, arena.judge(over), counts=not broken)
