"""The cost of a key: the lesson's figures at its peak rate, and the formula's ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.cost import PEAK_RATE, cost_of_order, selective_ratio
from lanes.lesson import lesson_events


@pytest.mark.parametrize(
    ("share", "constrained", "unconstrained", "selective", "selective_line"),
    [(4 / 7, 55.55, 41.67, 1.357, 1.786), (5 / 7, 69.44, 27.78, 1.446, 1.982)],
    ids=["4/7", "5/7"],
)
def test_the_lessons_peak_costs_what_the_lesson_says(
    share: float, constrained: float, unconstrained: float, selective: float, selective_line: float
) -> None:
    found = cost_of_order(lesson_events(), workers=4, rate=97.22, share=share)
    assert round(found.constrained_rate, 2) == constrained
    assert round(found.unconstrained_rate, 2) == unconstrained
    assert round(found.selective, 3) == selective
    assert round(found.selective_line, 3) == selective_line
    assert (found.everything, found.everything_line) == (1.625, 2.375)


def test_the_default_rate_is_the_lessons_peak() -> None:
    assert PEAK_RATE == 97.22


def test_one_worker_pays_nothing_for_order() -> None:
    found = cost_of_order(lesson_events(), workers=1, rate=100, share=0.5)
    assert (found.selective, found.selective_line, found.everything, found.everything_line) == (1, 1, 1, 1)


def test_half_of_the_events_through_a_convoy_twice_as_slow_need_half_as_many_workers_again() -> None:
    assert selective_ratio(0.5, 2.0) == 1.5


@given(st.floats(1, 100))
def test_no_share_costs_nothing_and_the_whole_share_costs_the_ratio(ratio: float) -> None:
    assert selective_ratio(0, ratio) == 1
    assert selective_ratio(1, ratio) == ratio
