"""What a worker was told to do, asked without waiting."""

import logging
import signal
from multiprocessing.connection import Connection as Pipe

from consumer.telling import CrewmateGone, Go, Order, Stop, Told

log = logging.getLogger(__name__)


class Orders:
    """A worker's end of the pipe.

    A pipe and no shared lock: a worker killed at any point leaves nothing held for the others. When the
    other end is gone with its process, that counts as an order to stop.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._stopped = False
        self._zero_us: int | None = None
        self._crewmates_gone = 0
        # Ctrl-C reaches the whole process group; only the one who started us decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, *_: object) -> None:
        self._stopped = True

    def _listen(self) -> None:
        try:
            while not self._stopped and self._pipe.poll(0):
                order: Order = self._pipe.recv()
                match order:
                    case Go(zero_us):
                        self._zero_us = zero_us
                    case CrewmateGone():
                        self._crewmates_gone += 1
                    case Stop():
                        self._stopped = True
        except (EOFError, OSError):
            self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether to finish and leave."""
        self._listen()
        return self._stopped

    @property
    def zero_us(self) -> int | None:
        """When tick 0 of a paced run begins; None until every worker is ready."""
        self._listen()
        return self._zero_us

    @property
    def crewmates_gone(self) -> int:
        """How many other workers of the run ended without being told to."""
        self._listen()
        return self._crewmates_gone

    def tell(self, told: Told) -> None:
        """Tell the one who started us."""
        try:
            self._pipe.send(told)
        except OSError:
            log.info("the process that started this worker is gone")
