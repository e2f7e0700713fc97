"""A worker's place in the consumer group: the partitions it owns, and what comes from them."""

import logging
from collections.abc import Callable, Collection, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from broker.clients import open_consumer
from broker.errors import BrokerRefused
from broker.settings import Connection
from consumer.errors import offset_gone
from lanes.key import key_text
from lanes.record import Record, read_record
from state.records import Claim
from state.store import Store

log = logging.getLogger(__name__)


class Membership:
    """Keeps claims in the database in step with the group's assignment.

    `claims` holds the partitions that are ours; whoever applies puts the moved claims back. Ordering
    promised by `poll`: records of a partition come in offset order, each once for a claim, from the
    database's next offset on.
    """

    def __init__(
        self,
        connection: Connection,
        store: Store,
        owner: str,
        on_change: Callable[[list[int]], None],
        on_halt: Callable[[Record], None] | None = None,
    ) -> None:
        """`on_halt` is told of a partition's first record that is no event; None: such records pass."""
        self._store = store
        self._topic = store.source.topic
        self._owner = owner
        self._on_change = on_change
        self._on_halt = on_halt
        self.claims: dict[int, Claim] = {}
        self._given: dict[int, int] = {}
        """Partition to the offset after the last record given out."""
        self.halted: set[int] = set()
        """Partitions of which nothing more is given out: a record that is no event comes next."""
        self._untold: dict[int, Record] = {}
        """Halted partitions that nobody was told of yet, and the record that comes next in each."""
        self._incremental = connection.deals_incrementally
        self._consumer = open_consumer(connection.group_member(store.source.group_id))

    def __enter__(self) -> "Membership":
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        return self

    def __exit__(self, error_type: object, *_: object) -> None:
        if error_type is None:
            self.commit_group_offsets(wait=True)
        self._consumer.close()

    def poll(self, most: int, timeout_s: float) -> tuple[list[Record], dict[int, int]]:
        """Records, and the partition ends that were met (partition to offset).

        The first message is waited for, what waits behind it is taken at once, up to `most`. Raises
        OffsetGone when the topic no longer has what comes next, BrokerRefused for what the client cannot
        mend by itself.
        """
        before = dict(self.claims)
        first = self._consumer.poll(timeout_s)
        if first is None:
            return [], {}
        rest = self._consumer.consume(most - 1, timeout=0) if most > 1 else []
        return self._sorted_out(self._without_moved([first, *rest], before))

    def _without_moved(self, messages: list[Message], before: dict[int, Claim]) -> list[Message]:
        """The messages of partitions that were not dealt out anew while these were taken.

        What came of the others may be from before or after: to keep one would be to pass those before it
        that were given out and not applied. They are read again from the database's offset.
        """
        owned = before.keys() | self.claims.keys()
        moved = {partition for partition in owned if before.get(partition) is not self.claims.get(partition)}
        for partition in moved & self.claims.keys() & {message.partition() for message in messages}:
            self._consumer.seek(self._position(self.claims[partition]))
        return [message for message in messages if message.partition() not in moved]

    def _sorted_out(self, messages: Sequence[Message]) -> tuple[list[Record], dict[int, int]]:
        records = []
        ends = {}
        for message in messages:
            partition, offset, error = message.partition(), message.offset(), message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                self._pass_or_raise(error, partition)
            elif partition is None or offset is None or partition in self.halted:
                continue
            elif error is not None:
                ends[partition] = offset
            elif partition in self.claims and offset >= self._given.get(partition, 0):
                self._given[partition] = offset + 1
                record = read_record(partition, offset, message.key(), message.value())
                if self._passes(record):
                    records.append(record)
                log.debug("%s[%s]@%s %s", self._topic, partition, offset, key_text(message.key() or b""))
        # Whatever else came is left over from before a rebalance, or fetched a second time.
        return records, ends

    def _passes(self, record: Record) -> bool:
        """Whether a record may be applied; the first that may not halts its partition.

        It stays in the topic, and the database's offset before it: a run under another policy goes on there.
        """
        if record.event is not None or self._on_halt is None:
            return True
        self.halted.add(record.partition)
        self._untold[record.partition] = record
        self._consumer.pause([TopicPartition(self._topic, record.partition)])
        return False

    def tell_halts(self, waiting: Collection[int]) -> None:
        """Tell of halted partitions of which everything before the bad record is applied.

        `waiting` are partitions of which records were given out and are not applied yet.
        """
        for partition in self._untold.keys() - set(waiting):
            record = self._untold.pop(partition)
            if self._on_halt is not None:
                self._on_halt(record)

    def _pass_or_raise(self, error: KafkaError, partition: int | None) -> None:
        if error.code() == KafkaError._MAX_POLL_EXCEEDED or error.retriable():
            # Thrown out for being slow: our claims are lost, and the next poll joins again.
            log.warning("%s[%s]: %s", self._topic, partition, error.str())
            return
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            claim = self.claims.get(partition) if partition is not None else None
            raise offset_gone(self._topic, partition, claim.next_offset if claim else None)
        raise BrokerRefused(f"{error.str()} ({error.name()})", topic=self._topic, partition=partition)

    def claim_again(self) -> None:
        """Go on where the database is, after a write was refused.

        A partition that is ours no more leaves with the next poll.
        """
        for claim in self._claim(sorted(self.claims)):
            self._consumer.seek(self._position(claim))

    def pause(self, partitions: Collection[int]) -> None:
        """Take no more records of some partitions; staying a member needs polls all the same."""
        self._consumer.pause([TopicPartition(self._topic, partition) for partition in partitions])

    def resume(self, partitions: Collection[int]) -> None:
        """Take records of some partitions again."""
        self._consumer.resume([TopicPartition(self._topic, partition) for partition in partitions])

    def _claim(self, partitions: list[int]) -> list[Claim]:
        claims = self._store.claim(partitions, self._owner)
        self.claims.update(claims)
        self.halted -= claims.keys()
        self._untold = {p: record for p, record in self._untold.items() if p not in claims}
        self._given.update({p: claim.read_from or 0 for p, claim in claims.items()})
        return list(claims.values())

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Claim what was dealt to us: all, or in an incremental group what is new."""
        claims = self._claim(sorted(tp.partition for tp in partitions))
        for claim in claims:
            log.info("%s[%s] is ours from offset %s", self._topic, claim.partition, claim.next_offset)
        assign = consumer.incremental_assign if self._incremental else consumer.assign
        assign([self._position(claim) for claim in claims])
        self._on_change(sorted(self.claims))

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for tp in partitions:
            log.info("%s[%s] goes", self._topic, tp.partition)
            self.claims.pop(tp.partition, None)
        if self._incremental:
            consumer.incremental_unassign(partitions)
        else:
            self.claims = {}
            consumer.unassign()
        self._on_change(sorted(self.claims))

    def _position(self, claim: Claim) -> TopicPartition:
        # Where nothing was applied yet: the first record that the log still has.
        offset = OFFSET_BEGINNING if claim.read_from is None else claim.read_from
        return TopicPartition(self._topic, claim.partition, offset)

    def commit_group_offsets(self, *, wait: bool) -> None:
        """Tell Kafka how far the database is, for its own tools; nothing is ever read from it.

        So a failure here is no fault: it is logged, and the next commit carries the same offsets.
        """
        offsets = [
            TopicPartition(self._topic, claim.partition, claim.next_offset)
            for claim in self.claims.values()
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
