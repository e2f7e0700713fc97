"""Reading a database back: what is refused, one moment for all that is read, and no lock for writers."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from observations import record_at
from streams import state_event

from state.applying import Applier
from state.database import open_database
from state.errors import DatabaseError
from state.reading import Reading
from state.records import Claim, Progress, ShipmentRow, Source, Totals
from state.store import Store


class Writer:
    """Applies events to one partition, one transaction each, without waiting for a lock."""

    def __init__(self, path: Path) -> None:
        self.store = Store.open(path, "shipments", "id-1", "workers", busy_timeout_s=0)
        run = self.store.start_run(1, version_check=False)
        self.applier = Applier(self.store, run, 0, version_check=False)
        self.claims: dict[int, Claim] = self.store.claim([0], "worker 0")
        self.written = 0

    def write(self, version: int) -> None:
        record = record_at(0, self.written, state_event(self.written, version=version))
        self.claims = self.applier.apply_owned([record], self.claims)
        self.written += 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "states.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    made = Writer(path)
    yield made
    made.store.close()


def test_what_was_written_is_read_back(path: Path, writer: Writer) -> None:
    writer.write(1)
    writer.write(2)
    writer.claims = writer.applier.apply_owned([record_at(0, 2)], writer.claims)
    with Reading(path) as reading:
        assert reading.source == Source("shipments", "id-1", "workers")
        assert [run.run for run in reading.runs()] == [1]
        assert reading.progress() == [Progress(0, 3, 1, "worker 0", -1)]
        assert reading.totals() == Totals(in_history=2, backward=0, skipped=0, dead_letters=1, parked=0)
        assert list(reading.shipments()) == [ShipmentRow("TR-1", "L1", "transferred", 2, 1)]
        assert [(row.step, row.offset, row.state) for row in reading.history()] == [
            (1, 0, "accepted"),
            (2, 1, "transferred"),
        ]
        assert [letter.value for letter in reading.dead_letters()] == [b"{not json"]


def test_totals_are_over_all_runs(path: Path, writer: Writer) -> None:
    writer.write(2)
    again = Applier(writer.store, writer.store.start_run(1, version_check=True), 0, version_check=True)
    again.apply_owned([record_at(0, 1, state_event(1, version=1))], writer.claims)
    with Reading(path) as reading:
        assert reading.totals() == Totals(in_history=2, backward=1, skipped=1, dead_letters=0, parked=0)


def test_shipments_come_by_tracking_number_and_dead_letters_by_position(path: Path, writer: Writer) -> None:
    claims = writer.store.claim([0, 1], "worker 0")
    shipments = [state_event(order, shipment=name) for order, name in enumerate(("B", "a", "A"))]
    records = [record_at(1, offset, event) for offset, event in enumerate(shipments)]
    writer.applier.apply_owned([record_at(1, 9), *records, record_at(0, 4), record_at(0, 2)], claims)
    with Reading(path) as reading:
        assert [row.tracking_no for row in reading.shipments()] == ["A", "B", "a"]
        assert [(r.partition, r.offset) for r in reading.dead_letters()] == [(0, 2), (0, 4), (1, 9)]


def test_reading_takes_no_lock_that_a_writer_would_wait_for(path: Path, writer: Writer) -> None:
    for version in (1, 2, 3):
        writer.write(version)
    with Reading(path) as reading:
        history = reading.history()
        assert next(history).offset == 0
        writer.write(4)  # without waiting: a lock would be an error here
        assert [row.offset for row in history] == [1, 2]


def test_all_that_is_read_is_of_one_moment_though_the_run_goes_on(path: Path, writer: Writer) -> None:
    writer.write(1)
    with Reading(path) as reading:
        assert [row.offset for row in reading.history()] == [0]
        writer.write(2)
        assert [row.state for row in reading.shipments()] == ["accepted"]
        assert [p.next_offset for p in reading.progress()] == [1]
        assert reading.totals().in_history == 1
    with Reading(path) as reading:
        assert [row.state for row in reading.shipments()] == ["transferred"]


def test_a_writer_in_the_middle_of_its_transaction_does_not_show_and_does_not_hold_up_a_reader(
    path: Path, writer: Writer
) -> None:
    writer.write(1)
    with writer.store.database.transaction() as connection:
        connection.execute("update shipment set state = 'delivered'")
        with Reading(path) as reading:
            assert [row.state for row in reading.shipments()] == ["accepted"]


def test_a_file_that_is_read_is_not_made_and_not_changed(tmp_path: Path, path: Path, writer: Writer) -> None:
    with pytest.raises(DatabaseError):
        Reading(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()
    writer.store.close()
    before = path.read_bytes()
    with Reading(path) as reading:
        assert reading.totals().in_history == 0
    assert path.read_bytes() == before


def test_a_database_that_follows_nothing_yet_is_refused(path: Path) -> None:
    open_database(path, create=True).close()
    with pytest.raises(DatabaseError) as refused:
        Reading(path)
    assert str(refused.value) == f"{path} is empty: no run has started on it"


@pytest.mark.usefixtures("writer")
def test_a_closed_reading_reads_no_more(path: Path) -> None:
    with Reading(path) as reading:
        pass
    with pytest.raises(sqlite3.ProgrammingError):
        reading.progress()
