"""Dead letters inside the apply: parking a key, and taking it up again."""

from collections.abc import Sequence
from dataclasses import replace
from sqlite3 import Connection

from lanes.errors import BadEvent
from lanes.record import Record, read_record
from state.database import now_us
from state.errors import NoDeadLetter
from state.queries import QUERIES
from state.records import DeadLetter

BEHIND = "parked behind an earlier record of its key"


def park(connection: Connection, records: Sequence[Record]) -> list[Record]:
    """The records with those of parked keys held back as dead letters, in order.

    A key is parked from its first bad record on, in this batch or before it, until that one is retried.
    A bad record without a key parks nothing.
    """
    parked: dict[int, set[bytes]] = {}
    kept = []
    for record in records:
        keys = parked.get(record.partition)
        if keys is None:
            rows = connection.execute(QUERIES["get_parking_keys"], {"partition": record.partition})
            keys = parked[record.partition] = {key for (key,) in rows}
        if record.event is not None and record.key in keys:
            record = replace(record, event=None, reason=BEHIND, parked=True)
        elif record.event is None and record.key is not None:
            keys.add(record.key)
        kept.append(record)
    return kept


def records_to_retry(
    connection: Connection, partition: int, offset: int, value: bytes | None
) -> list[Record]:
    """The dead letter as an event, and those parked behind it, as far as they are events.

    Raises NoDeadLetter where there is none to retry or an earlier one of its key must go first, BadEvent
    where the record is still no event.
    """
    letter = letter_at(connection, partition, offset)
    if letter.resolved_us is not None:
        raise NoDeadLetter(partition, offset, "was applied already")
    first = read_record(partition, offset, letter.key, letter.value if value is None else value)
    if first.event is None:
        raise BadEvent(first.reason)
    place = {"partition": partition, "key": letter.key}
    of_key = connection.execute(QUERIES["get_open_of_key"], place).fetchall()
    in_order = any(parked for *_, parked in of_key)
    if in_order and of_key[0][1] != offset:
        raise NoDeadLetter(partition, offset, f"waits behind offset {of_key[0][1]}: retry that one first")
    records = [first]
    for _, later, key, later_value, _, parked in of_key:
        if later <= offset:
            continue
        if not parked:
            break
        records.append(read_record(partition, later, key, later_value))
    return records


def letter_at(connection: Connection, partition: int, offset: int) -> DeadLetter:
    """The dead letter of a position; raises NoDeadLetter where there is none."""
    place = {"partition": partition, "offset": offset}
    row = connection.execute(QUERIES["get_dead_letter"], place).fetchone()
    if row is None:
        raise NoDeadLetter(partition, offset, "does not exist")
    return DeadLetter(*row)


def was_passed(connection: Connection, record: Record) -> bool:
    """Whether later events of the record's shipment were applied from its partition."""
    if record.event is None:
        return False
    place = {
        "tracking_no": record.event.tracking_no,
        "partition": record.partition,
        "offset": record.offset,
    }
    return bool(connection.execute(QUERIES["was_passed"], place).fetchone()[0])


def resolve(connection: Connection, records: Sequence[Record]) -> None:
    """Note that records are applied after all."""
    connection.executemany(
        QUERIES["set_resolved"],
        [{"partition": r.partition, "offset": r.offset, "resolved_us": now_us()} for r in records],
    )
