"""What a worker was told to do, asked without waiting."""

import logging
import signal
from multiprocessing.connection import Connection as Pipe

from consumer.telling import Go, Order, Told

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
        # Ctrl-C reaches the whole process group; only the one who started us decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, *_: object) -> None:
        self._stopped = True

    def _listen(self) -> None:
        try:
            while not self._stopped and self._pipe.poll(0):
                order: Order = self._pipe.recv()
                if isinstance(order, Go):
                    self._zero_us = order.zero_us
                else:
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

    def tell(self, told: Told) -> None:
        """Tell the one who started us."""
        try:
            self._pipe.send(told)
        except OSError:
            log.info("the process that started this worker is gone")
