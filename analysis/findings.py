"""From an observation to findings. Pure: the same observation gives the same findings."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.observation import Observation
from analysis.paced import event_of
from lanes.dispatch import Dispatch
from lanes.event import Event, HistoryEvent, StateEvent
from lanes.key import KeyChoice, key_text, look_alikes
from lanes.lane_map import LaneMap, lane_map
from lanes.outcome import Outcome, apply_in
from lanes.record import Record
from state.records import HistoryRow, Run

Position = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True, slots=True)
class PartitionFinding:
    """One partition: offsets as Kafka has them, progress as the database has it, records as counted."""

    partition: int
    low: int
    high: int
    committed: int | None
    next_offset: int | None
    """Where the database goes on: behind the last record applied, or at an end that was met."""
    records: int
    not_yet_applied: int
    ticks: int


@dataclass(frozen=True, slots=True)
class WrongFinal:
    """A shipment whose row is not the state of its last event in arrival order."""

    tracking_no: str
    state: str
    expected: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What the observation shows. Positions are partition and offset."""

    partitions: list[PartitionFinding]
    records: int
    in_history: int
    skipped: int
    dead_lettered: int
    """Records that wait as dead letters; those that a retry applied are in the history."""
    parked: int
    """Those of them that are events and wait behind a bad record of their key."""
    not_yet_applied: int
    lost: list[Position]
    """Passed by the database's progress, and neither in the history nor among the dead letters."""
    twice: list[Position]
    """Both in the history and among the dead letters."""
    reasons: dict[str, int]
    """Why records are dead letters, with counts."""
    key: str
    """tracking-no, line or none as all keys show; else mixed."""
    selective: bool
    """Whether history events go without a key while state events have one."""
    lane_key: str
    """What kept events in lanes: in group dispatch the records' key, in share dispatch the gate."""
    shared: bool
    """Whether a share group handed the records out."""
    gone: set[str]
    """Shipments of which the topic no longer has every event: what the stream asked for cannot be told."""
    without_key: int
    empty_key: int
    lanes: LaneMap
    busiest_key: tuple[str, int] | None
    """Key and its load in ticks."""
    look_alikes: list[list[str]]
    split_shipments: dict[str, list[int]]
    """Shipments whose events are in several partitions: no partition keeps their order."""
    line_changes: dict[str, list[str]]
    """Shipments with more than one line: a key by line does not keep them together."""
    backward: list[HistoryRow]
    wrong: list[WrongFinal]
    undecided: list[str]
    """Shipments whose last arrival order is used by events of different states."""
    skipped_steps: dict[str, list[str]]
    """Shipment to the states that the version check refused."""
    serial: Outcome
    """What one worker in arrival order would have given: the stream's own falls, which no key prevents."""
    repeated_orders: int
    """Events whose arrival order another event has already: written twice, or by two producers."""
    fold_differs: list[str]
    """Shipments whose row is not what their history gives."""

    @property
    def applied(self) -> int:
        """Events written to the state."""
        return self.in_history - self.skipped

    @property
    def partition_lanes(self) -> int:
        """Number of partitions that hold records."""
        return sum(partition.records > 0 for partition in self.partitions)

    @property
    def busiest_lane(self) -> PartitionFinding:
        """The partition with the largest sum of durations."""
        return max(self.partitions, key=lambda partition: (partition.ticks, -partition.partition))


def find(seen: Observation) -> Findings:
    """The findings of an observation."""
    in_history = {(row.partition, row.offset) for row in seen.history}
    open_letters = [letter for letter in seen.dead_letters if letter.resolved_us is None]
    in_letters = {(letter.partition, letter.offset) for letter in open_letters}
    done = in_history | in_letters
    passed = [record for record in seen.records if _is_passed(seen, record, done)]
    positions = {(record.partition, record.offset) for record in passed}
    events = _applied_events(seen, passed, in_letters)
    skipped_steps: dict[str, list[str]] = defaultdict(list)
    for row in seen.history:
        if row.skipped:
            skipped_steps[row.tracking_no].append(row.state)
    wrong, undecided = wrong_finals(seen, events)
    key = key_of(seen.records)
    run = settings_of_runs(seen)
    shared = run is not None and run.dispatch is Dispatch.SHARE
    keys = Counter(record.key for record in seen.records)
    loads = _key_loads(seen.records)
    return Findings(
        partitions=[_partition(seen, partition, positions) for partition in sorted(seen.ranges)],
        records=len(seen.records),
        in_history=len(seen.history),
        skipped=sum(row.skipped for row in seen.history),
        dead_lettered=len(open_letters),
        parked=sum(letter.parked for letter in open_letters),
        not_yet_applied=len(seen.records) - len(passed),
        lost=sorted(positions - done),
        twice=sorted(in_history & in_letters),
        reasons=dict(Counter(letter.reason for letter in open_letters).most_common()),
        key=key,
        selective=is_selective(seen.records, key),
        lane_key=_lane_key(seen, run, key),
        shared=shared,
        gone=_gone(seen),
        without_key=keys[None],
        empty_key=keys[b""],
        lanes=_lanes(seen.records),
        busiest_key=loads.most_common(1)[0] if loads else None,
        look_alikes=look_alikes(key.decode(errors="replace") for key in keys if key),
        split_shipments=_split_shipments(seen.records),
        line_changes=_line_changes(seen.records),
        backward=[row for row in seen.history if row.backward],
        wrong=wrong,
        undecided=undecided,
        skipped_steps=dict(sorted(skipped_steps.items())),
        serial=apply_in(
            sorted(events, key=lambda event: event.order),
            version_check=run is not None and run.version_check,
        ),
        repeated_orders=len(events) - len({event.order for event in events}),
        fold_differs=fold_differs(seen),
    )


def settings_of_runs(seen: Observation) -> Run | None:
    """A run that stands for all that wrote; None where there is none, or their promises differ."""
    writers = {row.run for row in seen.history}
    acting = [run for run in seen.runs if run.run in writers] or seen.runs[-1:]
    promises = {(run.dispatch, run.gate, run.version_check) for run in acting}
    return acting[-1] if len(promises) == 1 else None


def _lane_key(seen: Observation, run: Run | None, key: str) -> str:
    if run is None:
        return key if not seen.runs else "mixed"
    return run.gate if run.dispatch is Dispatch.SHARE else key


def _applied_events(seen: Observation, passed: list[Record], in_letters: set[Position]) -> list[Event]:
    """The events that the database has taken in; of a retried record, what it was mended to."""
    retried = {(letter.partition, letter.offset) for letter in seen.dead_letters} - in_letters
    mended = {
        position: event_of(row)
        for row in seen.history
        if (position := (row.partition, row.offset)) in retried
    }
    events = []
    for record in passed:
        position = (record.partition, record.offset)
        event = mended.get(position, record.event)
        if event is not None and position not in in_letters:
            events.append(event)
    return events


def _gone(seen: Observation) -> set[str]:
    """Shipments of which the topic no longer has every event that their history tells of."""
    topic = {(record.partition, record.offset) for record in seen.records}
    return {row.tracking_no for row in seen.history if (row.partition, row.offset) not in topic}


def _is_passed(seen: Observation, record: Record, done: set[Position]) -> bool:
    """Whether the database has gone past a record, be it applied or not."""
    if (record.partition, record.offset) in done:
        return True
    progress = seen.progress.get(record.partition)
    return progress is not None and record.offset < (progress.next_offset or 0)


def _partition(seen: Observation, partition: int, passed: set[Position]) -> PartitionFinding:
    records = [record for record in seen.records if record.partition == partition]
    progress = seen.progress.get(partition)
    return PartitionFinding(
        partition=partition,
        low=seen.ranges[partition].low,
        high=seen.ranges[partition].high,
        committed=seen.committed.get(partition),
        next_offset=progress.reached if progress and progress.next_offset is not None else None,
        records=len(records),
        not_yet_applied=sum((partition, record.offset) not in passed for record in records),
        ticks=sum(record.event.duration for record in records if record.event),
    )


def key_of(records: Iterable[Record]) -> str:
    """What the records are keyed by, as every state event among them shows; else `mixed`."""
    possible = set(KeyChoice)
    events = [(record.key, record.event) for record in records if isinstance(record.event, StateEvent)]
    for key, event in events:
        for choice in list(possible):
            value = choice.value_of(event)
            if key != (None if value is None else value.encode()):
                possible.discard(choice)
    if not events:
        return KeyChoice.NONE
    # Where every event of the topic fits two keys (one shipment a line, of the same name), the finer counts.
    return next((choice.value for choice in KeyChoice if choice in possible), "mixed")


def is_selective(records: Iterable[Record], key: str) -> bool:
    """Whether there are history events, and none of them has a key, beside keyed state events."""
    keys = {record.key for record in records if isinstance(record.event, HistoryEvent)}
    return key != KeyChoice.NONE and keys == {None}


def _lanes(records: Iterable[Record]) -> LaneMap:
    partitions_of: dict[str, set[int]] = defaultdict(set)
    for record in records:
        if record.key is not None:
            partitions_of[key_text(record.key)].add(record.partition)
    return lane_map(partitions_of)


def _key_loads(records: Iterable[Record]) -> Counter[str]:
    loads: Counter[str] = Counter()
    for record in records:
        if record.key is not None and record.event is not None:
            loads[key_text(record.key)] += record.event.duration
    return loads


def _split_shipments(records: Iterable[Record]) -> dict[str, list[int]]:
    partitions_of: dict[str, set[int]] = defaultdict(set)
    for record in records:
        if record.event is not None:
            partitions_of[record.event.tracking_no].add(record.partition)
    return lane_map(partitions_of).split


def _line_changes(records: Iterable[Record]) -> dict[str, list[str]]:
    lines: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if record.event is not None:
            lines[record.event.tracking_no].add(record.event.line)
    return {shipment: sorted(found) for shipment, found in sorted(lines.items()) if len(found) > 1}


def wrong_finals(seen: Observation, events: Sequence[Event]) -> tuple[list[WrongFinal], list[str]]:
    """Wrong final states, and shipments for which their last arrival order does not decide one."""
    last: dict[str, tuple[int, set[str]]] = {}
    for event in events:
        if isinstance(event, HistoryEvent):
            continue
        order, states = last.get(event.tracking_no, (-1, set()))
        if event.order > order:
            last[event.tracking_no] = (event.order, {event.state.value})
        elif event.order == order:
            states.add(event.state.value)
    undecided = sorted(shipment for shipment, (_, states) in last.items() if len(states) > 1)
    wrong = []
    for row in seen.shipments:
        _, states = last.get(row.tracking_no, (-1, {row.state}))
        if row.state not in states:
            wrong.append(WrongFinal(row.tracking_no, row.state, " or ".join(sorted(states))))
    return wrong, undecided


def fold_differs(seen: Observation) -> list[str]:
    """Shipments whose row is not the last event that their history wrote."""
    folded = {
        row.tracking_no: (row.state, row.arrival_order)
        for row in seen.history
        if row.version and not row.skipped
    }
    rows = {row.tracking_no: (row.state, row.arrival_order) for row in seen.shipments}
    return sorted(name for name in folded.keys() | rows.keys() if folded.get(name) != rows.get(name))
