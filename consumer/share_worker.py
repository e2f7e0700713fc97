"""A worker of a share group: whoever is free takes the next record, one at a time.

Kafka's own form of the lesson's dispatcher. Nobody owns a partition; an applied position is the fence
against a second delivery. With a gate, a worker holds its event until the lane's earlier ones are applied.
"""

import logging
import time

from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, Message

from broker.clients import open_share_consumer
from broker.errors import BrokerRefused
from consumer.errors import ShareGroupsMissing
from consumer.gate import Gate
from consumer.orders import Orders
from consumer.pacing import Pace, Pacer
from consumer.plan import WorkerPlan
from consumer.relay import Relay
from consumer.telling import Holding
from lanes.record import Record, read_record
from state.applying import NOT_PACED, Applier
from state.records import Timing
from state.store import Store

log = logging.getLogger(__name__)

POLL_TIMEOUT_S = 0.2
START_INTERVAL_S = 0.005
ORDERS_INTERVAL_S = 0.1

GATE_PATIENCES_S = (1.0, 4.0, 10.0, 17.0)
"""How long a worker keeps a record at a gate, after a crewmate is gone, before it gives the record back.

One entry for each delivery of a record. Their sum is beyond the 30 s for which a dead worker's record may
still be locked; their number is below the broker's limit of 5 deliveries, behind which a record is lost.
"""

CANNOT_SHARE = {KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION, KafkaError.INVALID_CONFIG}


class ShareWorker:
    """Takes, works, applies, acknowledges: in that order, one record after the other.

    Ordering promised: none, and with a gate the order of each lane in its partition.
    """

    def __init__(
        self, plan: WorkerPlan, store: Store, applier: Applier, relay: Relay, gate: Gate | None
    ) -> None:
        self._plan = plan
        self._store = store
        self._topic = store.source.topic
        self._applier = applier
        self._relay = relay
        self._gate = gate
        self._consumer = open_share_consumer(plan.asked.connection.share_member(store.source.group_id))

    def work(self, orders: Orders) -> None:
        """Work until told to stop, then leave the group, which gives back what was not acknowledged.

        Raises ShareGroupsMissing where the broker has none, BrokerRefused, and what the store raises.
        """
        pacer: Pacer | None = None
        try:
            self._consumer.subscribe([self._topic])
            while not orders.stopped:
                self._relay.turn(self._partitions_to_relay())
                for message in self._take():
                    record = record_of(message)
                    if self._plan.pace is not None and pacer is None:
                        pacer = self._wait_for_start(self._plan.pace, record, orders)
                    self._work_on(message, record, pacer, orders)
        finally:
            self._consumer.close()

    def _partitions_to_relay(self) -> list[int]:
        """Where nobody owns a partition, its dead letters are one worker's to send, by its number."""
        workers, ours = self._plan.asked.workers, self._plan.number
        return [partition for partition in self._store.unsent_partitions() if partition % workers == ours]

    def _take(self) -> list[Message]:
        """The next record, acknowledging the one before on the way; raises for errors of the group."""
        try:
            messages = list(self._consumer.poll(POLL_TIMEOUT_S))
        except KafkaException as error:
            raise self._as_convoy_error(error.args[0]) from error
        for message in messages:
            refusal = message.error()
            if refusal is not None and not refusal.retriable():
                raise self._as_convoy_error(refusal)
        return [message for message in messages if message.error() is None]

    def _wait_for_start(self, pace: Pace, record: Record, orders: Orders) -> Pacer:
        """Hold the first record until every worker of the run holds one."""
        if self._gate is not None:
            # Read the topic now, so that the first tick is not spent on it.
            self._gate.before(record)
        orders.tell(Holding())
        while not orders.stopped and orders.zero_us is None:
            time.sleep(START_INTERVAL_S)
        return Pacer(orders.zero_us or 0, pace, time.sleep, lambda: orders.stopped)

    def _work_on(self, message: Message, record: Record, pacer: Pacer | None, orders: Orders) -> None:
        if self._gate is not None and not self._through_gate(self._gate, record, orders):
            self._consumer.acknowledge(message, AcknowledgeType.RELEASE)
            return
        timing: Timing | None = NOT_PACED
        if pacer is not None and record.event is not None:
            timing = pacer.take_time(record.event)
        if timing is None:
            return
        if not self._applier.apply_shared(record, timing):
            where = (self._topic, record.partition, record.offset)
            log.info("%s[%s]@%s came again; it is applied already", *where)
        self._consumer.acknowledge(message, AcknowledgeType.ACCEPT)

    def _through_gate(self, gate: Gate, record: Record, orders: Orders) -> bool:
        """Wait at the gate; False to give the record back.

        While every crewmate lives, the event before is in good hands. When one is gone, its record comes
        back, and somebody must be free to take it: so after a while this one is given back.
        """
        last_chance = record.delivery > len(GATE_PATIENCES_S)
        while not gate.wait(record, ORDERS_INTERVAL_S, lambda: orders.stopped):
            if orders.stopped:
                return False
            if orders.crewmates_gone and not last_chance:
                patience_s = GATE_PATIENCES_S[record.delivery - 1]
                where = (self._topic, record.partition, record.offset)
                log.info("%s[%s]@%s may wait for a crewmate that is gone", *where)
                if not gate.wait(record, patience_s, lambda: orders.stopped):
                    return False
        return True

    def _as_convoy_error(self, error: KafkaError) -> BrokerRefused | ShareGroupsMissing:
        if error.code() in CANNOT_SHARE:
            return share_groups_missing(error.str())
        return BrokerRefused(f"{error.str()} ({error.name()})", topic=self._topic)


def record_of(message: Message) -> Record:
    """The record in a message of a share group."""
    partition, offset = message.partition(), message.offset()
    if partition is None or offset is None:
        raise ValueError("a share group handed out a message without a position")
    return read_record(partition, offset, message.key(), message.value(), message.delivery_count() or 1)


def share_groups_missing(reason: str) -> ShareGroupsMissing:
    """The refusal to run share dispatch on a broker that has no share groups."""
    return ShareGroupsMissing(
        f"this broker has no share groups: {reason}",
        hint="Share dispatch needs Kafka 4.2 or newer; --dispatch group works on any.",
    )
