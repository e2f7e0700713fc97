"""The lesson's dispatcher: the lesson's own figures, recorded traces, and what holds for every stream."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import state_event, streams

from lanes.cost import ticks_by_workers
from lanes.event import StateEvent, decode
from lanes.lesson import lesson_events
from lanes.model import (
    ARRANGEMENTS,
    CONVOY,
    CONVOY_LINE,
    FREE,
    VERSION_STAMP,
    Arrangement,
    lane_loads,
    lesson_figures,
    lesson_model,
    lesson_schedule,
)
from lanes.schedule import Work, applied_order, lesson_dispatch, ticks

CASES = Path(__file__).parents[1] / "cases" / "arrangements.jsonl"
TRACES = [json.loads(line) for line in CASES.read_text().splitlines()]
WORKERS = st.integers(1, 6)


def work(event: StateEvent, worker: int, start: int, finish: int) -> Work:
    return Work(event=event, worker=worker, start=start, finish=finish)


def test_the_lesson_has_20_events_of_5_shipments_on_3_lines_and_32_ticks_of_work() -> None:
    events = lesson_events()
    assert len(events) == 20
    assert {e.tracking_no for e in events} == {"TR-4821", "TR-9007", "TR-5533", "TR-2214", "TR-7788"}
    assert {e.line for e in events} == {"L1", "L2", "L3"}
    assert sum(e.duration for e in events) == 32
    assert [e.order for e in events] == list(range(20))


@pytest.mark.parametrize(
    ("name", "backward", "wrong", "skipped", "tick", "lanes", "busiest"),
    [
        ("free", 5, ["TR-4821"], 0, 8, 0, 0),
        ("convoy", 0, [], 0, 13, 5, 8),
        ("convoy-line", 0, [], 0, 19, 3, 14),
        ("version-stamp", 5, [], 5, 8, 0, 0),
    ],
)
def test_four_workers_give_the_lessons_table(
    name: str, backward: int, wrong: list[str], skipped: int, tick: int, lanes: int, busiest: int
) -> None:
    figures = lesson_model(lesson_events(), 4)[name]
    assert figures.backward_writes == backward
    assert figures.wrong == wrong
    assert figures.wrong_final_state == len(wrong)
    assert figures.skipped == skipped
    assert figures.tick == tick
    assert (figures.lanes, figures.busiest_lane) == (lanes, busiest)
    assert figures.workload == 32


def test_the_arrangements_stand_in_the_lessons_order() -> None:
    assert list(lesson_model(lesson_events(), 4)) == ["free", "convoy", "convoy-line", "version-stamp"]


def test_the_order_of_ties_makes_one_to_four_shipments_wrong_in_the_free_arrangement() -> None:
    assert lesson_figures(lesson_events(), 4, FREE).wrong_final_state_over_ties == (1, 4)


@pytest.mark.parametrize("arrangement", [CONVOY, CONVOY_LINE, VERSION_STAMP], ids=lambda a: a.name)
def test_no_range_is_given_where_lanes_or_the_check_decide(arrangement: Arrangement) -> None:
    figures = lesson_figures(lesson_events(), 4, arrangement)
    assert figures.wrong_final_state_over_ties is None
    assert "wrong_final_state_over_ties" not in figures.to_json()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("free", [32, 16, 8, 5]), ("convoy", [32, 17, 13, 9]), ("convoy-line", [32, 23, 19, 14])],
)
def test_ticks_fall_with_workers_until_the_busiest_lane_holds_them(name: str, expected: list[int]) -> None:
    assert ticks_by_workers(lesson_events(), [1, 2, 4, 8])[name] == expected


@pytest.mark.parametrize(
    ("name", "concurrency", "ratio"),
    [
        ("free", 4.00, 1.0),
        ("convoy", 2.46, 1.625),
        ("convoy-line", 1.68, 2.375),
        ("version-stamp", 4.00, 1.0),
    ],
)
def test_order_is_paid_in_effective_concurrency(name: str, concurrency: float, ratio: float) -> None:
    model = lesson_model(lesson_events(), 4)
    assert round(model[name].effective_concurrency, 2) == concurrency
    assert model[name].tick / model["free"].tick == ratio


@pytest.mark.parametrize("number", range(120))
def test_a_recorded_trace_has_the_recorded_figures(number: int) -> None:
    trace = TRACES[number]
    events = [decode(json.dumps(event).encode()) for event in trace["events"]]
    model = lesson_model(events, trace["consumers"])
    assert json.loads(json.dumps({name: f.to_json() for name, f in model.items()})) == trace["lesson_model"]


def test_all_120_traces_are_there() -> None:
    assert len(TRACES) == 120


def test_the_worker_is_held_while_it_waits_for_the_lane() -> None:
    first = state_event(0, shipment="A", duration=3)
    second = state_event(1, shipment="A", duration=1)
    third = state_event(2, shipment="B", duration=1)
    assert lesson_dispatch([first, second, third], 2, lambda event: event.tracking_no) == [
        work(first, 0, 0, 3),
        work(second, 1, 3, 4),
        work(third, 0, 3, 4),
    ]


def test_the_lowest_worker_is_taken_when_several_are_free() -> None:
    events = [state_event(order, duration=2) for order in range(4)]
    schedule = lesson_dispatch(events, 3, lambda _event: None)
    assert [(w.worker, w.start) for w in schedule] == [(0, 0), (1, 0), (2, 0), (0, 2)]


def test_events_are_dispatched_by_arrival_order_and_not_by_their_place_in_the_list() -> None:
    early, late = state_event(0, duration=5), state_event(1, duration=1)
    schedule = lesson_dispatch([late, early], 1, lambda _event: None)
    assert schedule == [work(early, 0, 0, 5), work(late, 0, 5, 6)]


def test_events_of_one_tick_are_applied_in_arrival_order() -> None:
    first, second, slow = state_event(0), state_event(1), state_event(2, duration=2)
    schedule = [work(slow, 2, 0, 2), work(second, 1, 0, 1), work(first, 0, 0, 1)]
    assert applied_order(schedule) == [first, second, slow]


def test_nothing_takes_no_tick() -> None:
    figures = lesson_figures([], 4, CONVOY)
    assert (figures.tick, figures.lanes, figures.busiest_lane, figures.effective_concurrency) == (0, 0, 0, 0)


def test_a_key_that_60_of_100_events_share_holds_the_run_at_60_ticks_or_more() -> None:
    countries = ["DE"] * 60 + [f"C{number % 11}" for number in range(40)]
    events = [state_event(n, shipment=f"TR-{n}", line=country) for n, country in enumerate(countries)]
    figures = lesson_figures(events, 8, CONVOY_LINE)
    assert (figures.lanes, figures.busiest_lane) == (12, 60)
    assert figures.tick >= 60
    assert figures.effective_concurrency <= 100 / 60


@given(streams(rising=True), WORKERS)
def test_a_convoy_never_writes_backward_when_versions_rise_in_arrival_order(
    events: list[StateEvent], workers: int
) -> None:
    for arrangement in (CONVOY, CONVOY_LINE):
        figures = lesson_figures(events, workers, arrangement)
        assert (figures.backward_writes, figures.wrong) == (0, [])


@given(streams(rising=True), WORKERS)
def test_the_version_check_leaves_no_wrong_final_state_when_versions_rise(
    events: list[StateEvent], workers: int
) -> None:
    figures = lesson_figures(events, workers, VERSION_STAMP)
    assert figures.wrong == []
    assert figures.skipped == figures.backward_writes


@given(streams(), WORKERS)
def test_no_arrangement_is_faster_than_its_workers_or_its_busiest_lane(
    events: list[StateEvent], workers: int
) -> None:
    workload = sum(event.duration for event in events)
    for arrangement in ARRANGEMENTS:
        figures = lesson_figures(events, workers, arrangement)
        assert figures.tick >= -(-workload // workers)
        assert figures.tick >= figures.busiest_lane
        assert figures.tick <= workload


@given(streams())
def test_one_worker_takes_the_whole_workload_in_every_arrangement(events: list[StateEvent]) -> None:
    workload = sum(event.duration for event in events)
    assert {lesson_figures(events, 1, a).tick for a in ARRANGEMENTS} == {workload}


@given(streams(), WORKERS)
def test_every_event_is_worked_on_once_and_for_its_duration(events: list[StateEvent], workers: int) -> None:
    for arrangement in ARRANGEMENTS:
        schedule = lesson_schedule(events, workers, arrangement)
        assert [w.event for w in schedule] == events
        assert all(w.finish - w.start == w.event.duration for w in schedule)
        assert {w.worker for w in schedule} <= set(range(workers))


@given(streams(), WORKERS)
def test_a_worker_never_does_two_things_at_once(events: list[StateEvent], workers: int) -> None:
    for arrangement in ARRANGEMENTS:
        schedule = lesson_schedule(events, workers, arrangement)
        for worker in range(workers):
            mine = sorted((w.start, w.finish) for w in schedule if w.worker == worker)
            assert all(finish <= start for (_, finish), (start, _) in pairwise(mine))


@given(streams(), WORKERS)
def test_a_lane_never_holds_two_events_at_once_and_keeps_their_order(
    events: list[StateEvent], workers: int
) -> None:
    schedule = lesson_schedule(events, workers, CONVOY)
    for shipment in "ABCDE":
        lane = [w for w in schedule if w.event.tracking_no == shipment]
        assert all(before.finish <= after.start for before, after in pairwise(lane))


@given(streams(), WORKERS)
def test_the_wrong_figure_lies_within_its_range_over_ties(events: list[StateEvent], workers: int) -> None:
    figures = lesson_figures(events, workers, FREE)
    assert figures.wrong_final_state_over_ties is not None
    least, most = figures.wrong_final_state_over_ties
    assert least <= figures.wrong_final_state <= most


@given(streams())
def test_the_loads_of_the_lanes_add_up_to_the_workload(events: list[StateEvent]) -> None:
    loads = lane_loads(events, lambda event: event.tracking_no)
    assert sum(loads.values()) == sum(event.duration for event in events)
    assert lane_loads(events, lambda _event: None) == {}


def test_ticks_are_those_of_the_last_to_finish_and_not_of_the_last_in_the_list() -> None:
    event = state_event()
    assert ticks([work(event, 0, 0, 7), work(event, 1, 0, 2)]) == 7
