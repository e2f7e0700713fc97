"""What an order of applying does to the state."""

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import state_event, streams

from lanes.event import State, StateEvent
from lanes.model import FREE, lesson_schedule
from lanes.outcome import apply_in, expected_states, judge, wrong_over_ties
from lanes.schedule import Work


@pytest.mark.parametrize(
    ("version", "before", "backward"),
    [(1, None, False), (2, 1, False), (2, 2, False), (1, 2, True), (1, 4, True)],
    ids=["new shipment", "higher", "equal", "lower", "far lower"],
)
def test_only_a_strictly_lower_version_is_backward(version: int, before: int | None, backward: bool) -> None:
    assert judge(version, before, version_check=False) == (backward, False)
    assert judge(version, before, version_check=True) == (backward, backward)


def test_a_late_accepted_after_delivered_is_a_backward_write_and_a_wrong_final_state() -> None:
    accepted, delivered = state_event(0, version=1), state_event(1, version=4)
    outcome = apply_in([delivered, accepted], version_check=False)
    assert (outcome.backward, outcome.skipped, outcome.wrong) == ([accepted], [], ["TR-1"])


def test_the_version_check_skips_a_late_accepted_and_keeps_delivered() -> None:
    accepted, delivered = state_event(0, version=1), state_event(1, version=4)
    outcome = apply_in([delivered, accepted], version_check=True)
    assert (outcome.backward, outcome.skipped, outcome.wrong) == ([accepted], [accepted], [])


def test_staleness_is_judged_by_the_row_as_it_is_and_not_as_it_was_before_the_batch() -> None:
    stored, second, third = (state_event(version - 1, version=version) for version in (1, 2, 3))
    unchecked = apply_in([stored, third, second], version_check=False)
    checked = apply_in([stored, third, second], version_check=True)
    assert (unchecked.backward, unchecked.skipped, unchecked.wrong) == ([second], [], ["TR-1"])
    assert (checked.backward, checked.skipped, checked.wrong) == ([second], [second], [])


@pytest.mark.parametrize("version_check", [False, True])
def test_an_equal_version_is_applied_and_is_not_backward(version_check: bool) -> None:
    first, again = state_event(0, version=2, line="L1"), state_event(1, version=2, line="L2")
    outcome = apply_in([first, again], version_check=version_check)
    assert (outcome.backward, outcome.skipped, outcome.wrong) == ([], [], [])


def test_a_later_correct_event_repairs_the_state_and_not_the_count() -> None:
    first, second, third = (state_event(version - 1, version=version) for version in (1, 2, 3))
    outcome = apply_in([second, first, third], version_check=False)
    assert (outcome.backward, outcome.wrong) == ([first], [])


def test_one_shipment_does_not_touch_the_row_of_another() -> None:
    outcome = apply_in(
        [state_event(1, shipment="A", version=4), state_event(0, shipment="B")], version_check=False
    )
    assert (outcome.backward, outcome.wrong) == ([], [])


def test_wrong_shipments_are_sorted_by_name() -> None:
    order = [state_event(n, shipment=name, version=n % 2 + 1) for name in "CAB" for n in (1, 0)]
    assert apply_in(order, version_check=False).wrong == ["A", "B", "C"]


def test_the_expected_state_is_the_last_in_arrival_order_even_where_its_version_is_lower() -> None:
    undone, before = state_event(5, version=1), state_event(4, version=4)
    assert expected_states([undone, before]) == {"TR-1": State.ACCEPTED}


def test_the_version_check_keeps_a_step_back_that_was_meant_out_of_the_state() -> None:
    outcome = apply_in([state_event(0, version=3), state_event(1, version=2)], version_check=True)
    assert (len(outcome.skipped), outcome.wrong) == (1, ["TR-1"])


def test_a_tie_in_the_last_tick_can_go_both_ways() -> None:
    accepted, delivered = state_event(0, version=1), state_event(1, version=4)
    assert wrong_over_ties([Work(accepted, 0, 0, 1), Work(delivered, 1, 0, 1)]) == (0, 1)


def test_a_tie_before_the_last_tick_decides_nothing() -> None:
    tied = [Work(state_event(n, version=n + 1), n, 0, 1) for n in (0, 1)]
    assert wrong_over_ties([*tied, Work(state_event(2, version=3), 0, 1, 2)]) == (0, 0)


def test_a_late_event_alone_in_the_last_tick_is_wrong_in_every_order() -> None:
    late, delivered = state_event(0, version=1, duration=2), state_event(1, version=4)
    assert wrong_over_ties([Work(late, 0, 0, 2), Work(delivered, 1, 0, 1)]) == (1, 1)


@settings(deadline=None)
@given(streams(max_size=6, most_ticks=2), st.integers(1, 6))
def test_the_range_over_ties_is_that_of_trying_every_order(events: list[StateEvent], workers: int) -> None:
    schedule = lesson_schedule(events, workers, FREE)
    finishes = sorted({work.finish for work in schedule})
    groups = [[work.event for work in schedule if work.finish == finish] for finish in finishes]
    orders = product(*(permutations(group) for group in groups))
    wrong = [
        len(apply_in([event for group in order for event in group], version_check=False).wrong)
        for order in orders
    ]
    assert wrong_over_ties(schedule) == (min(wrong), max(wrong))


@given(streams(max_size=12).flatmap(st.permutations))
def test_with_the_check_the_last_version_applied_is_the_highest_of_the_shipment(
    order: list[StateEvent],
) -> None:
    outcome = apply_in(order, version_check=True)
    skipped = {event.order for event in outcome.skipped}
    last = {event.tracking_no: event.version for event in order if event.order not in skipped}
    highest: dict[str, int] = {}
    for event in order:
        highest[event.tracking_no] = max(event.version, highest.get(event.tracking_no, 0))
    assert last == highest


@given(streams(max_size=12).flatmap(st.permutations))
def test_without_the_check_a_shipment_is_wrong_when_its_last_write_is_not_its_last_state(
    order: list[StateEvent],
) -> None:
    outcome = apply_in(order, version_check=False)
    wrong = set()
    for shipment in {event.tracking_no for event in order}:
        writes = [event for event in order if event.tracking_no == shipment]
        if writes[-1].state != max(writes, key=lambda event: event.order).state:
            wrong.add(shipment)
    assert outcome.wrong == sorted(wrong)
    assert outcome.skipped == []
