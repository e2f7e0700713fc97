"""The start of a paced run: nothing begins until every worker is ready, and all begin at once."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from broker.topics import Topic
from consumer.crew import Crew
from consumer.errors import RunStalled, WorkerFailed
from consumer.telling import Go
from lanes.dispatch import Dispatch
from state.database import now_us
from state.store import Store

log = logging.getLogger(__name__)

READY_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 8.0
"""How long a worker's first assignment is waited for before it counts as empty."""

STABLE_S = 0.5
"""How long an assignment must stay as it is: the group may be about to deal again."""

HEAD_START_US = 300_000
"""Time for every worker to learn of tick 0 before it begins."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Waits for the crew of one run and starts it. `records` is how many wait in the topic."""

    crew: Crew
    store: Store
    run: int
    workers: int
    topic: Topic
    dispatch: Dispatch
    records: int

    def start_when_ready(self, stopped: Callable[[], bool]) -> None:
        """Set tick 0 in the database and tell every worker.

        Raises RunStalled at the deadline, and WorkerFailed as soon as a worker is gone: with fewer than
        asked for it would be another run.
        """
        begun = time.monotonic()
        deadline = begun + READY_TIMEOUT_S
        ready_since: float | None = None
        while not stopped():
            self.crew.listen()
            if self.crew.ended:
                hint = "The run had not begun: nothing was applied. Run the command again."
                raise WorkerFailed("; ".join(self.crew.ended), hint=hint)
            if not self._ready(waited_s=time.monotonic() - begun):
                ready_since = None
            elif ready_since is None:
                ready_since = time.monotonic()
            elif self.dispatch is Dispatch.SHARE or time.monotonic() - ready_since > STABLE_S:
                break
            if time.monotonic() > deadline:
                raise RunStalled(
                    f"after {READY_TIMEOUT_S:.0f} s not every worker is ready: {self._state()}",
                    hint=self._hint(),
                    topic=self.topic.name,
                )
            time.sleep(0.02)
        if stopped():
            return
        self.crew.order(Go(self.store.set_zero(self.run, now_us() + HEAD_START_US)))

    def _ready(self, waited_s: float) -> bool:
        if self.dispatch is Dispatch.SHARE:
            return self.crew.holding >= min(self.workers, self.records)
        assignment = self.crew.assignment
        if waited_s > ANSWER_TIMEOUT_S:
            # Under the newer group protocol a member without a partition is never told so.
            assignment = {number: assignment.get(number, []) for number in range(self.workers)}
        return is_even(assignment, self.workers, self.topic.partitions)

    def _hint(self) -> str:
        if self.dispatch is Dispatch.SHARE:
            return "A share group hands out whole batches: write the topic with --one-record-batches."
        return "Is another program in the same group? Run it again with fewer workers, or with -v."

    def _state(self) -> str:
        if self.dispatch is Dispatch.SHARE:
            return f"{self.crew.holding} of {self.workers} workers hold a record"
        return f"assignment {self.crew.assignment}"


def is_even(assignment: dict[int, list[int]], workers: int, partitions: int) -> bool:
    """Whether every worker was given its share and every partition has exactly one owner.

    The first member of a group owns every partition for a moment; a start then would measure a run of
    one worker.
    """
    shares = [len(owned) for owned in assignment.values()]
    owned = sorted(partition for given in assignment.values() for partition in given)
    return len(assignment) == workers and owned == list(range(partitions)) and max(shares) - min(shares) <= 1
