"""Faults of the database: locked, crowded, killed while it folds its log, and full."""

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from locks import write_lock

from chaos.arena import Arena
from chaos.gang import Gang
from chaos.saboteurs import Act, Sabotage
from chaos.scene import Ground, Outcome, Play, conclude

FOREIGN_WRITERS = 8
CROWD = """
import sqlite3, sys, time
file = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
number = int(sys.argv[2])
while True:
    file.execute("begin immediate")
    file.execute("insert into foreign_writes values (?)", (number,))
    file.execute("commit")
    time.sleep(0.005)
"""
FULL_SLACK_BYTES = 300_000
CHECKPOINT_S = (0.0, 0.004)


def foreign_lock(seconds: float, ground: Ground, wanted: int) -> Outcome:
    """Another program holds the write lock; landed where nothing was applied meanwhile."""
    arena = ground.arena("foreign-lock")
    landed = 0
    with Gang(arena, lambda _: Sabotage(arena.log)) as gang:
        for _ in range(wanted):
            done = arena.done()
            arena.send(arena.shipments(50))
            gang.until(lambda done=done: arena.done() > done)  # type: ignore[misc]
            with write_lock(arena.db):
                before = arena.done()
                arena.send(arena.shipments(50))
                time.sleep(seconds)  # the length of the fault
                landed += arena.done() == before
            gang.until(lambda before=before: arena.done() > before)  # type: ignore[misc]
    return conclude(arena, wanted, landed)


def crowd(ground: Ground, wanted: int) -> Outcome:
    """Eight other programs write as fast as they can for `wanted` seconds; landed are the seconds."""
    arena = ground.arena("eight-writers")
    with closing(sqlite3.connect(arena.db, isolation_level=None)) as file:
        file.execute("create table foreign_writes (writer)")
    with _writers(arena.db), Gang(arena, lambda _: Sabotage(arena.log)) as gang:
        begun = time.monotonic()

        def enough() -> bool:
            arena.keep_loaded()
            return time.monotonic() - begun >= wanted and arena.done() > 0

        gang.until(enough, wanted + 30.0)
    all_wrote = arena.number("select count(distinct writer) from foreign_writes") == FOREIGN_WRITERS
    return conclude(arena, wanted, wanted if all_wrote and not gang.failures else 0)


@contextmanager
def _writers(db: Path) -> Iterator[None]:
    command = [sys.executable, "-c", CROWD, str(db)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(FOREIGN_WRITERS)]
    try:
        yield
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def kill_in_checkpoint(ground: Ground, wanted: int) -> Outcome:
    """Workers die inside a checkpoint: begun, not ended, and the process gone by SIGKILL."""
    arena = ground.arena("kill-in-checkpoint")

    def sabotage_of(_number: int) -> Sabotage:
        after_s = arena.rng.uniform(*CHECKPOINT_S)
        moment = "before group commit"
        return Sabotage(arena.log, Act.KILL_IN_CHECKPOINT, moment, arena.rng.randint(2, 4), after_s)

    def landed() -> int:
        return arena.noted(Act.KILL_IN_CHECKPOINT) - arena.noted("checkpoint done")

    arena.keep_loaded()
    with Gang(arena, sabotage_of) as gang:

        def enough() -> bool:
            arena.keep_loaded()
            return min(landed(), gang.killed) >= wanted

        gang.until(enough)
        count = min(landed(), gang.killed)
    return conclude(arena, wanted, count)


def full(ground: Ground, wanted: int) -> Outcome:
    """The file system runs full in the middle of a run, and is given room again.

    A small loop file system where we may mount one; elsewhere a limit on the database's pages.
    """
    arena = ground.arena("disk-full")
    landed = 0
    with _small_disk(arena) as disk:
        for _ in range(wanted):
            limit = 0 if disk else arena.number("select * from pragma_page_count") + 4
            filler = _fill(disk) if disk else None
            with Gang(arena, lambda _, limit=limit: Sabotage(arena.log, most_pages=limit)) as gang:  # type: ignore[misc]
                arena.send(arena.shipments(400))
                gang.until(lambda: any("full" in failure for failure in gang.failures), 60)
                landed += any("full" in failure for failure in gang.failures)
                gang.size = 0
            if filler:
                filler.unlink()
        return conclude(arena, wanted, landed)


@contextmanager
def _small_disk(arena: Arena) -> Iterator[Path | None]:
    """Move the table to a file system of a few megabytes; None where mounting is not allowed."""
    image, disk = arena.folder / "disk.img", arena.folder / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(24_000_000)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(disk)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    try:
        moved = disk / arena.db.name
        shutil.move(arena.db, moved)
        arena.db.symlink_to(moved)
        yield disk
        kept = moved.read_bytes()
        arena.db.unlink()
        arena.db.write_bytes(kept)
    finally:
        subprocess.run(["umount", str(disk)], check=False, capture_output=True)


def _fill(disk: Path) -> Path:
    """Leave only a little room."""
    filler = disk / "filler"
    free = subprocess.run(
        ["df", "-B1", "--output=avail", str(disk)], check=True, capture_output=True, text=True
    )
    size = int(free.stdout.split()[1]) - FULL_SLACK_BYTES
    filler.write_bytes(b"\1" * max(0, size))
    return filler


def tables(lock_s: float) -> dict[str, Play]:
    """The faults, with the length of a foreign lock."""
    return {
        f"foreign lock held {lock_s:.0f} s": partial(foreign_lock, lock_s),
        "8 foreign writers, seconds": crowd,
        "SIGKILL in a checkpoint": kill_in_checkpoint,
        "disk full": full,
    }
