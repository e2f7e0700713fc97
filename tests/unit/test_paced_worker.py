"""A paced worker takes, among the heads of its partitions, the lowest arrival order; and what it reads ahead.

The membership stands in for a broker: it gives out batches that a test wrote down. The store is real.
"""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from observations import record_at
from streams import state_event

from consumer.group_worker import note_ends
from consumer.membership import Membership
from consumer.orders import Orders
from consumer.paced_worker import PacedWorker
from consumer.pacing import Pace
from consumer.relay import Relay
from lanes.event import Event
from lanes.record import Record
from state.applying import NOT_PACED, Applier
from state.records import Claim, Timing
from state.store import Store

Batch = tuple[list[Record], dict[int, int]]
"""Records, and the ends that were met: partition to offset."""


class Member:
    """A membership with partitions of its own that gives out the batches it was made with."""

    def __init__(self, store: Store, partitions: list[int], batches: list[Batch]) -> None:
        self.store = store
        self.claims = store.claim(partitions, "worker 0")
        self.halted: set[int] = set()
        self.batches = batches
        self.after_claiming_again: list[Batch] = []
        self.asked: list[str] = []
        self.paused: set[int] = set()
        self.told_halts: list[set[int]] = []
        """What still waited, each time that halts were to be told."""

    def poll(self, _most: int, _timeout_s: float) -> Batch:
        self.asked.append("poll")
        return self.batches.pop(0) if self.batches else ([], {})

    def pause(self, partitions: Collection[int]) -> None:
        if partitions:
            self.asked.append(f"pause {sorted(partitions)}")
            self.paused |= set(partitions)

    def resume(self, partitions: Collection[int]) -> None:
        if partitions:
            self.asked.append(f"resume {sorted(partitions)}")
            self.paused -= set(partitions)

    def tell_halts(self, waiting: Collection[int]) -> None:
        self.told_halts.append(set(waiting))

    def claim_again(self) -> None:
        self.asked.append("claim again")
        self.claims = self.store.claim(sorted(self.claims), "worker 0")
        self.batches = self.after_claiming_again

    def commit_group_offsets(self, *, wait: bool) -> None:
        assert not wait
        self.asked.append("commit")


class Told:
    """Orders to start at once and to stop when a condition holds, or when that never comes."""

    zero_us = 0

    def __init__(self, done: Callable[[], bool]) -> None:
        self.done = done
        self.questions = 0

    @property
    def stopped(self) -> bool:
        self.questions += 1
        return self.done() or self.questions > 500


class NoRelay:
    """A relay that sends nothing."""

    def turn(self, partitions: Collection[int]) -> None:
        pass


class Bench:
    """A worker on a database, and what it did in which order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = Store.open(folder / "states.db", "shipments", "id-1")
        run = self.store.start_run(1, version_check=False)
        self.applier = Applier(self.store, run, 0, version_check=False)
        self.worked_on: list[int] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.applied: list[tuple[int, int]] = []
        bench = self

        class QuickPacer:
            """Takes no time, and notes the arrival orders of what was worked on."""

            def __init__(self, *_: object) -> None:
                pass

            def take_time(self, event: Event) -> Timing:
                bench.worked_on.append(event.order)
                bench.meanwhile()
                return NOT_PACED

        monkeypatch.setattr("consumer.paced_worker.Pacer", QuickPacer)
        apply_owned = self.applier.apply_owned

        def noted(records: list[Record], *rest: Any) -> dict[int, Claim]:
            moved = apply_owned(records, *rest)
            self.applied += [(record.partition, record.offset) for record in records]
            return moved

        monkeypatch.setattr(self.applier, "apply_owned", noted)

    def worker(self, member: Member) -> PacedWorker:
        parts = (cast("Membership", member), self.store, self.applier, cast("Relay", NoRelay()))
        return PacedWorker(*parts, Pace(100_000, 20))

    def work(self, member: Member, until: Callable[[], bool] | None = None) -> None:
        """Work until everything given out is applied and a few turns more, or until told."""
        idle = {"turns": 0}

        def nothing_left() -> bool:
            idle["turns"] = idle["turns"] + 1 if not member.batches else 0
            return idle["turns"] > 40

        self.worker(member).work(cast("Orders", Told(until or nothing_left)))

    def ends_noted(self) -> dict[int, int]:
        return {p.partition: p.end_seen for p in self.store.progress()}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(tmp_path, monkeypatch)
    yield made
    made.store.close()


def at(partition: int, offset: int, order: int) -> Record:
    return record_at(partition, offset, state_event(order, shipment=f"S{order}"))


def test_among_the_heads_the_lowest_arrival_order_comes_first(bench: Bench) -> None:
    records = [at(0, 0, 4), at(0, 1, 5), at(1, 0, 1), at(1, 1, 6), at(2, 0, 0), at(2, 1, 9)]
    bench.work(Member(bench.store, [0, 1, 2], [(records, {0: 2, 1: 2, 2: 2})]))
    assert bench.worked_on == [0, 1, 4, 5, 6, 9]
    assert bench.applied == [(2, 0), (1, 0), (0, 0), (0, 1), (1, 1), (2, 1)]


def test_only_heads_are_compared_a_partition_keeps_its_offset_order(bench: Bench) -> None:
    records = [at(0, 0, 8), at(0, 1, 1), at(1, 0, 5)]
    bench.work(Member(bench.store, [0, 1], [(records, {0: 2, 1: 1})]))
    assert bench.worked_on == [5, 8, 1]


def test_it_waits_while_a_head_is_unknown_because_that_may_be_the_lowest(bench: Bench) -> None:
    batches: list[Batch] = [([at(0, 0, 5)], {0: 1}), ([], {}), ([], {}), ([at(1, 0, 2)], {1: 1})]
    bench.work(Member(bench.store, [0, 1], batches))
    assert bench.worked_on == [2, 5]


def test_a_partition_whose_end_was_met_holds_nobody_up(bench: Bench) -> None:
    batches: list[Batch] = [([at(0, 0, 5)], {}), ([], {1: 0}), ([], {0: 1}), ([at(1, 0, 2)], {1: 1})]
    bench.work(Member(bench.store, [0, 1], batches), until=lambda: len(bench.worked_on) > 1)
    assert bench.worked_on == [5, 2]


def test_an_end_met_before_more_records_came_is_the_end_no_longer(bench: Bench) -> None:
    batches: list[Batch] = [
        ([at(0, 0, 5)], {0: 1, 1: 0}),
        ([at(1, 0, 7)], {}),
        ([at(0, 1, 9)], {0: 2}),
        ([], {}),
        ([at(1, 1, 8)], {1: 2}),
    ]
    bench.work(Member(bench.store, [0, 1], batches))
    assert bench.worked_on == [5, 7, 8, 9]


def test_a_halted_partition_holds_nobody_up(bench: Bench) -> None:
    member = Member(bench.store, [0, 1], [([at(0, 0, 5)], {0: 1})])
    member.halted = {1}
    bench.work(member)
    assert bench.worked_on == [5]


def test_what_is_no_event_takes_no_time_and_does_not_wait_behind_one(bench: Bench) -> None:
    records = [at(0, 0, 3), record_at(1, 0), at(1, 1, 9)]
    bench.work(Member(bench.store, [0, 1], [(records, {0: 1, 1: 2})]))
    assert bench.worked_on == [3, 9]
    assert bench.applied == [(1, 0), (0, 0), (1, 1)]


def test_each_event_is_a_transaction_whose_offset_the_group_is_told(bench: Bench) -> None:
    member = Member(bench.store, [0], [([at(0, 0, 0), at(0, 1, 1)], {0: 2})])
    bench.work(member)
    assert member.asked.count("commit") == 2
    assert member.claims[0].next_offset == 2


def test_records_before_the_databases_offset_are_passed_over(bench: Bench) -> None:
    bench.applier.apply_owned([at(0, 4, 0)], bench.store.claim([0], "earlier"))
    bench.applied.clear()
    bench.work(Member(bench.store, [0], [([at(0, 4, 0), at(0, 5, 1)], {0: 6})]))
    assert bench.applied == [(0, 5)]


def test_a_refused_write_is_begun_again_at_the_databases_offset_and_nothing_is_applied_twice(
    bench: Bench,
) -> None:
    records = [at(0, 0, 0), at(0, 1, 1), at(0, 2, 2)]
    member = Member(bench.store, [0], [(records, {0: 3})])
    member.after_claiming_again = [(records[1:], {0: 3})]

    def rival_comes() -> None:
        if bench.worked_on == [0, 1]:
            bench.store.claim([0], "rival")

    bench.meanwhile = rival_comes
    bench.work(member)
    assert "claim again" in member.asked
    assert bench.worked_on == [0, 1, 1, 2]
    assert bench.applied == [(0, 0), (0, 1), (0, 2)]


def test_an_event_whose_partition_went_while_it_was_worked_on_is_not_applied(bench: Bench) -> None:
    member = Member(bench.store, [0, 1], [([at(0, 0, 0), at(1, 0, 5)], {0: 1, 1: 1})])

    def partition_goes() -> None:
        member.claims.pop(0, None)

    bench.meanwhile = partition_goes
    bench.work(member)
    assert bench.worked_on == [0, 5]
    assert bench.applied == [(1, 0)]


def test_what_was_read_ahead_of_a_partition_that_went_is_forgotten(bench: Bench) -> None:
    records = [at(0, 0, 0), at(0, 1, 1), at(1, 0, 5), at(1, 1, 6)]
    member = Member(bench.store, [0, 1], [(records, {0: 2, 1: 2})])
    worker = bench.worker(member)

    def taken_and_given_back() -> None:
        if bench.worked_on == [0]:
            worker.forget_all_but([1])
            member.batches = [([], {}), ([at(0, 0, 0), at(0, 1, 1)], {0: 2})]

    bench.meanwhile = taken_and_given_back
    worker.work(cast("Orders", Told(lambda: bench.worked_on[-1:] == [6])))
    assert bench.applied[:3] == [(0, 0), (0, 1), (1, 0)]


def test_too_much_read_ahead_pauses_the_partitions_and_less_takes_them_up_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.paced_worker.MOST_WAITING", 2)
    member = Member(bench.store, [0], [([at(0, 0, 0), at(0, 1, 1), at(0, 2, 2)], {0: 3})])
    bench.meanwhile = lambda: worker._read_ahead(0)
    worker = bench.worker(member)
    worker.work(cast("Orders", Told(lambda: len(bench.applied) == 3)))
    turns = [asked for asked in member.asked if asked.startswith(("pause", "resume"))]
    assert turns == ["pause [0]", "resume [0]"]


def test_a_full_partition_is_paused_alone_so_that_an_unknown_head_can_come(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.paced_worker.MOST_WAITING", 2)
    first = [at(0, 0, 3), at(0, 1, 4), at(0, 2, 5)]
    member = Member(bench.store, [0, 1], [(first, {0: 3}), ([at(1, 0, 1)], {1: 1})])
    bench.work(member)
    assert bench.worked_on == [1, 3, 4, 5]
    assert member.asked[:2] == ["poll", "pause [0]"]
    assert "pause [1]" not in member.asked


def test_a_halt_is_told_with_what_still_waits_before_it(bench: Bench) -> None:
    member = Member(bench.store, [0, 1], [([at(0, 0, 5)], {}), ([], {1: 0})])
    member.halted = {0}
    bench.work(member)
    assert member.told_halts[0] == set()
    assert {0} in member.told_halts
    assert bench.worked_on == [5]
    assert member.told_halts[-1] == set()


def test_an_end_behind_markers_is_noted_when_everything_before_it_is_applied(bench: Bench) -> None:
    bench.work(Member(bench.store, [0], [([at(0, 0, 0), at(0, 1, 1)], {0: 5})]))
    assert bench.ends_noted() == {0: 5}


def test_an_end_is_not_noted_while_records_before_it_wait_for_another_partitions_head(bench: Bench) -> None:
    member = Member(bench.store, [0, 1], [([at(0, 0, 5)], {0: 3}), ([], {}), ([], {})])
    seen: list[dict[int, int]] = []

    def looked_often_enough() -> bool:
        seen.append(bench.ends_noted())
        return len(seen) > 10

    bench.work(member, until=looked_often_enough)
    assert bench.worked_on == []
    assert seen[-1] == {0: -1, 1: -1}


def test_before_the_start_it_reads_ahead_and_works_on_nothing(bench: Bench) -> None:
    member = Member(bench.store, [0], [([at(0, 0, 0)], {}), ([at(0, 1, 1)], {0: 2})])

    class NotYet(Told):
        zero_us = None  # type: ignore[assignment]

    bench.worker(member).work(cast("Orders", NotYet(lambda: member.asked.count("poll") > 3)))
    assert bench.worked_on == []
    assert member.batches == []


def test_an_end_is_noted_once_and_only_where_it_lies_behind_what_was_applied(bench: Bench) -> None:
    member = Member(bench.store, [0, 1, 2], [])
    member.claims = bench.applier.apply_owned([at(0, 3, 0)], member.claims)
    for _ in range(2):
        note_ends(bench.store, cast("Membership", member), {0: 4, 1: 2, 7: 9})
    assert bench.ends_noted() == {0: -1, 1: 2, 2: -1}
    assert {p: claim.end_noted for p, claim in member.claims.items()} == {0: -1, 1: 2, 2: -1}
