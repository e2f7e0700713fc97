"""A worker as a process of its own: what it is started with, and how it ends."""

import logging
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from broker.settings import Connection
from console.output import set_up_logging
from consumer.telling import Failed, Told
from consumer.worker import Worker
from lanes.errors import ConvoyError
from state.records import Source
from state.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What a worker process needs to know."""

    connection: Connection
    source: Source
    db: Path
    run: int
    number: int
    version_check: bool
    verbose: int


class _StopSign:
    """Set by SIGTERM, or by the other end of the pipe: it says stop, or it is gone with its process."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._terminated = False
        # Ctrl-C reaches the whole process group; only the one who started us decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, *_: object) -> None:
        self._terminated = True

    def __call__(self) -> bool:
        # A pipe and no shared lock: a worker killed at any point leaves nothing held for the others.
        return self._terminated or self._pipe.poll(0)


def work_as_process(plan: WorkerPlan, pipe: Pipe) -> None:
    """Run a worker until told to stop; an error is told over the pipe, and the exit code is 1."""
    set_up_logging(plan.verbose)
    stopped = _StopSign(pipe)

    def tell(told: Told) -> None:
        try:
            pipe.send(told)
        except BrokenPipeError:
            log.info("the process that started this worker is gone")

    try:
        source = plan.source
        store = Store.open(plan.db, source.topic, source.topic_id, source.group_id)
        try:
            Worker(
                plan.connection,
                store,
                run=plan.run,
                number=plan.number,
                version_check=plan.version_check,
                tell=tell,
            ).work(stopped)
        finally:
            store.close()
    except ConvoyError as error:
        tell(Failed.of(error))
        raise SystemExit(1) from error
