"""Five workers that are wrong on purpose: the checker has to accuse each of them.

Each is the product with one part of its promise taken out, inside a worker process of the test.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from confluent_kafka import TopicPartition

from consumer.membership import Membership
from state.applying import Applier
from state.database import Database
from state.errors import StaleOwner
from state.queries import QUERIES
from state.records import Claim


def put(owner: type | ModuleType, name: str, other: object) -> None:
    """Put something else in the place of a product's function, in this process."""
    setattr(owner, name, other)


def remove_fence() -> None:
    """Write whatever comes, whoever owns the partition and wherever it is."""
    put(Applier, "_check_claim", lambda *_: None)


def ignore_epoch() -> None:
    """Compare offsets only: a zombie wins as long as its offset is still the current one."""

    def check_offset(self: Applier, connection: Any, claim: Claim) -> None:
        _, next_offset = connection.execute(QUERIES["fence"], {"partition": claim.partition}).fetchone()
        if next_offset != claim.next_offset:
            raise StaleOwner(self._store.source.topic, claim.partition, "another offset")

    put(Applier, "_check_claim", check_offset)


def write_offset_later() -> None:
    """State and history in one transaction, the offsets in a second one."""
    inner = Applier.apply_owned

    def apply(self: Applier, *args: Any, **named: Any) -> dict[int, Claim]:
        database = self._store.database
        held = _HoldingBack(database.connection)
        database.connection = held  # type: ignore[assignment]
        try:
            moved = inner(self, *args, **named)
        finally:
            database.connection = held.inner
        _write_offsets(database, held.offsets)
        return moved

    put(Applier, "apply_owned", apply)


class _HoldingBack:
    """A connection that keeps the writing of offsets for later."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.offsets: list[dict[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def executemany(self, sql: str, rows: Any) -> Any:
        if sql != QUERIES["set_next_offset"]:
            return self.inner.executemany(sql, rows)
        self.offsets += rows
        return None


def _write_offsets(database: Database, offsets: list[dict[str, int]]) -> None:
    with database.transaction() as connection:
        connection.executemany(QUERIES["set_next_offset"], offsets)


def commit_group_first() -> None:
    """Tell the group before the database, and go on where the group is."""
    poll = Membership.poll

    def committing(self: Membership, *args: Any) -> Any:
        records, ends = poll(self, *args)
        behind = {record.partition: record.offset + 1 for record in records}
        if behind:
            offsets = [TopicPartition(self._topic, p, offset) for p, offset in behind.items()]
            self._consumer.commit(offsets=offsets, asynchronous=False)
        return records, ends

    def position(self: Membership, claim: Claim) -> TopicPartition:
        (group,) = self._consumer.committed([TopicPartition(self._topic, claim.partition)], timeout=10)
        return TopicPartition(self._topic, claim.partition, max(group.offset, 0))

    put(Membership, "poll", committing)
    put(Membership, "_position", position)


def swallow_bad_records() -> None:
    """Drop what is no event, and go on behind it."""
    poll = Membership.poll

    def swallowing(self: Membership, *args: Any) -> Any:
        records, ends = poll(self, *args)
        return [record for record in records if record.event is not None], ends

    put(Membership, "poll", swallowing)


def assign_by_hand() -> None:
    """Not broken, only rude: take every partition without asking the group."""

    def enter(self: Membership) -> Membership:
        partitions = self._consumer.list_topics(self._topic, timeout=10).topics[self._topic].partitions
        self._assigned(self._consumer, [TopicPartition(self._topic, number) for number in partitions])
        return self

    put(Membership, "__enter__", enter)


BREAK: dict[str, Callable[[], None]] = {
    "fence removed": remove_fence,
    "epoch ignored": ignore_epoch,
    "offset in a second transaction": write_offset_later,
    "group commit before the database": commit_group_first,
    "bad record swallowed": swallow_bad_records,
    "partitions taken by hand": assign_by_hand,
}
