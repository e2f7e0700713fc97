"""What the database holds, row by row."""

from dataclasses import dataclass

from lanes.dispatch import Dispatch
from lanes.key import KeyChoice


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's hold on a partition. `next_offset` is the last applied one + 1; None: nothing applied."""

    partition: int
    epoch: int
    next_offset: int | None
    end_noted: int = -1
    """The end of the partition as noted last."""

    @property
    def read_from(self) -> int | None:
        """Where to go on reading; None: at the first record.

        Between the last record and an end that was met lie only markers, which retention may delete.
        """
        return None if self.next_offset is None else max(self.next_offset, self.end_noted)


@dataclass(frozen=True, slots=True)
class Timing:
    """When paced work on an event began and was done, in microseconds since 1970."""

    started_us: int | None = None
    finished_us: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What a database follows."""

    topic: str
    topic_id: str
    group_id: str


@dataclass(frozen=True, slots=True)
class Run:
    """One start of the consumer. `tick_us` and `zero_us` are None where it was not paced."""

    run: int
    started_us: int
    workers: int
    version_check: bool
    dispatch: Dispatch
    gate: KeyChoice
    """What workers waited for in share dispatch: an earlier event of the same key."""
    selective: bool
    """Whether history events passed that gate."""
    tick_us: int | None
    zero_us: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a partition is applied. `end_seen` is -1 until its owner met the end once."""

    partition: int
    next_offset: int | None
    owner_epoch: int
    owner: str
    end_seen: int

    @property
    def reached(self) -> int:
        """The offset up to which nothing is left to read: between the last record and an end that was met
        lie only markers. 0 where nothing was read yet."""
        return max(self.next_offset or 0, self.end_seen, 0)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim as it was made: from step `after_step` of the history on, older epochs write no more."""

    partition: int
    owner_epoch: int
    owner: str
    after_step: int
    claimed_us: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts. `backward` includes those that were `skipped`, `dead_letters` those that are `parked`."""

    in_history: int
    backward: int
    skipped: int
    dead_letters: int
    parked: int


@dataclass(frozen=True, slots=True)
class ShipmentRow:
    """A shipment's state now."""

    tracking_no: str
    line: str
    state: str
    version: int
    arrival_order: int


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """An event that was applied, or skipped by the version check. `duration` is in ticks."""

    step: int
    partition: int
    offset: int
    tracking_no: str
    line: str
    state: str
    version: int | None
    """None for a history event, which touches no state; `state` then says where it was scanned."""
    duration: int
    arrival_order: int
    version_before: int | None
    version_after: int | None
    backward: bool
    skipped: bool
    run: int
    worker: int
    owner_epoch: int | None
    delivery: int
    started_us: int | None
    finished_us: int | None
    applied_us: int


@dataclass(frozen=True, slots=True)
class UnsentLetter:
    """What the dead-letter topic gets of a dead letter."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    reason: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was not applied, whole, with the reason. Times are microseconds since 1970."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    reason: str
    parked: int
    """1 where nothing is wrong with it but that it waits behind a bad record of its key."""
    run: int
    worker: int
    owner_epoch: int | None
    kept_us: int
    sent_us: int | None
    """When the dead-letter topic acknowledged it."""
    resolved_us: int | None
    """When a retry applied it; it is in the history from then on."""
