"""Workers whose time is over and who do not know it: stopped, slow, or taken for owners by themselves."""

import os
import signal
import time

from chaos.arena import Arena
from chaos.evidence import notes
from chaos.gang import Gang
from chaos.saboteurs import Act, Sabotage
from chaos.scene import Ground, Outcome, Play, conclude

MAX_POLL_INTERVAL_S = 2
WITH_RECORDS = "after poll"


def epoch_now(arena: Arena) -> int:
    """The sum of all epochs: it rises with each claim."""
    return arena.number("select coalesce(sum(owner_epoch), 0) from progress")


def wake(arena: Arena, pid: int, landed_by: str = "refused") -> bool:
    """SIGCONT; whether the worker then told that its commit was refused (or went through) soon."""
    before = len([each for each in notes(arena.log, landed_by) if each.pid == pid])
    os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if len([each for each in notes(arena.log, landed_by) if each.pid == pid]) > before:
            return True
        if arena.noted("awake") and not _alive(pid):
            return False
        time.sleep(0.01)
    return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def stopped_too_long(ground: Ground, wanted: int) -> Outcome:
    """A worker is stopped with records in hand; the others own and write its partitions; it wakes."""
    arena = ground.arena("zombie-stopped")
    arena.keep_loaded()
    landed = 0
    while landed < wanted:
        before = arena.noted(Act.STOP)
        with Gang(arena, lambda _: Sabotage(arena.log), size=3) as gang:
            arena.keep_loaded()
            gang.add(Sabotage(arena.log, Act.STOP, WITH_RECORDS, arena.rng.randint(1, 2)))

            def asleep(before: int = before) -> bool:
                arena.keep_loaded()
                return arena.noted(Act.STOP) > before

            if not gang.until(asleep):
                break
            sleeper = notes(arena.log, Act.STOP)[-1].pid
            mine = f"select count(*) from progress where owner like '%process {sleeper})'"
            if not gang.until(lambda query=mine: arena.number(query) == 0):  # type: ignore[misc]
                break
            # The others have gone on: something was applied since the last of its partitions went.
            done = arena.done()
            arena.send(arena.shipments(20))
            gang.until(lambda done=done: arena.done() > done)  # type: ignore[misc]
            landed += wake(arena, sleeper)
    return conclude(arena, wanted, landed)


def woken_before_owner_writes(ground: Ground, wanted: int) -> Outcome:
    """The zombie wakes when its partitions have a new owner who has not written: the offset still fits."""
    arena = ground.arena("zombie-early")
    landed = 0
    while landed < wanted and two_sleepers(arena):
        landed += 1
    return conclude(arena, wanted, landed)


def two_sleepers(arena: Arena, broken: str = "", landed_by: str = "refused") -> bool:
    """One worker stops with records in hand; its successor claims and stops as well; the first one wakes.

    Whether the first one then met what `landed_by` says, before the second was woken.
    """
    sabotage = Sabotage(arena.log, Act.STOP, WITH_RECORDS, broken=broken)
    arena.send(arena.shipments(40))
    before = arena.noted(Act.STOP)
    with Gang(arena, lambda _: sabotage, size=1) as gang:
        if not gang.until(lambda: arena.noted(Act.STOP) == before + 1):
            return False
        first = notes(arena.log, Act.STOP)[-1].pid
        gang.size = 2
        if not gang.until(lambda: arena.noted(Act.STOP) == before + 2):
            return False
        return wake(arena, first, landed_by)


def slow_handler(ground: Ground, wanted: int) -> Outcome:
    """A worker takes longer than max.poll.interval.ms over its records, is thrown out, and then commits."""
    arena = ground.arena("slow-handler", max_poll_interval_ms=f"{MAX_POLL_INTERVAL_S}000")
    arena.keep_loaded()
    with Gang(arena, lambda _: Sabotage(arena.log), size=2) as gang:
        slow = Sabotage(arena.log, Act.SLEEP, WITH_RECORDS, seconds=MAX_POLL_INTERVAL_S + 2.0)

        def late() -> int:
            return len(
                {n.pid for n in notes(arena.log, "refused")} & {n.pid for n in notes(arena.log, "awake")}
            )

        def enough() -> bool:
            arena.keep_loaded()
            if len(gang.processes()) < 4 and arena.noted(Act.SLEEP) < wanted * 3:
                gang.add(slow)
            retire_awake(arena, gang)
            return late() >= wanted

        gang.until(enough)
        landed = late()
    return conclude(arena, wanted, landed)


def retire_awake(arena: Arena, gang: Gang) -> None:
    """Send those home that were slow once, and have met their refusal or had nothing to lose."""
    for each in notes(arena.log, "awake"):
        old = time.monotonic() - each.at_s > 2
        if old and each.pid in {process.pid for process in gang.processes()}:
            os.kill(each.pid, signal.SIGTERM)


def both_by_hand(ground: Ground, wanted: int) -> Outcome:
    """Two workers take every partition without asking the group; each refusal is one landing."""
    arena = ground.arena("by-hand")
    arena.keep_loaded()
    rude = Sabotage(arena.log, broken="partitions taken by hand", batch=5)
    with Gang(arena, lambda _: rude, size=2) as gang:

        def enough() -> bool:
            arena.keep_loaded()
            return arena.noted("refused") >= wanted and len({n.pid for n in notes(arena.log, "applied")}) > 1

        gang.until(enough)
        landed = arena.noted("refused")
    return conclude(arena, wanted, landed)


ZOMBIES: dict[str, Play] = {
    "SIGSTOP past the session timeout": stopped_too_long,
    "SIGSTOP, awake before the new owner writes": woken_before_owner_writes,
    "handler past max.poll.interval.ms": slow_handler,
    "one partition assigned by hand twice": both_by_hand,
}
