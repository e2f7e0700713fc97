"""A worker as a process of its own: what it is started with, which kind it is, and how it ends."""

import os
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe

from confluent_kafka import KafkaException

from broker.errors import BrokerRefused
from console.output import set_up_logging
from consumer.gate import Gate
from consumer.group_worker import GroupWorker
from consumer.membership import Membership
from consumer.orders import Orders
from consumer.paced_worker import PacedWorker
from consumer.plan import WorkerPlan
from consumer.relay import Relay
from consumer.share_worker import ShareWorker
from consumer.telling import Assigned, Failed, Halted
from lanes.bad_records import OnBadRecord
from lanes.dispatch import Dispatch
from lanes.errors import ConvoyError
from lanes.key import KeyChoice
from lanes.record import Record
from state.applying import Applier
from state.store import Store

Work = Callable[[WorkerPlan, Pipe], None]
"""What a worker process runs; at the top level of a module, so that a new process finds it."""


def work_as_process(plan: WorkerPlan, pipe: Pipe) -> None:
    """Run a worker until told to stop; an error is told over the pipe, and the exit code is 1."""
    set_up_logging(plan.asked.verbose)
    orders = Orders(pipe)
    try:
        source = plan.source
        store = Store.open(plan.asked.db, source.topic, source.topic_id, source.group_id)
        try:
            applier = Applier(
                store,
                plan.run,
                plan.number,
                version_check=plan.asked.version_check,
                on_bad_record=plan.asked.on_bad_record,
            )
            relay = Relay(plan.asked.connection, store)
            work = _work_shared if plan.asked.dispatch is Dispatch.SHARE else _work_in_group
            work(plan, orders, store, applier, relay)
            relay.close()
        finally:
            store.close()
    except ConvoyError as error:
        orders.tell(Failed.of(error))
        raise SystemExit(1) from None
    except KafkaException as error:
        refusal = BrokerRefused(f"the Kafka client gave up: {error.args[0].str()}", topic=plan.source.topic)
        orders.tell(Failed.of(refusal))
        raise SystemExit(1) from None


def _work_in_group(plan: WorkerPlan, orders: Orders, store: Store, applier: Applier, relay: Relay) -> None:
    owner = f"run {plan.run} worker {plan.number} (process {os.getpid()})"

    def changed(partitions: list[int]) -> None:
        if isinstance(worker, PacedWorker):
            worker.forget_all_but(partitions)
        orders.tell(Assigned(partitions))

    def halted(record: Record) -> None:
        orders.tell(Halted(record.partition, record.offset, record.reason))

    on_halt = halted if plan.asked.on_bad_record is OnBadRecord.HALT_PARTITION else None
    member = Membership(plan.asked.connection, store, owner, changed, on_halt)
    worker = (
        GroupWorker(member, store, applier, relay)
        if plan.pace is None
        else PacedWorker(member, store, applier, relay, plan.pace)
    )
    with member:
        worker.work(orders)


def _work_shared(plan: WorkerPlan, orders: Orders, store: Store, applier: Applier, relay: Relay) -> None:
    gate = None
    if plan.asked.gate is not KeyChoice.NONE:
        gate = Gate(plan.asked.connection, store, plan.asked.gate, selective=plan.asked.selective)
    try:
        # What is acknowledged never comes again, so the commit before it must survive a power cut.
        store.database.connection.execute("pragma synchronous = full")
        ShareWorker(plan, store, applier, relay, gate).work(orders)
    finally:
        if gate is not None:
            gate.close()
