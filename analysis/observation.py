"""What can be seen from outside: the topic, the group's offsets and the database, at one moment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from broker.reading import read_records
from broker.settings import Connection
from broker.topics import OffsetRange, Topic, Topics
from lanes.record import Record
from state.reading import Reading
from state.records import Claimed, DeadLetter, HistoryRow, Progress, Run, ShipmentRow, Source
from state.store import check_source


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that a finding may rest on."""

    source: Source
    partitions: int
    ranges: dict[int, OffsetRange]
    committed: dict[int, int]
    """Partition to the group's committed offset; it follows the database and may be behind."""
    records: list[Record]
    """By partition and offset."""
    runs: list[Run]
    progress: dict[int, Progress]
    shipments: list[ShipmentRow]
    history: list[HistoryRow]
    """In the order in which the table saw the events."""
    dead_letters: list[DeadLetter]
    compacted: bool = field(default=False, kw_only=True)
    """Whether the topic may lose a record when a newer one of its key comes."""
    claims: list[Claimed] = field(default_factory=list)
    """Every claim on a partition, by partition and epoch."""


def observe(
    connection: Connection,
    db: Path,
    topic_name: str | None,
    on_progress: Callable[[int, int], None],
) -> Observation:
    """Look at the group's offsets, then the database, then the topic, while workers may go on.

    In that order: a group's offset is never ahead of the database, and what is applied is in what is read.

    Raises OtherSource when the database does not follow the topic, TopicMissing, DatabaseError,
    BrokerUnreachable. `on_progress` is told how many offsets of how many were read.
    """
    with Reading(db) as reading:
        source = reading.source
    topics = Topics(connection)
    topic = topics.get(topic_name or source.topic)
    check_source(db, source, Source(topic.name, topic.topic_id, source.group_id))
    committed = topics.committed(source.group_id, topic)
    with Reading(db) as reading:
        progress = {row.partition: row for row in reading.progress()}
        history = list(reading.history())
        dead_letters = list(reading.dead_letters())
        shipments = list(reading.shipments())
        runs = reading.runs()
        claims = reading.claims()
    ranges = topics.offsets(topic)
    return Observation(
        source=source,
        partitions=topic.partitions,
        ranges=ranges,
        committed=committed,
        records=_read(connection, topic, ranges, on_progress),
        runs=runs,
        progress=progress,
        shipments=shipments,
        history=history,
        dead_letters=dead_letters,
        compacted=topics.is_compacted(topic),
        claims=claims,
    )


def _read(
    connection: Connection,
    topic: Topic,
    ranges: dict[int, OffsetRange],
    on_progress: Callable[[int, int], None],
) -> list[Record]:
    total = sum(here.high - here.low for here in ranges.values())
    records = []
    for record in read_records(connection, topic, ranges):
        records.append(record)
        if len(records) % 1000 == 0:
            on_progress(len(records), total)
    return sorted(records, key=lambda record: (record.partition, record.offset))
