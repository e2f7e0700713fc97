"""A record at its position in the topic: a state event, or the reason why it is none."""

from dataclasses import dataclass

from lanes.errors import BadEvent
from lanes.event import Event, decode


@dataclass(frozen=True, slots=True)
class Record:
    """What a reader of the topic met. Where `event` is None, `reason` says why."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    event: Event | None
    reason: str = ""
    parked: bool = False
    """Nothing is wrong with it, but an earlier record of its key waits to be retried."""
    delivery: int = 1
    """Above 1 where a share group handed the record out before."""


def read_record(
    partition: int, offset: int, key: bytes | None, value: bytes | None, delivery: int = 1
) -> Record:
    """Decode a value at its position. The key decides nothing here: what counts is the event."""
    try:
        return Record(partition, offset, key, value, decode(value), delivery=delivery)
    except BadEvent as error:
        return Record(partition, offset, key, value, None, str(error), delivery=delivery)
