"""Records and observations for tests, written by hand; name only what a test is about."""

from dataclasses import replace
from typing import Any

from analysis.observation import Observation
from broker.topics import OffsetRange
from lanes.dispatch import Dispatch
from lanes.event import Event, StateEvent, encode
from lanes.key import KeyChoice
from lanes.record import Record, read_record
from state.records import DeadLetter, HistoryRow, Progress, Run, ShipmentRow, Source

ITS_TRACKING_NO = "the event's tracking number"

TIME_US = 1_700_000_000_000_000


def record_at(
    partition: int,
    offset: int,
    event: Event | None = None,
    *,
    key: str | None = ITS_TRACKING_NO,
    value: bytes | None = b"{not json",
    delivery: int = 1,
) -> Record:
    """A record at a position: of an event, else of a value that is none."""
    if key == ITS_TRACKING_NO:
        key = event.tracking_no if event else None
    key_bytes = None if key is None else key.encode()
    return read_record(partition, offset, key_bytes, encode(event) if event else value, delivery)


class Scene:
    """A topic and the database of one run on it, as a test makes them happen. Nothing of the product runs."""

    def __init__(
        self,
        partitions: int = 1,
        *,
        dispatch: Dispatch = Dispatch.GROUP,
        gate: KeyChoice = KeyChoice.NONE,
        selective: bool = False,
        version_check: bool = False,
        workers: int = 1,
        tick_us: int | None = None,
        zero_us: int | None = None,
    ) -> None:
        self.run = Run(1, TIME_US, workers, version_check, dispatch, gate, selective, tick_us, zero_us)
        self.partitions = partitions
        self.epoch = 1 if dispatch is Dispatch.GROUP else None
        self.records: list[Record] = []
        self.history: list[HistoryRow] = []
        self.letters: list[DeadLetter] = []
        self.rows: dict[str, ShipmentRow] = {}
        self.next_offset: dict[int, int] = {}

    def write(self, event: Event | None = None, partition: int = 0, **at: Any) -> Record:
        """A record in the topic, at the partition's next offset unless `offset` is named."""
        offset = at.pop("offset", max((r.offset + 1 for r in self._in(partition)), default=0))
        record = record_at(partition, offset, event, **at)
        self.records.append(record)
        return record

    def _in(self, partition: int) -> list[Record]:
        return [record for record in self.records if record.partition == partition]

    def apply(self, record: Record, **changes: Any) -> HistoryRow:
        """Its history row, its shipment's row, and the partition's progress behind it."""
        event = record.event
        assert event is not None
        row = HistoryRow(
            step=len(self.history) + 1,
            partition=record.partition,
            offset=record.offset,
            tracking_no=event.tracking_no,
            line=event.line,
            state=event.state.value if isinstance(event, StateEvent) else event.scan,
            version=None,
            duration=event.duration,
            arrival_order=event.order,
            version_before=None,
            version_after=None,
            backward=False,
            skipped=False,
            run=self.run.run,
            worker=0,
            owner_epoch=self.epoch,
            delivery=record.delivery,
            started_us=None,
            finished_us=None,
            applied_us=TIME_US,
        )
        if isinstance(event, StateEvent):
            row = self._judged(row, event)
        row = replace(row, **changes)
        self.history.append(row)
        self._pass(record)
        return row

    def _judged(self, row: HistoryRow, event: StateEvent) -> HistoryRow:
        before = self.rows.get(event.tracking_no)
        backward = before is not None and event.version < before.version
        skipped = backward and self.run.version_check
        if not skipped:
            self.rows[event.tracking_no] = ShipmentRow(
                event.tracking_no, event.line, event.state.value, event.version, event.order
            )
        return replace(
            row,
            version=event.version,
            version_before=before.version if before else None,
            version_after=self.rows[event.tracking_no].version,
            backward=backward,
            skipped=skipped,
        )

    def keep(self, record: Record, **changes: Any) -> None:
        """A dead letter, and the partition's progress behind it."""
        letter = DeadLetter(
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            reason=record.reason or "no event",
            parked=0,
            run=self.run.run,
            worker=0,
            owner_epoch=self.epoch,
            kept_us=TIME_US,
            sent_us=None,
            resolved_us=None,
        )
        self.letters.append(replace(letter, **changes))
        self._pass(record)

    def _pass(self, record: Record) -> None:
        if self.run.dispatch is Dispatch.GROUP:
            after = max(self.next_offset.get(record.partition, 0), record.offset + 1)
            self.next_offset[record.partition] = after

    def write_and_apply(self, event: Event, partition: int = 0, **at: Any) -> HistoryRow:
        """A record in the topic, applied at once."""
        return self.apply(self.write(event, partition, **at))

    def seen(self, **changes: Any) -> Observation:
        """What can be seen from outside now; `changes` are fields of the observation."""
        ends = {p: max((r.offset + 1 for r in self._in(p)), default=0) for p in range(self.partitions)}
        whole = Observation(
            source=Source("shipments", "id-1", "convoy.shipments"),
            partitions=self.partitions,
            ranges={p: OffsetRange(0, end) for p, end in ends.items()},
            committed=dict(self.next_offset),
            records=sorted(self.records, key=lambda r: (r.partition, r.offset)),
            runs=[self.run],
            progress={p: Progress(p, n, 1, "worker 0", -1) for p, n in self.next_offset.items()},
            shipments=sorted(self.rows.values(), key=lambda row: row.tracking_no),
            history=list(self.history),
            dead_letters=list(self.letters),
        )
        return replace(whole, **changes)
