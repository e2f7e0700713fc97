"""One topic, one table and the evidence about them: loaded, worked on, drained, judged."""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, TopicPartition

import consumer.leftovers
from analysis.findings import find
from analysis.invariants import Evidence
from analysis.observation import observe
from analysis.verdict import Holds, judge_evidence
from broker.settings import Connection
from broker.topics import Topics
from chaos import load
from chaos.broken import put
from chaos.evidence import notes
from chaos.load import Item
from chaos.saboteurs import Sabotage
from consumer.plan import RunPlan, WorkerPlan
from consumer.run import allow_sharing, consume_topic
from lanes.dispatch import Dispatch
from state.records import Source
from state.store import Store

PARTITIONS = 6
WORKERS = 4
DRAIN_TIMEOUT_S = 90.0
LEFTOVER_PATIENCE_S = 2.0
"""In place of the product's: the broker's lock here is as short."""

SLICE = 100
"""Shipments written at once while a fault wants more load."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the checker said after the drain."""

    holds: Holds
    reasons: list[str]
    records: int
    lost: int
    duplicated: int
    refused: int
    """Commits of stale owners that the database refused."""
    recovery_s: float
    """From the end of the fault to the end of the drain."""


@dataclass(slots=True)
class Arena:
    """Everything that one fault is tried on. `seed` decides its draws."""

    connection: Connection
    name: str
    folder: Path
    seed: int
    dispatch: Dispatch = Dispatch.GROUP
    partitions: int = PARTITIONS
    next_shipment: int = 0
    sent: int = 0
    rng: Random = field(init=False)
    source: Source = field(init=False)

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        Topics(self.connection).create(self.name, self.partitions)
        with closing(self.open_store()) as store:
            self.source = store.source
        if self.dispatch is Dispatch.SHARE:
            allow_sharing(Topics(self.connection), self.source.group_id)

    @property
    def db(self) -> Path:
        """The table."""
        return self.folder / "states.db"

    @property
    def log(self) -> Path:
        """Where workers tell what they did to themselves."""
        return self.folder / "notes.jsonl"

    @property
    def acks(self) -> Path:
        """Where the producer keeps what it was promised."""
        return self.folder / "acks.txt"

    def open_store(self) -> Store:
        """The table, bound to the topic."""
        topic = Topics(self.connection).get(self.name)
        return Store.open(self.db, topic.name, topic.topic_id)

    def shipments(self, count: int) -> list[Item]:
        """Events of shipments that were not written yet."""
        items = load.shipments(self.next_shipment, count)
        self.next_shipment += count
        return items

    def send(self, items: list[Item]) -> None:
        """Write and wait for the acknowledgements."""
        shared = self.dispatch is Dispatch.SHARE
        load.send(self.connection, self.name, items, self.acks, one_record_batches=shared)
        self.sent += len(items)

    def keep_loaded(self, bad_every: int = 0) -> None:
        """Write a slice where less than one waits for the workers."""
        if self.sent - self.done() < SLICE * 2:
            items = self.shipments(SLICE)
            self.send(list(load.with_bad(items, bad_every)) if bad_every else items)

    def rows(self, query: str) -> list[tuple[int, ...]]:
        """Rows of the table, read from outside the product."""
        with closing(sqlite3.connect(f"{self.db.resolve().as_uri()}?mode=ro", uri=True, timeout=60)) as file:
            return file.execute(query).fetchall()

    def number(self, query: str) -> int:
        """One number of the table."""
        return int(self.rows(query)[0][0])

    def done(self) -> int:
        """Records that are in the history or among the dead letters."""
        return self.number("select (select count(*) from history) + (select count(*) from dead_letter)")

    def noted(self, what: str) -> int:
        """How often workers told of something."""
        return len(notes(self.log, what))

    def worker_plan(self, run: int, number: int, connection: Connection | None = None) -> WorkerPlan:
        """The plan of one worker."""
        asked = RunPlan(
            connection or self.connection, self.name, self.db.resolve(), WORKERS, dispatch=self.dispatch
        )
        return WorkerPlan(asked, self.source, run, number, pace=None)

    def start_run(self, workers: int = WORKERS) -> int:
        """Note a run in the table."""
        with closing(self.open_store()) as store:
            return store.start_run(workers, version_check=False, dispatch=self.dispatch)

    def drain(self, broken: str = "", timeout_s: float = DRAIN_TIMEOUT_S) -> bool:
        """Let workers without a fault apply all that is left; whether that was done in time.

        Dead letters count as done when their topic has acknowledged them.
        """
        deadline = time.monotonic() + timeout_s
        level = [0, 1]

        def stopped() -> bool:
            if time.monotonic() > deadline:
                return True
            return level[0] >= level[1] and not self.unsent()

        def on_progress(done: int, total: int) -> None:
            level[:] = done, total

        put(consumer.leftovers, "PATIENCE_S", LEFTOVER_PATIENCE_S)
        plan = RunPlan(self.connection, self.name, self.db, WORKERS, dispatch=self.dispatch)
        work = Sabotage(self.log, broken=broken, batch=10_000).work()
        result = consume_topic(plan, stopped=stopped, on_progress=on_progress, work=work)
        return result.caught_up and not self.unsent()

    def unsent(self) -> int:
        """Dead letters that their topic has not acknowledged."""
        return self.number("select count(*) from dead_letter where sent_us is null")

    def judge(self, since_s: float, *, drained: bool = True) -> Judged:
        """The checker's word on everything there is. `since_s`: when the fault was over."""
        recovery_s = time.monotonic() - since_s
        seen = observe(self.connection, self.db, self.name, lambda *_: None)
        found = find(seen)
        evidence = Evidence(seen, found, load.acknowledged(self.acks))
        verdict = judge_evidence(evidence, drained=drained)
        letters = self.letters_lost()
        reasons = verdict.reasons + [f"{letters} dead letters did not arrive in their topic"] * (letters > 0)
        return Judged(
            holds=Holds.FALSE if letters else verdict.holds,
            reasons=reasons,
            records=len(seen.records),
            lost=len(verdict.against["no record lost"]) + found.not_yet_applied,
            duplicated=len(verdict.against["none applied twice"]) + len(found.twice),
            refused=self.noted("refused"),
            recovery_s=recovery_s,
        )

    def letters_lost(self) -> int:
        """Dead letters whose source is not among the headers of the dead-letter topic."""
        wanted = set(self.rows("select partition, offset from dead_letter"))
        return len(wanted - self.letter_sources()) if wanted else 0

    def letter_sources(self) -> set[tuple[int, int]]:
        """Where the records of the dead-letter topic came from, as their headers say."""
        topics = Topics(self.connection)
        topic = topics.find(f"{self.name}.dead-letter")
        if topic is None:
            return set()
        offsets = topics.offsets(topic)
        left = {p: here.high for p, here in offsets.items() if here.high > here.low}
        found = set()
        consumer = Consumer(self.connection.reader())
        consumer.assign([TopicPartition(topic.name, p, offsets[p].low) for p in left])
        deadline = time.monotonic() + 30
        while left and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                if message.error() is not None:
                    continue
                headers = dict(message.headers() or [])
                found.add((int(headers["convoy.partition"] or -1), int(headers["convoy.offset"] or -1)))
                if (message.offset() or 0) + 1 >= left.get(message.partition() or 0, 0):
                    left.pop(message.partition() or 0, None)
        consumer.close()
        return found
