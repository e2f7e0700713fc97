"""Brokers and producers that go away under load, and come back."""

import os
import signal
import time
from collections.abc import Callable
from functools import partial

from broker.native import NativeBroker
from broker.topics import Topics
from chaos.arena import Arena
from chaos.gang import Gang
from chaos.load import Loader
from chaos.saboteurs import Sabotage
from chaos.scene import Ground, Outcome, Play, conclude

PAUSE_S = 0.001
"""Between two records of a load that lasts."""

SHIPMENTS_A_TIME = 300
FINISH_TIMEOUT_S = 120.0

Outage = Callable[[NativeBroker], bool]
"""Takes the broker away and brings it back; whether it was seen to be away."""


def end_in_order(broker: NativeBroker) -> bool:
    """SIGTERM, and a new process on the same data."""
    return _anew(broker, kill=False)


def kill(broker: NativeBroker) -> bool:
    """SIGKILL, and a new process on the same data."""
    return _anew(broker, kill=True)


def _anew(broker: NativeBroker, *, kill: bool) -> bool:
    before = broker.pid
    broker.end(kill=kill)
    gone = not _exists(before)
    broker.start_again()
    return gone and broker.pid != before


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def freeze(seconds: float, broker: NativeBroker) -> bool:
    """SIGSTOP for some seconds: connections stay open, and nothing answers."""
    os.kill(broker.pid, signal.SIGSTOP)
    time.sleep(seconds)  # the length of the fault
    stat = open(f"/proc/{broker.pid}/stat").read()  # noqa: PTH123, SIM115
    os.kill(broker.pid, signal.SIGCONT)
    return stat.rpartition(")")[2].split()[0] == "T"


def outage(name: str, take_away: Outage, ground: Ground, wanted: int) -> Outcome:
    """Workers and a producer go on while the broker is away, so often."""
    arena = ground.arena(name)
    landed = 0
    for _ in range(wanted):
        loader = _loader(arena)
        with Gang(arena, lambda _: Sabotage(arena.log)) as gang:
            done = arena.done()
            gang.until(lambda done=done: arena.done() > done + 100)  # type: ignore[misc]
            landed += take_away(ground.broker)
            gang.until(lambda: not loader.running, FINISH_TIMEOUT_S)  # noqa: B023
            loader.finish(1)
    Topics(arena.connection).get(arena.name)
    return conclude(arena, wanted, landed)


def _loader(arena: Arena) -> Loader:
    items = arena.shipments(SHIPMENTS_A_TIME)
    arena.sent += len(items)
    return Loader(arena.connection, arena.name, items, arena.acks, PAUSE_S)


def kill_producer(ground: Ground, wanted: int) -> Outcome:
    """SIGKILL of the producer in the middle of its records; the next one writes what the topic lacks."""
    arena = ground.arena("producer-sigkill")
    landed = 0
    with Gang(arena, lambda _: Sabotage(arena.log)) as gang:
        while landed < wanted:
            loader = _loader(arena)
            done = arena.done()
            gang.until(lambda done=done: arena.done() > done + 100)  # type: ignore[misc]
            landed += loader.kill()
            loader.start_again()
            gang.until(lambda: not loader.running)  # noqa: B023
            loader.finish(1)
    return conclude(arena, wanted, landed)


def outages(freeze_s: float) -> dict[str, Play]:
    """The faults, with the length of a frozen broker."""
    return {
        "broker SIGTERM": partial(outage, "broker-sigterm", end_in_order),
        "broker SIGKILL": partial(outage, "broker-sigkill", kill),
        f"broker SIGSTOP {freeze_s:.0f} s": partial(outage, "broker-sigstop", partial(freeze, freeze_s)),
        "producer SIGKILL": kill_producer,
    }
