"""The end of a fault run: rows, verdict and its last line; and whose turn it is."""

import pytest
from chaos.arena import Judged
from chaos.faults import Fault
from chaos.scene import Outcome
from chaos.schedule import Schedule
from chaos.table import Row, last_line, verdict_of

from analysis.verdict import Holds


def outcome(
    wanted: int = 2,
    landed: int = 2,
    holds: Holds = Holds.TRUE,
    lost: int = 0,
    recovery_s: float = 1.0,
    *,
    counts: bool = True,
) -> Outcome:
    judged = Judged(holds, ["why"] * (holds is not Holds.TRUE), 500, lost, 0, 3, recovery_s)
    return Outcome(wanted, landed, judged, counts)


def row(*outcomes: Outcome) -> Row:
    made = Row("a fault")
    for each in outcomes:
        made.add(each)
    return made


def test_counts_add_up_and_the_longest_recovery_stands() -> None:
    found = row(outcome(recovery_s=2.0), outcome(recovery_s=1.0))

    assert found.cells() == ("a fault", "4", "1,000", 0, 0, 6, "2.0 s", "true")
    assert last_line([found]) == "verdict true: 1 faults, 4 landed, 1,000 records, 0 lost, 0 duplicated"


@pytest.mark.parametrize(
    ("tries", "verdict"),
    [
        ([outcome()], Holds.TRUE),
        ([outcome(wanted=2, landed=1)], Holds.UNKNOWN),
        ([outcome(holds=Holds.FALSE)], Holds.FALSE),
        ([outcome(), outcome(holds=Holds.FALSE), outcome()], Holds.FALSE),
        ([outcome(), outcome(holds=Holds.UNKNOWN)], Holds.UNKNOWN),
        ([], Holds.UNKNOWN),
    ],
    ids=["landed", "landed too seldom", "false", "false once", "unknown once", "never tried"],
)
def test_a_fault_that_was_not_seen_to_land_is_never_true(tries: list[Outcome], verdict: Holds) -> None:
    assert row(*tries).holds is verdict
    assert verdict_of([row(outcome()), row(*tries)]) is verdict


def test_no_fault_at_all_proves_nothing() -> None:
    assert verdict_of([]) is Holds.UNKNOWN


def test_a_try_that_broke_off_is_unknown() -> None:
    found = row(outcome())
    found.fail("TimeoutError: no answer")

    assert (found.holds, found.reasons) == (Holds.UNKNOWN, ["TimeoutError: no answer"])


def test_a_broken_worker_must_be_caught_and_its_losses_are_not_ours() -> None:
    caught = row(outcome(1, 1, Holds.FALSE, lost=40, counts=False))
    missed = row(outcome(1, 0, Holds.TRUE, counts=False))

    assert (caught.holds, missed.holds) == (Holds.TRUE, Holds.UNKNOWN)
    assert last_line([row(outcome()), caught]).endswith("3 landed, 500 records, 0 lost, 0 duplicated")


class Clock:
    """A time box of so many seconds, spent by hand."""

    def __init__(self, left_s: float) -> None:
        self.left_s = left_s

    def take(self, schedule: Schedule, took_s: float) -> tuple[str, int] | None:
        planned = schedule.next()
        if planned is None:
            return None
        turn, count = planned
        turn.tried += count
        turn.spent_s += took_s
        self.left_s -= took_s
        return turn.fault.name, count


def fault(name: str, first: int, most: int) -> Fault:
    return Fault(name, lambda _ground, _count: outcome(), first, most)


def test_each_fault_comes_once_before_one_comes_again() -> None:
    clock = Clock(100)
    schedule = Schedule([fault("a", 4, 8), fault("b", 1, 4)], lambda: clock.left_s)

    turns = [clock.take(schedule, 1) for _ in range(7)]

    assert turns == [("a", 4), ("b", 1), ("b", 1), ("a", 4), ("b", 1), ("b", 1), None]


def test_a_fault_is_not_repeated_where_it_would_not_fit_any_more() -> None:
    clock = Clock(12)
    schedule = Schedule([fault("slow", 1, 5), fault("quick", 1, 5)], lambda: clock.left_s)

    turns = [clock.take(schedule, took_s) for took_s in (9, 1, 1, 1, 1)]

    assert turns == [("slow", 1), ("quick", 1), ("quick", 1), ("quick", 1), None]


def test_a_time_box_that_is_over_ends_even_the_first_round() -> None:
    clock = Clock(5)
    schedule = Schedule([fault("a", 1, 1), fault("b", 1, 1)], lambda: clock.left_s)

    assert [clock.take(schedule, 6) for _ in range(2)] == [("a", 1), None]
