"""The worker processes of a run: started, listened to, stopped within a deadline."""

import logging
import multiprocessing
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess

from consumer.errors import WorkerFailed
from consumer.plan import WorkerPlan
from consumer.process import Work, work_as_process
from consumer.telling import Assigned, CrewmateGone, Failed, Halted, Holding, Order, Stop, Told

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 15.0


@dataclass(slots=True)
class _Member:
    number: int
    process: BaseProcess
    pipe: Pipe
    partitions: list[int] | None = None
    """None until the group has answered once."""
    holding: bool = False
    halted: list[Halted] = field(default_factory=list)
    failure: Failed | None = None
    told_of_end: bool = False


@dataclass(slots=True)
class Crew:
    """Worker processes by number, from 0."""

    _members: list[_Member] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """Sentences about workers that ended before they were told to."""

    def start(self, plans: Sequence[WorkerPlan], work: Work = work_as_process) -> None:
        """Start one process a plan; `work` is what each of them runs."""
        context = _process_context()
        for plan in plans:
            ours, theirs = context.Pipe()
            name = f"convoy-worker-{plan.number}"
            process = context.Process(target=work, args=(plan, theirs), name=name, daemon=True)
            process.start()
            theirs.close()
            self._members.append(_Member(plan.number, process, ours))

    def listen(self) -> None:
        """Take in what the workers told; raises WorkerFailed for one that ended with an error.

        A worker that was killed is noted in `ended`: the group hands its partitions to the others.
        """
        for member in self._members:
            _hear(member)
            if member.failure is not None:
                raise _worker_failed(member.number, member.failure)
            if not member.process.is_alive() and not member.told_of_end:
                member.told_of_end = True
                member.partitions = None
                self.order(CrewmateGone())
                self.ended.append(f"worker {member.number} {_manner_of(member.process.exitcode)}")

    @property
    def alive(self) -> int:
        """Number of workers that run."""
        return sum(member.process.is_alive() for member in self._members)

    @property
    def assignment(self) -> dict[int, list[int]]:
        """Worker to its partitions, for those that run and were given an answer, be it an empty one."""
        return {m.number: m.partitions for m in self._members if m.partitions is not None}

    @property
    def holding(self) -> int:
        """Number of workers that hold their first record and wait for the start."""
        return sum(member.holding and member.process.is_alive() for member in self._members)

    @property
    def halted(self) -> dict[int, Halted]:
        """Partition to the record before which it is halted."""
        return {halted.partition: halted for member in self._members for halted in member.halted}

    def order(self, order: Order) -> None:
        """Tell every worker; one that is gone does not hear it."""
        for member in self._members:
            with suppress(OSError):
                member.pipe.send(order)

    def stop(self) -> None:
        """Tell every worker to finish its transaction and leave; kill those that do not in time."""
        self.order(Stop())
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for member in self._members:
            member.process.join(max(0.0, deadline - time.monotonic()))
            if member.process.is_alive():
                log.warning("worker %s did not stop in %.0f s: killed", member.number, STOP_TIMEOUT_S)
                member.process.kill()
                member.process.join()
            _hear(member)
            member.pipe.close()
        for member in self._members:
            if member.failure is not None:
                raise _worker_failed(member.number, member.failure)


def _process_context() -> SpawnContext | ForkServerContext:
    """How processes are started: never by a plain fork, which would copy a broker client's locks.

    Where the system has it, a server that has imported everything once starts each worker in
    milliseconds.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["consumer.process"])
    return context


def _hear(member: _Member) -> None:
    try:
        while member.pipe.poll(0):
            told: Told = member.pipe.recv()
            match told:
                case Assigned(partitions):
                    member.partitions = partitions
                    # What it owns it has claimed anew, and tells again where it is halted.
                    member.halted.clear()
                case Holding():
                    member.holding = True
                case Halted():
                    member.halted.append(told)
                case Failed():
                    member.failure = told
    except (EOFError, ConnectionResetError):
        return


def _manner_of(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"was killed by signal {-exit_code}; its partitions go to the others"
    return f"ended by itself with exit code {exit_code}"


def _worker_failed(number: int, failure: Failed) -> WorkerFailed:
    return WorkerFailed(
        f"worker {number}: {failure.message}",
        hint=failure.hint,
        topic=failure.topic,
        partition=failure.partition,
        offset=failure.offset,
        key=failure.key,
    )
