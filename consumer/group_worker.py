"""A worker of a consumer group at full speed: what waits in its partitions, batch by batch."""

import logging

from consumer.membership import Membership
from consumer.orders import Orders
from consumer.relay import Relay
from state.applying import Applier
from state.errors import StaleOwner
from state.store import Store

log = logging.getLogger(__name__)

POLL_TIMEOUT_S = 0.1
BATCH = 10_000
"""Most records of one transaction. Batches grow only under load."""


class GroupWorker:
    """Applies the partitions it owns until told to stop.

    Ordering promised: records of a partition are applied in offset order, each once. Between partitions
    there is no order.
    """

    def __init__(self, member: Membership, store: Store, applier: Applier, relay: Relay) -> None:
        self._member = member
        self._store = store
        self._applier = applier
        self._relay = relay

    def work(self, orders: Orders) -> None:
        """Apply records until told to stop. Raises what the membership and the store raise."""
        while not orders.stopped:
            self._turn()
            self._relay.turn(self._member.claims)

    def _turn(self) -> None:
        member = self._member
        records, ends = member.poll(BATCH, POLL_TIMEOUT_S)
        if records:
            try:
                member.claims = self._applier.apply_owned(records, member.claims)
            except StaleOwner as stale:
                log.warning("%s[%s]: %s", stale.topic, stale.partition, stale)
                member.claim_again()
                return
            member.commit_group_offsets(wait=False)
        member.tell_halts(())
        note_ends(self._store, member, ends)


def note_ends(store: Store, member: Membership, ends: dict[int, int]) -> None:
    """Note the ends that lie behind markers, once; the others are where the next offset is.

    To be called when every record before those ends is applied.
    """
    for partition, end in ends.items():
        claim = member.claims.get(partition)
        if claim is not None and end > max(claim.next_offset or 0, claim.end_noted):
            member.claims[partition] = store.note_end(claim, end)
