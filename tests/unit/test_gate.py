"""The lane gate: which event comes before which in its lane, as the topic shows it, and when the gate opens.

A reader that a test wrote down stands in for the topic; the database is real.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from observations import record_at
from streams import state_event

from broker.settings import Connection
from consumer.errors import RunStalled
from consumer.gate import Gate
from lanes.event import HistoryEvent
from lanes.key import KeyChoice
from lanes.record import Record
from state.applying import Applier
from state.store import Store

TRACKING_NO, LINE, NONE = KeyChoice.TRACKING_NO, KeyChoice.LINE, KeyChoice.NONE


class Message:
    """A message of the topic, or the news that its partition's end was met."""

    def __init__(self, record: Record, *, is_end: bool = False) -> None:
        self.record = record
        self.is_end = is_end

    def partition(self) -> int:
        return self.record.partition

    def offset(self) -> int:
        return self.record.offset

    def key(self) -> bytes | None:
        return self.record.key

    def value(self) -> bytes | None:
        return self.record.value

    def error(self) -> object:
        return "end of partition" if self.is_end else None


class Reader:
    """Gives out the messages of the partitions that it was assigned, in batches of two."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.assigned: list[int] = []
        self.closed = False

    def incremental_assign(self, partitions: list[object]) -> None:
        self.assigned += [p.partition for p in partitions]  # type: ignore[attr-defined]

    def consume(self, _most: int, timeout: float) -> list[Message]:
        assert timeout < 1
        ready = [m for m in self.messages if m.partition() in self.assigned][:2]
        self.messages = [m for m in self.messages if m not in ready]
        return ready

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    monkeypatch.setattr("consumer.gate.open_consumer", lambda _settings: made)
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "states.db", "shipments", "id-1")
    yield opened
    opened.close()


def gate(store: Store, key: KeyChoice = TRACKING_NO, *, selective: bool = False) -> Gate:
    return Gate(Connection("localhost:1"), store, key, selective=selective)


def done(store: Store, record: Record) -> None:
    """Apply a record as a crewmate would."""
    run = store.start_run(1, version_check=False)
    assert Applier(store, run, 0, version_check=False).apply_shared(record)


def topic(reader: Reader, *records: Record) -> list[Record]:
    reader.messages = [Message(record) for record in records]
    return list(records)


def scan(order: int, shipment: str = "A") -> HistoryEvent:
    return HistoryEvent(tracking_no=shipment, line="L1", duration=1, order=order, scan="gate")


@pytest.mark.parametrize(
    ("key", "selective", "state_lane", "scan_lane"),
    [
        (TRACKING_NO, False, "A", "A"),
        (LINE, False, "L1", "L1"),
        (TRACKING_NO, True, "A", None),
        (LINE, True, "L1", None),
        (NONE, False, None, None),
    ],
)
@pytest.mark.usefixtures("reader")
def test_the_lane_is_the_key_and_selective_a_scan_has_none(
    store: Store, key: KeyChoice, selective: bool, state_lane: str | None, scan_lane: str | None
) -> None:
    made = gate(store, key, selective=selective)
    assert made.lane_of(record_at(0, 0, state_event(0, shipment="A"))) == state_lane
    assert made.lane_of(record_at(0, 1, scan(1))) == scan_lane
    assert made.lane_of(record_at(0, 2)) is None


def test_what_is_before_an_event_is_the_last_one_of_its_lane_in_its_partition(
    reader: Reader, store: Store
) -> None:
    shipments = {0: "ABAAB", 1: "BA"}
    records = topic(
        reader,
        *(
            record_at(partition, offset * 10, state_event(partition * 10 + offset, shipment=shipment))
            for partition, names in shipments.items()
            for offset, shipment in enumerate(names)
        ),
    )
    made = gate(store)
    assert [made.before(record) for record in records] == [None, None, 0, 20, 10, None, None]


def test_by_line_all_shipments_of_the_line_wait_for_each_other(reader: Reader, store: Store) -> None:
    records = topic(
        reader,
        *(
            record_at(0, order, state_event(order, shipment=shipment, line=line))
            for order, (shipment, line) in enumerate((("A", "L1"), ("B", "L1"), ("C", "L2"), ("A", "L1")))
        ),
    )
    made = gate(store, LINE)
    assert [made.before(record) for record in records] == [None, 0, None, 1]


def test_what_is_no_event_is_in_no_lane(reader: Reader, store: Store) -> None:
    first, bad, last = topic(
        reader,
        record_at(0, 0, state_event(0, shipment="A")),
        record_at(0, 1, key="A"),
        record_at(0, 2, state_event(2, shipment="A")),
    )
    made = gate(store)
    assert (made.before(first), made.before(bad), made.before(last)) == (None, None, 0)
    assert made.is_open(bad)


def test_selective_a_state_waits_for_the_state_before_and_not_for_scans(reader: Reader, store: Store) -> None:
    first, scanned, last = topic(
        reader,
        record_at(0, 0, state_event(0, shipment="A")),
        record_at(0, 1, scan(1)),
        record_at(0, 2, state_event(2, shipment="A")),
    )
    made = gate(store, selective=True)
    assert (made.before(first), made.before(scanned), made.before(last)) == (None, None, 0)


def test_without_a_lane_the_topic_is_not_even_read(reader: Reader, store: Store) -> None:
    assert gate(store, NONE).is_open(record_at(0, 99, state_event(0)))
    assert reader.assigned == []


def test_a_partition_is_read_from_its_start_once_and_as_far_as_needed(reader: Reader, store: Store) -> None:
    records = topic(reader, *(record_at(0, offset, state_event(offset)) for offset in range(6)))
    made = gate(store)
    made.before(records[0])
    assert [message.offset() for message in reader.messages] == [2, 3, 4, 5]
    made.before(records[5])
    assert made.before(records[2]) == 1
    assert reader.assigned == [0]
    assert reader.messages == []


def test_the_end_of_a_partition_is_no_record_of_a_lane(reader: Reader, store: Store) -> None:
    first, second = (record_at(0, offset, state_event(offset)) for offset in (0, 7))
    end = Message(record_at(0, 3, state_event(9)), is_end=True)
    reader.messages = [Message(first), end, Message(second)]
    assert gate(store).before(second) == 0


def test_the_gate_opens_when_the_event_before_is_applied(reader: Reader, store: Store) -> None:
    first, second = topic(reader, *(record_at(0, offset, state_event(offset)) for offset in (0, 1)))
    made = gate(store)
    assert made.is_open(first)
    assert not made.is_open(second)
    done(store, first)
    assert made.is_open(second)


def test_only_the_event_right_before_counts_for_it_has_waited_for_the_others(
    reader: Reader, store: Store
) -> None:
    records = topic(reader, *(record_at(0, offset, state_event(offset)) for offset in range(3)))
    done(store, records[1])
    assert gate(store).is_open(records[2])


def test_waiting_ends_when_the_gate_opens_when_patience_runs_out_or_when_told_to_stop(
    reader: Reader, store: Store
) -> None:
    first, second = topic(reader, *(record_at(0, offset, state_event(offset)) for offset in (0, 1)))
    made = gate(store)
    assert made.wait(second, 0.02, lambda: False) is False
    assert made.wait(second, 60, lambda: True) is False
    looks = []

    def crewmate_applies_it() -> bool:
        looks.append(1)
        if len(looks) == 3:
            done(store, first)
        return False

    assert made.wait(second, 60, crewmate_applies_it) is True
    assert made.wait(first, 0, lambda: True) is True


def test_a_record_that_the_topic_does_not_show_is_an_error_that_names_it(
    reader: Reader, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.gate.READ_TIMEOUT_S", 0.05)
    topic(reader, record_at(3, 0, state_event(0)))
    with pytest.raises(RunStalled, match="does not show a record") as stalled:
        gate(store).before(record_at(3, 5, state_event(5)))
    error = stalled.value
    assert (error.topic, error.partition, error.offset) == ("shipments", 3, 5)


def test_its_reader_is_closed_with_it(reader: Reader, store: Store) -> None:
    gate(store).close()
    assert reader.closed
