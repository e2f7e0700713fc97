"""One worker: the partitions that the consumer group gives it, record by record into the database."""

import logging
import os
from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from broker.errors import BrokerRefused
from broker.settings import Connection
from consumer.errors import OffsetGone
from consumer.telling import Assigned
from lanes.key import key_text
from lanes.record import Record, read_record
from state.errors import StaleOwner
from state.records import Claim
from state.store import Store

log = logging.getLogger(__name__)

POLL_TIMEOUT_S = 0.1
BATCH = 10_000
"""Most records of one transaction. What waits is taken at once: batches grow only under load."""


class Worker:
    """Applies the partitions it owns until told to stop.

    Ordering promised: the records of a partition are applied in offset order, each once. Between
    partitions there is no order.
    """

    def __init__(
        self,
        connection: Connection,
        store: Store,
        *,
        run: int,
        number: int,
        version_check: bool,
        tell: Callable[[Assigned], None],
    ) -> None:
        self._store = store
        self._topic = store.source.topic
        self._run = run
        self._number = number
        self._version_check = version_check
        self._tell = tell
        self._name = f"run {run} worker {number} (process {os.getpid()})"
        self._claims: dict[int, Claim] = {}
        self._consumer = Consumer(connection.group_member(store.source.group_id))

    def work(self, stopped: Callable[[], bool]) -> None:
        """Apply records until `stopped` says so, then leave the group.

        Raises OffsetGone when the topic no longer has what comes next, and the errors of the store.
        """
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        try:
            while not stopped():
                self._turn()
            self._commit_group_offsets(wait=True)
        finally:
            self._consumer.close()

    def _turn(self) -> None:
        """Take what waits and apply it. The first record is waited for, the rest is not."""
        first = self._consumer.poll(POLL_TIMEOUT_S)
        if first is None:
            return
        messages = [first, *self._consumer.consume(BATCH - 1, timeout=0)]
        records, ends = self._sorted_out(messages)
        if records and not self._apply(records):
            return
        for partition, end in ends.items():
            claim = self._claims.get(partition)
            # Only an end behind markers needs a note; the others are where the next offset is.
            if claim is not None and end > (claim.next_offset or 0):
                self._store.note_end(claim, end)

    def _sorted_out(self, messages: Sequence[Message]) -> tuple[list[Record], dict[int, int]]:
        """Records of our partitions that are not applied yet, and the ends that were met."""
        records = []
        ends = {}
        next_offset = {p: claim.next_offset or 0 for p, claim in self._claims.items()}
        for message in messages:
            partition, offset = message.partition(), message.offset()
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    ends[partition or 0] = offset or 0
                else:
                    self._pass_or_raise(error, partition)
                continue
            # Left over from before a rebalance: not ours any more, or fetched a second time.
            if partition is None or offset is None:
                continue
            if partition not in next_offset or offset < next_offset[partition]:
                continue
            next_offset[partition] = offset + 1
            records.append(read_record(partition, offset, message.key(), message.value()))
            log.debug("%s[%s]@%s %s", self._topic, partition, offset, key_text(message.key() or b""))
        return records, ends

    def _apply(self, records: list[Record]) -> bool:
        """Apply a batch; False when it was refused and will be read again."""
        try:
            self._claims = self._store.apply(
                records,
                self._claims,
                run=self._run,
                worker=self._number,
                version_check=self._version_check,
            )
        except StaleOwner as stale:
            log.warning("%s: %s; reading the database again", stale, self._name)
            self._claim_again()
            return False
        self._commit_group_offsets(wait=False)
        return True

    def _claim_again(self) -> None:
        """Go on where the database is. A partition that is ours no more leaves at the next poll."""
        self._claims = self._store.claim(sorted(self._claims), self._name)
        for claim in self._claims.values():
            self._consumer.seek(self._position(claim))

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = sorted(tp.partition for tp in partitions)
        self._claims = self._store.claim(numbers, self._name)
        for claim in self._claims.values():
            log.info("%s[%s] is ours from offset %s", self._topic, claim.partition, claim.next_offset)
        consumer.assign([self._position(claim) for claim in self._claims.values()])
        self._tell(Assigned(numbers))

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for tp in partitions:
            log.info("%s[%s] goes", self._topic, tp.partition)
        self._claims = {}
        consumer.unassign()
        self._tell(Assigned([]))

    def _position(self, claim: Claim) -> TopicPartition:
        # Where nothing was applied yet: the first record that the log still has.
        offset = OFFSET_BEGINNING if claim.next_offset is None else claim.next_offset
        return TopicPartition(self._topic, claim.partition, offset)

    def _commit_group_offsets(self, *, wait: bool) -> None:
        """Tell Kafka how far the database is, for its own tools; nothing is ever read from it.

        So a failure here is no fault: it is logged, and the next commit carries the same offsets.
        """
        offsets = [
            TopicPartition(self._topic, claim.partition, claim.next_offset)
            for claim in self._claims.values()
            if claim.next_offset is not None
        ]
        if not offsets:
            return
        try:
            if wait:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            else:
                self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            log.info("group offsets not committed: %s", error)

    def _pass_or_raise(self, error: KafkaError, partition: int | None) -> None:
        """Let the client mend what it can; raise for the rest."""
        if error.code() == KafkaError._MAX_POLL_EXCEEDED or error.retriable():
            # Thrown out for being slow: our claims are lost, and the next poll joins again.
            log.warning("%s[%s]: %s", self._topic, partition, error.str())
            return
        if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
            claim = self._claims.get(partition)
            raise offset_gone(self._topic, partition, claim.next_offset if claim else None)
        raise BrokerRefused(f"{error.str()} ({error.name()})", topic=self._topic, partition=partition)


def offset_gone(topic: str, partition: int, offset: int | None) -> OffsetGone:
    """The refusal to jump over records that are gone."""
    return OffsetGone(
        "the topic no longer has the offset at which the database goes on",
        hint="Records were deleted, or the topic was made anew. Nothing is skipped in silence: name a new "
        "file with --db to read what the topic still has.",
        topic=topic,
        partition=partition,
        offset=offset,
    )
