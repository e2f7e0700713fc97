"""Workers that do something to themselves at a moment of their life, and are the product otherwise."""

import logging
import os
import signal
import sqlite3
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import consumer.group_worker
import consumer.process
from chaos.broken import BREAK, put
from chaos.evidence import note
from chaos.seams import Seams
from consumer.plan import WorkerPlan
from consumer.process import Work, work_as_process

KILL_POINTS = {
    "after poll": "after poll",
    "after BEGIN": "apply after begin immediate",
    "after state": "apply after put_shipment",
    "after offset": "apply after set_next_offset",
    "before COMMIT": "apply before commit",
    "after COMMIT": "apply after commit",
    "before group commit": "before group commit",
    "after group commit": "after group commit",
    "before dead letter is sent": "before send",
    "dead letter sent, not marked": "before mark",
}
"""What the table calls it, and the moment."""

ALWAYS_NOTED = {"refused", "came again", "applied", "after assigned", "not delivered"}


class Act(StrEnum):
    """What a saboteur does when its moment has come."""

    NOTHING = "nothing"
    KILL = "kill"
    STOP = "stop"
    SLEEP = "sleep"
    KILL_IN_CHECKPOINT = "kill in checkpoint"


@dataclass(frozen=True, slots=True)
class Sabotage:
    """What one worker does to itself; `log` is where it tells of it."""

    log: Path
    act: Act = Act.NOTHING
    moment: str = ""
    countdown: int = 1
    """At which coming of the moment: 1 is the first. It is done once."""
    seconds: float = 0.0
    """How long it sleeps, or how long into a checkpoint it dies."""
    broken: str = ""
    """Which part of the promise is taken out; see chaos.broken."""
    batch: int = 20
    """Most records of one transaction."""
    most_pages: int = 0
    """Largest size of the database, in pages of 4,096 bytes; 0: no limit."""

    def work(self) -> Work:
        """What a worker process runs."""
        return partial(sabotaged_work, self)


def sabotaged_work(sabotage: Sabotage, plan: WorkerPlan, pipe: Pipe) -> None:
    """Be a worker with a sabotage; the entry point of its process."""
    consumer.group_worker.BATCH = sabotage.batch
    put(consumer.process, "set_up_logging", lambda _: _log_to(sabotage.log.with_suffix(".log")))
    act = _Act(sabotage, plan.asked.db)
    if sabotage.broken:
        BREAK[sabotage.broken]()
    Seams(act.tap).open()
    if sabotage.most_pages:
        _limit_pages(sabotage.most_pages)
    work_as_process(plan, pipe)


def _log_to(file: Path) -> None:
    logging.basicConfig(filename=file, level=logging.INFO, format="%(process)d %(message)s")


def _limit_pages(most: int) -> None:
    connect = sqlite3.connect

    def limited(*args: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **named)
        sqlite3.Connection.execute(connection, f"pragma max_page_count = {most}")
        return connection

    put(sqlite3, "connect", limited)


class _Act:
    """Counts the comings of the moment, and acts."""

    def __init__(self, sabotage: Sabotage, db: Path) -> None:
        self._sabotage = sabotage
        self._db = db
        self._left = sabotage.countdown if sabotage.act is not Act.NOTHING else 0

    def tap(self, moment: str) -> None:
        """Take notice of a moment."""
        sabotage = self._sabotage
        if moment in ALWAYS_NOTED:
            note(sabotage.log, moment)
        if moment != sabotage.moment or self._left == 0:
            return
        self._left -= 1
        if self._left:
            return
        note(sabotage.log, sabotage.act)
        match sabotage.act:
            case Act.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Act.STOP:
                os.kill(os.getpid(), signal.SIGSTOP)
                note(sabotage.log, "awake")
            case Act.SLEEP:
                time.sleep(sabotage.seconds)
                note(sabotage.log, "awake")
            case Act.KILL_IN_CHECKPOINT:
                self._die_in_checkpoint()

    def _die_in_checkpoint(self) -> None:
        """Fold the log into the file while a thread waits to kill us; a survivor says so and dies too."""
        file = sqlite3.connect(self._db, isolation_level=None)
        killer = threading.Timer(self._sabotage.seconds, os.kill, (os.getpid(), signal.SIGKILL))
        killer.start()
        file.execute("pragma wal_checkpoint(truncate)")
        note(self._sabotage.log, "checkpoint done")
        killer.join()
