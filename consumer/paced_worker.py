"""A worker of a consumer group that takes its time: each event lasts as long as it says.

Kafka's ownership of partitions as the model describes it: a worker works alone on the partitions it
owns and takes, among their heads, the event of the lowest arrival order.
"""

import logging
from collections import deque
from collections.abc import Collection

from consumer.group_worker import note_ends
from consumer.membership import Membership
from consumer.orders import Orders
from consumer.pacing import Pace, Pacer
from consumer.relay import Relay
from lanes.record import Record
from state.applying import NOT_PACED, Applier
from state.errors import StaleOwner
from state.records import Timing
from state.store import Store

log = logging.getLogger(__name__)

POLL_TIMEOUT_S = 0.05
MOST_WAITING = 1_000
"""Records of one partition held in memory before it is paused."""


class PacedWorker:
    """Simulates each event's duration and applies it at its finish, one transaction an event."""

    def __init__(self, member: Membership, store: Store, applier: Applier, relay: Relay, pace: Pace) -> None:
        self._member = member
        self._store = store
        self._applier = applier
        self._relay = relay
        self._pace = pace
        self._waiting: dict[int, deque[Record]] = {}
        self._ends: dict[int, int] = {}
        """Partition to its end, once everything before it was read."""
        self._paused: set[int] = set()

    def forget_all_but(self, owned: Collection[int]) -> None:
        """Forget what was read ahead of other partitions: it comes again from the database's offset."""
        self._waiting = {p: records for p, records in self._waiting.items() if p in owned}
        self._ends = {p: end for p, end in self._ends.items() if p in owned}
        self._paused &= set(owned)

    def work(self, orders: Orders) -> None:
        """Wait for the start, then work until told to stop."""
        while not orders.stopped and orders.zero_us is None:
            self._read_ahead(POLL_TIMEOUT_S)
        pacer = Pacer(orders.zero_us or 0, self._pace, self._read_ahead, lambda: orders.stopped)
        while not orders.stopped:
            record = self._next_record()
            self._relay.turn(self._member.claims)
            if record is None:
                self._member.tell_halts([p for p, queue in self._waiting.items() if queue])
                note_ends(self._store, self._member, self._ends_behind_nothing())
                self._read_ahead(POLL_TIMEOUT_S)
                continue
            timing = NOT_PACED if record.event is None else pacer.take_time(record.event)
            if timing is not None:
                self._apply(record, timing)

    def _next_record(self) -> Record | None:
        """The head of the lowest arrival order; None while some partition's head is not known yet."""
        heads = []
        for partition, claim in self._member.claims.items():
            queue = self._waiting.setdefault(partition, deque())
            while queue and queue[0].offset < (claim.next_offset or 0):
                queue.popleft()
            if queue:
                heads.append(queue[0])
        if not self._heads_known():
            return None
        # What is no event takes no time, so it does not wait behind one.
        return min(heads, key=lambda head: head.event.order if head.event else -1, default=None)

    def _heads_known(self) -> bool:
        """Whether each partition has a record waiting, or none to come for now."""
        known = self._ends.keys() | self._member.halted
        return all(self._waiting.get(partition) or partition in known for partition in self._member.claims)

    def _ends_behind_nothing(self) -> dict[int, int]:
        """The ends of partitions of which nothing waits. The others' ends are read, not reached."""
        return {partition: end for partition, end in self._ends.items() if not self._waiting.get(partition)}

    def _read_ahead(self, timeout_s: float) -> None:
        records, ends = self._member.poll(MOST_WAITING, timeout_s)
        for record in records:
            self._waiting.setdefault(record.partition, deque()).append(record)
            self._ends.pop(record.partition, None)
        self._ends.update(ends)
        self._pause_the_full()

    def _pause_the_full(self) -> None:
        """Pause each partition of which much waits; one whose head is unknown is never among them."""
        full = {p for p, queue in self._waiting.items() if len(queue) >= MOST_WAITING}
        self._member.pause(full - self._paused)
        self._member.resume(self._paused - full - self._member.halted)
        self._paused = full

    def _apply(self, record: Record, timing: Timing) -> None:
        member = self._member
        claim = member.claims.get(record.partition)
        # While we took our time the partition may have gone, or gone and come back with this applied.
        if claim is None or record.offset < (claim.next_offset or 0):
            return
        try:
            member.claims = self._applier.apply_owned([record], member.claims, timing)
        except StaleOwner as stale:
            log.warning("%s[%s]: %s", stale.topic, stale.partition, stale)
            member.claim_again()
            self.forget_all_but(())
            return
        member.commit_group_offsets(wait=False)
