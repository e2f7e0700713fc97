"""Exactly once into the table: fences, what a batch does to rows and history, and crashes at any point."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from observations import record_at
from streams import STATE_OF, state_event

from lanes.event import HistoryEvent
from lanes.record import Record
from state.applying import Applier
from state.errors import DatabaseError, StaleOwner
from state.reading import Reading
from state.records import Claim, DeadLetter, HistoryRow, ShipmentRow, Timing
from state.store import Store


class Desk:
    """One database with one run, and what is in it."""

    def __init__(self, path: Path, *, version_check: bool = False) -> None:
        self.path = path
        self.store = Store.open(path, "shipments", "id-1", "workers")
        self.run = self.store.start_run(2, version_check=version_check)
        self.applier = Applier(self.store, self.run, 1, version_check=version_check)

    def apply(self, *records: Record) -> dict[int, Claim]:
        """Claim the records' partitions and apply them in one transaction."""
        partitions = sorted({record.partition for record in records})
        return self.applier.apply_owned(records, self.store.claim(partitions, "worker 1"))

    def history(self) -> list[HistoryRow]:
        with Reading(self.path) as reading:
            return list(reading.history())

    def rows(self) -> dict[str, tuple[str, int]]:
        """Shipment to the state and arrival order of its row."""
        with Reading(self.path) as reading:
            return {row.tracking_no: (row.state, row.arrival_order) for row in reading.shipments()}

    def letters(self) -> list[DeadLetter]:
        with Reading(self.path) as reading:
            return list(reading.dead_letters())

    def next_offset(self, partition: int = 0) -> int | None:
        return {p.partition: p.next_offset for p in self.store.progress()}[partition]

    def everything(self) -> object:
        """All that a refused or crashed transaction must not have changed."""
        offsets = [(p.partition, p.next_offset) for p in self.store.progress()]
        return self.history(), self.rows(), self.letters(), offsets


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "states.db")
    yield made
    made.store.close()


@pytest.fixture
def checking(tmp_path: Path) -> Iterator[Desk]:
    """The same with the version check on."""
    made = Desk(tmp_path / "checking.db", version_check=True)
    yield made
    made.store.close()


def test_an_applied_event_is_in_the_row_and_in_the_history_with_all_it_came_with(desk: Desk) -> None:
    event = state_event(17, shipment="TR-9", version=2, duration=3, line="L2")
    claims = desk.store.claim([4], "worker 1")
    desk.applier.apply_owned([record_at(4, 100, event)], claims, Timing(started_us=10, finished_us=20))
    with Reading(desk.path) as reading:
        assert list(reading.shipments()) == [ShipmentRow("TR-9", "L2", "transferred", 2, 17)]
    (row,) = desk.history()
    assert row == HistoryRow(
        step=1,
        partition=4,
        offset=100,
        tracking_no="TR-9",
        line="L2",
        state="transferred",
        version=2,
        duration=3,
        arrival_order=17,
        version_before=None,
        version_after=2,
        backward=False,
        skipped=False,
        run=1,
        worker=1,
        owner_epoch=1,
        delivery=1,
        started_us=10,
        finished_us=20,
        applied_us=row.applied_us,
    )


def test_the_next_offset_is_one_after_the_last_whatever_holes_lie_between(desk: Desk) -> None:
    moved = desk.apply(record_at(0, 3, state_event(0)), record_at(0, 9, state_event(1)))
    assert moved[0].next_offset == 10
    assert desk.next_offset() == 10
    moved = desk.applier.apply_owned([record_at(0, 12, state_event(2))], moved)
    assert moved == {0: Claim(0, epoch=1, next_offset=13)}


def test_several_partitions_move_in_one_transaction_and_untouched_claims_stay(desk: Desk) -> None:
    claims = desk.store.claim([0, 1, 2], "worker 1")
    moved = desk.applier.apply_owned(
        [record_at(1, 7, state_event(0)), record_at(0, 2, state_event(1)), record_at(1, 8, state_event(2))],
        claims,
    )
    assert moved == {0: Claim(0, 1, 3), 1: Claim(1, 1, 9), 2: Claim(2, 1, None)}
    assert [(row.partition, row.offset) for row in desk.history()] == [(1, 7), (0, 2), (1, 8)]


def test_nothing_to_apply_changes_nothing(desk: Desk) -> None:
    claims = desk.store.claim([0], "worker 1")
    before = desk.everything()
    assert desk.applier.apply_owned([], claims) == claims
    assert desk.everything() == before


def test_a_stale_epoch_is_refused_while_its_offset_is_still_current_and_nothing_changes(desk: Desk) -> None:
    zombie = desk.store.claim([0], "zombie")
    rightful = desk.store.claim([0], "owner")
    assert zombie[0].next_offset == rightful[0].next_offset
    before = desk.everything()
    with pytest.raises(StaleOwner) as refused:
        desk.applier.apply_owned([record_at(0, 0, state_event()), record_at(0, 1)], zombie)
    assert str(refused.value) == "owner epoch 1 is stale: 2 owns the partition now"
    assert (refused.value.topic, refused.value.partition) == ("shipments", 0)
    assert desk.everything() == before
    desk.applier.apply_owned([record_at(0, 0, state_event())], rightful)
    assert desk.next_offset() == 1


def test_one_stale_partition_refuses_the_whole_batch(desk: Desk) -> None:
    claims = desk.store.claim([0, 1], "zombie")
    desk.store.claim([1], "owner")
    before = desk.everything()
    with pytest.raises(StaleOwner, match="owner epoch 1 is stale"):
        desk.applier.apply_owned([record_at(0, 0, state_event(0)), record_at(1, 0, state_event(1))], claims)
    assert desk.everything() == before


def test_a_second_copy_of_one_claim_is_refused_by_the_offset_it_expects(desk: Desk) -> None:
    claims = desk.store.claim([0], "worker 1")
    desk.applier.apply_owned([record_at(0, 0, state_event())], claims)
    before = desk.everything()
    for second in (record_at(0, 0, state_event()), record_at(0, 1, state_event(1))):
        with pytest.raises(StaleOwner) as refused:
            desk.applier.apply_owned([second], claims)
        assert str(refused.value) == "expected to go on at offset None, the database is at 1"
    assert desk.everything() == before


def test_a_claim_that_is_ahead_of_the_database_is_refused(desk: Desk) -> None:
    claim = desk.store.claim([0], "worker 1")[0]
    ahead = {0: Claim(0, claim.epoch, next_offset=5)}
    with pytest.raises(StaleOwner) as refused:
        desk.applier.apply_owned([record_at(0, 5, state_event())], ahead)
    assert str(refused.value) == "expected to go on at offset 5, the database is at None"
    assert desk.history() == []


@pytest.mark.parametrize("again", [state_event(0, version=3), None], ids=["event", "dead letter"])
def test_the_exact_record_twice_changes_nothing(desk: Desk, again: Any) -> None:
    claims = desk.apply(record_at(0, 0, again))
    before = desk.everything()
    with pytest.raises(DatabaseError, match="UNIQUE constraint failed"):
        desk.applier.apply_owned([record_at(0, 0, again)], claims)
    assert desk.everything() == before


def steps(desk: Desk) -> list[tuple[int | None, int | None, int | None, bool, bool]]:
    """Of each history row the version before, its own and the one after, backward, skipped."""
    return [
        (row.version_before, row.version, row.version_after, row.backward, row.skipped)
        for row in desk.history()
    ]


def test_one_batch_judges_each_event_by_the_row_as_the_one_before_it_left_it(desk: Desk) -> None:
    desk.apply(record_at(0, 0, state_event(0, version=1)))
    desk.apply(record_at(0, 1, state_event(1, version=3)), record_at(0, 2, state_event(2, version=2)))
    assert steps(desk) == [(None, 1, 1, False, False), (1, 3, 3, False, False), (3, 2, 2, True, False)]
    assert desk.rows() == {"TR-1": ("transferred", 2)}


def test_with_the_version_check_the_newer_state_stays_and_the_older_is_a_skipped_step(checking: Desk) -> None:
    checking.apply(record_at(0, 0, state_event(0, version=1)))
    checking.apply(record_at(0, 1, state_event(1, version=3)), record_at(0, 2, state_event(2, version=2)))
    assert steps(checking) == [(None, 1, 1, False, False), (1, 3, 3, False, False), (3, 2, 3, True, True)]
    assert checking.rows() == {"TR-1": ("outForDelivery", 1)}


def test_a_late_accepted_after_delivered_is_a_wrong_row_without_the_check_and_none_with_it(
    desk: Desk, checking: Desk
) -> None:
    for where in (desk, checking):
        where.apply(record_at(0, 0, state_event(1, version=4)), record_at(1, 0, state_event(0, version=1)))
    assert desk.rows() == {"TR-1": ("accepted", 0)}
    assert checking.rows() == {"TR-1": ("delivered", 1)}
    assert [row.backward for row in desk.history()] == [False, True]
    assert [row.skipped for row in checking.history()] == [False, True]


@pytest.mark.parametrize("which", ["desk", "checking"])
def test_an_equal_version_passes_and_is_no_backward_write(which: str, request: pytest.FixtureRequest) -> None:
    desk: Desk = request.getfixturevalue(which)
    desk.apply(
        record_at(0, 0, state_event(0, version=2, line="L1")),
        record_at(0, 1, state_event(1, version=2, line="L7")),
    )
    assert [(row.backward, row.skipped) for row in desk.history()] == [(False, False)] * 2
    with Reading(desk.path) as reading:
        assert list(reading.shipments()) == [ShipmentRow("TR-1", "L7", "transferred", 2, 1)]


def test_shipments_do_not_touch_each_others_rows(desk: Desk) -> None:
    desk.apply(
        record_at(0, 0, state_event(0, shipment="A", version=4)),
        record_at(0, 1, state_event(1, shipment="B", version=1)),
        record_at(0, 2, state_event(2, shipment="a", version=2)),
    )
    assert desk.rows() == {"A": ("delivered", 0), "B": ("accepted", 1), "a": ("transferred", 2)}
    assert [row.backward for row in desk.history()] == [False, False, False]


def test_a_history_event_is_appended_and_touches_no_state(checking: Desk) -> None:
    scan = HistoryEvent(tracking_no="TR-1", line="L1", duration=1, order=1, scan="gate 4")
    checking.apply(
        record_at(0, 0, state_event(0, version=3)),
        record_at(0, 1, scan),
        record_at(0, 2, state_event(2, version=2)),
    )
    scanned = checking.history()[1]
    assert (scanned.state, scanned.version, scanned.version_before, scanned.version_after) == (
        "gate 4",
        None,
        None,
        None,
    )
    assert (scanned.backward, scanned.skipped) == (False, False)
    assert checking.rows() == {"TR-1": ("outForDelivery", 0)}


def test_a_record_that_is_no_event_is_kept_whole_in_the_same_transaction_and_its_partition_goes_on(
    desk: Desk,
) -> None:
    moved = desk.apply(
        record_at(0, 0, state_event(0)),
        record_at(0, 1, value=b"\xff\xfe", key="TR-1"),
        record_at(0, 2, value=None),
        record_at(0, 3, value=b""),
        record_at(0, 4, state_event(1, version=2)),
    )
    assert moved[0].next_offset == 5
    assert [(row.offset, row.state) for row in desk.history()] == [(0, "accepted"), (4, "transferred")]
    kept = [(letter.offset, letter.key, letter.value, letter.run, letter.worker) for letter in desk.letters()]
    assert kept == [(1, b"TR-1", b"\xff\xfe", 1, 1), (2, None, None, 1, 1), (3, None, b"", 1, 1)]
    assert [letter.reason for letter in desk.letters()][1:] == [
        "tombstone: the record has a null value",
        "empty value: 0 bytes",
    ]


class Crash(Exception):
    """What stands for the end of a worker in the middle of its work."""


class CrashingBatch(list[Record]):
    """Records that crash whoever reads them for the `pass_`-th time (from 1), at one record."""

    def __init__(self, records: Iterable[Record], pass_: int, at: int) -> None:
        super().__init__(records)
        self.pass_ = pass_
        self.at = at

    def __iter__(self) -> Iterator[Record]:
        self.pass_ -= 1
        for index, record in enumerate(super().__iter__()):
            if self.pass_ == 0 and index == self.at:
                raise Crash
            yield record


def test_a_failure_while_offsets_are_moved_leaves_nothing(desk: Desk) -> None:
    claims = desk.apply(record_at(0, 0, state_event(0)))
    records = [record_at(0, 1, state_event(1, version=3)), record_at(0, 2)]
    before = desk.everything()
    connection = desk.store.database.connection
    connection.execute(
        "create temp trigger failing before update of next_offset on progress "
        "begin select raise(abort, 'no'); end"
    )
    with pytest.raises(DatabaseError, match="no"):
        desk.applier.apply_owned(records, claims)
    assert desk.everything() == before
    connection.execute("drop trigger failing")
    desk.applier.apply_owned(records, claims)
    assert desk.next_offset() == 3


@pytest.mark.parametrize("pass_", [2, 3], ids=["writing events", "keeping letters"])
@pytest.mark.parametrize("at", [0, 2])
def test_a_crash_at_any_step_of_the_transaction_leaves_nothing(desk: Desk, pass_: int, at: int) -> None:
    claims = desk.apply(record_at(0, 0, state_event(0)))
    records = [record_at(0, 1, state_event(1, version=3)), record_at(0, 2), record_at(0, 3, state_event(2))]
    before = desk.everything()
    with pytest.raises(Crash):
        desk.applier.apply_owned(CrashingBatch(records, pass_, at), claims)
    assert desk.everything() == before
    desk.applier.apply_owned(records, claims)
    assert desk.next_offset() == 4


@pytest.mark.parametrize("event", [state_event(0, version=2), None], ids=["event", "dead letter"])
def test_a_second_delivery_by_a_share_group_changes_nothing(desk: Desk, event: Any) -> None:
    assert desk.applier.apply_shared(record_at(0, 5, event)) is True
    before = desk.everything()
    assert desk.applier.apply_shared(record_at(0, 5, event, delivery=2)) is False
    assert desk.everything() == before


def test_a_second_delivery_after_a_newer_state_does_not_bring_the_older_one_back(
    desk: Desk,
) -> None:
    older, newer = record_at(0, 0, state_event(0, version=1)), record_at(1, 0, state_event(1, version=2))
    for record in (older, newer):
        assert desk.applier.apply_shared(record)
    assert not desk.applier.apply_shared(record_at(0, 0, state_event(0, version=1), delivery=2))
    assert desk.rows() == {"TR-1": ("transferred", 1)}
    assert [row.backward for row in desk.history()] == [False, False]


def test_share_dispatch_keeps_the_delivery_the_timing_and_the_backward_write(desk: Desk) -> None:
    desk.applier.apply_shared(record_at(0, 1, state_event(1, version=2)))
    desk.applier.apply_shared(record_at(0, 0, state_event(0), delivery=3), Timing(5, 6))
    late = desk.history()[1]
    assert (late.delivery, late.started_us, late.finished_us, late.backward) == (3, 5, 6, True)
    assert desk.store.progress() == []


PARTITIONS = 3
WORKERS = ("worker 0", "worker 1", "worker 2")


@st.composite
def logs(draw: st.DrawFn) -> dict[int, list[Record]]:
    """Each partition's records, with holes between offsets and values that are no event."""
    shape = st.tuples(st.integers(1, 3), st.sampled_from("AB"), st.integers(1, 4), st.integers(0, 6))
    log: dict[int, list[Record]] = {}
    order = 0
    for partition in range(PARTITIONS):
        offset = -1
        log[partition] = []
        for step, shipment, version, luck in draw(st.lists(shape, max_size=10)):
            offset += step
            event = state_event(order, shipment=shipment, version=version) if luck else None
            log[partition].append(record_at(partition, offset, event))
            order += 1
    return log


class WorkersThatComeAndGo(RuleBasedStateMachine):
    """Workers that claim, apply, crash and come back as zombies, in any order, on one database.

    Two machines run from it: without and with the version check.
    """

    version_check = False

    @initialize(log=logs())
    def open(self, log: dict[int, list[Record]]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.desk = Desk(Path(self.folder.name) / "states.db", version_check=self.version_check)
        self.log = log
        self.claims: dict[str, dict[int, Claim]] = {worker: {} for worker in WORKERS}
        self.owner: dict[int, str] = {}

    @rule(worker=st.sampled_from(WORKERS), partitions=st.sets(st.integers(0, PARTITIONS - 1), min_size=1))
    def claim(self, worker: str, partitions: set[int]) -> None:
        self.claims[worker] = self.desk.store.claim(sorted(partitions), worker)
        # Its older claims are gone with its memory, so nobody owns those partitions now.
        self.owner = {p: owner for p, owner in self.owner.items() if owner != worker}
        self.owner.update(dict.fromkeys(partitions, worker))

    def batch(self, claims: dict[int, Claim], sizes: list[int]) -> list[Record]:
        """The next records of the claimed partitions, as a replay from the claims' offsets gives them."""
        records = []
        for (partition, claim), size in zip(sorted(claims.items()), sizes, strict=False):
            left = [r for r in self.log[partition] if r.offset >= (claim.next_offset or 0)]
            records += left[:size]
        return records

    @rule(worker=st.sampled_from(WORKERS), sizes=st.lists(st.integers(0, 4), min_size=3, max_size=3))
    def apply(self, worker: str, sizes: list[int]) -> None:
        claims = self.claims[worker]
        records = self.batch(claims, sizes)
        stale = {r.partition for r in records if self.owner.get(r.partition) != worker}
        before = self.desk.everything()
        try:
            self.claims[worker] = self.desk.applier.apply_owned(records, claims)
        except StaleOwner:
            assert stale
            assert self.desk.everything() == before
        else:
            assert not stale

    @rule(
        worker=st.sampled_from(WORKERS),
        sizes=st.lists(st.integers(1, 4), min_size=3, max_size=3),
        pass_=st.integers(1, 4),
        at=st.integers(0, 5),
    )
    def crash(self, worker: str, sizes: list[int], pass_: int, at: int) -> None:
        records = self.batch(self.claims[worker], sizes)
        before = self.desk.everything()
        try:
            self.claims[worker] = self.desk.applier.apply_owned(
                CrashingBatch(records, pass_, at), self.claims[worker]
            )
        except (Crash, StaleOwner):
            assert self.desk.everything() == before

    @rule(worker=st.sampled_from(WORKERS), sizes=st.lists(st.integers(1, 4), min_size=3, max_size=3))
    def commit_and_forget(self, worker: str, sizes: list[int]) -> None:
        """The transaction is kept, but the worker does not live to learn of it: its claims stay behind."""
        claims = self.claims[worker]
        if all(self.owner.get(partition) == worker for partition in claims):
            records = self.batch(claims, sizes)
            self.desk.applier.apply_owned(records, claims)
            touched = {record.partition for record in records}
            self.owner = {p: owner for p, owner in self.owner.items() if p not in touched}

    @invariant()
    def history_holds_each_offset_once_in_order_and_nothing_is_passed_over(self) -> None:
        done: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        for row in self.desk.history():
            done[row.partition].append(row.offset)
        for offsets in done.values():
            assert offsets == sorted(set(offsets))
        for letter in self.desk.letters():
            done[letter.partition].append(letter.offset)
        for progress in self.desk.store.progress():
            written = self.log[progress.partition]
            passed = [record.offset for record in written if record.offset < (progress.next_offset or 0)]
            assert sorted(done[progress.partition]) == passed

    @invariant()
    def rows_are_the_fold_of_the_history(self) -> None:
        versions: dict[str, int] = {}
        rows: dict[str, tuple[str, int]] = {}
        for row in self.desk.history():
            assert row.version is not None
            before = versions.get(row.tracking_no)
            backward = before is not None and row.version < before
            assert (row.version_before, row.backward) == (before, backward)
            assert row.skipped == (backward and self.version_check)
            if not row.skipped:
                versions[row.tracking_no] = row.version
                rows[row.tracking_no] = (STATE_OF[row.version].value, row.arrival_order)
        assert self.desk.rows() == rows

    def teardown(self) -> None:
        if not hasattr(self, "desk"):
            return
        claims = self.desk.store.claim(list(range(PARTITIONS)), "the last")
        self.desk.applier.apply_owned(self.batch(claims, [100] * PARTITIONS), claims)
        done = [(row.partition, row.offset) for row in (*self.desk.history(), *self.desk.letters())]
        written = [(r.partition, r.offset) for records in self.log.values() for r in records]
        assert sorted(done) == sorted(written)
        self.desk.store.close()
        self.folder.cleanup()


class WorkersWithTheVersionCheck(WorkersThatComeAndGo):
    """The same with the version check on."""

    version_check = True


LIMITS = settings(max_examples=40, stateful_step_count=20, deadline=None)

TestWorkersThatComeAndGo = WorkersThatComeAndGo.TestCase
TestWorkersThatComeAndGo.settings = LIMITS
TestWorkersWithTheVersionCheck = WorkersWithTheVersionCheck.TestCase
TestWorkersWithTheVersionCheck.settings = LIMITS
