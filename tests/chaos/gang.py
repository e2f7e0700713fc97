"""Worker processes kept at their number while a fault goes on: who dies is replaced."""

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from broker.settings import Connection
from chaos.arena import WORKERS, Arena
from chaos.saboteurs import Sabotage
from consumer.crew import Crew
from consumer.errors import WorkerFailed

INTERVAL_S = 0.02
SCENE_TIMEOUT_S = 120.0
"""How long one fault may take to land."""

SabotageOf = Callable[[int], Sabotage]
"""Worker number to what it does to itself."""


class Gang:
    """`size` workers on an arena, for the length of a block. Numbers rise: no worker has a number again."""

    def __init__(
        self, arena: Arena, sabotage_of: SabotageOf, size: int = WORKERS, connection: Connection | None = None
    ) -> None:
        self._arena = arena
        self._sabotage_of = sabotage_of
        self._connection = connection
        self._crew = Crew()
        self._run = arena.start_run(size)
        self._next_number = 0
        self.size = size
        self.failures: list[str] = []
        """What workers ended with that ended with an error of their own."""

    def __enter__(self) -> Self:
        self._gone_before = set(active_children())
        self.tend()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGCONT)
        with suppress(WorkerFailed):
            self._crew.stop()

    def add(self, sabotage: Sabotage | None = None) -> int:
        """Start one more worker; its number."""
        number = self._next_number
        self._next_number += 1
        plan = self._arena.worker_plan(self._run, number, self._connection)
        self._crew.start([plan], (sabotage or self._sabotage_of(number)).work())
        return number

    def tend(self) -> None:
        """Hear what the workers tell, and replace who is gone."""
        try:
            self._crew.listen()
        except WorkerFailed as failed:
            if str(failed) not in self.failures:
                self.failures.append(str(failed))
                logging.getLogger(__name__).info("%s", failed)
        for _ in range(self.size - self._crew.alive):
            self.add()

    @property
    def killed(self) -> int:
        """Workers that died of SIGKILL."""
        return sum("signal 9" in sentence for sentence in self._crew.ended)

    def processes(self) -> list[BaseProcess]:
        """The workers that run, oldest first."""
        mine = [child for child in active_children() if child not in self._gone_before]
        workers = [child for child in mine if child.name.startswith("convoy-worker-")]
        return sorted(workers, key=lambda child: int(child.name.rpartition("-")[2]))

    def until(self, condition: Callable[[], object], timeout_s: float = SCENE_TIMEOUT_S) -> bool:
        """Tend until a condition holds; whether it did within the deadline."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.tend()
            time.sleep(INTERVAL_S)
        return True
