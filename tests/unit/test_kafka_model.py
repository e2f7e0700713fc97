"""Ownership of partitions: figures of live runs, recorded traces, and what holds for every stream."""

import json
import zlib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import state_event, streams

from lanes.event import StateEvent, decode
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.model import CONVOY, CONVOY_LINE, kafka_figures, kafka_model, kafka_schedule, lesson_figures
from lanes.partitioner import Partitioner
from lanes.schedule import Work, kafka_ownership, range_assignment, ticks

CASES = Path(__file__).parents[1] / "cases" / "arrangements.jsonl"
TRACES = [json.loads(line) for line in CASES.read_text().splitlines()]
WORKERS = st.integers(1, 6)
PARTITIONS = st.integers(1, 9)

TRACKING_NO, LINE = KeyChoice.TRACKING_NO, KeyChoice.LINE


def queues_of(events: list[StateEvent], partitions: int) -> dict[int, list[StateEvent]]:
    """Events dealt to partitions by an arbitrary rule that keeps each shipment in one partition."""
    queues: dict[int, list[StateEvent]] = defaultdict(list)
    for event in events:
        queues[ord(event.tracking_no) % partitions].append(event)
    return queues


@pytest.mark.parametrize(
    ("key", "partitions", "ticks_with_2_4_8"),
    [
        (TRACKING_NO, 3, [18, 14, 14]),
        (TRACKING_NO, 5, [19, 11, 8]),
        (TRACKING_NO, 8, [18, 18, 12]),
        (LINE, 3, [32, 32, 32]),
        (LINE, 5, [19, 19, 19]),
        (LINE, 8, [18, 14, 14]),
    ],
)
def test_ticks_are_those_of_the_live_runs(
    key: KeyChoice, partitions: int, ticks_with_2_4_8: list[int]
) -> None:
    figures = [kafka_figures(lesson_events(), workers, partitions, key) for workers in (2, 4, 8)]
    assert [f.tick for f in figures] == ticks_with_2_4_8
    assert {(f.backward_writes, f.wrong_final_state, f.skipped) for f in figures} == {(0, 0, 0)}


def test_ownership_of_five_partitions_needs_11_ticks_where_the_lessons_dispatcher_needs_13() -> None:
    assert kafka_figures(lesson_events(), 4, 5, TRACKING_NO).tick == 11
    assert lesson_figures(lesson_events(), 4, CONVOY).tick == 13


def test_ownership_by_line_reaches_the_busiest_lanes_load_where_the_dispatcher_does_not() -> None:
    figures = kafka_figures(lesson_events(), 4, 8, LINE)
    assert (figures.tick, figures.busiest_lane) == (14, 14)
    assert lesson_figures(lesson_events(), 4, CONVOY_LINE).tick == 19


@pytest.mark.parametrize(
    ("partitions", "partition_of", "lanes", "busiest"),
    [
        (3, {"L1": 0, "L2": 0, "L3": 0}, 1, 32),
        (6, {"L1": 3, "L2": 0, "L3": 0}, 2, 19),
        (8, {"L1": 7, "L2": 0, "L3": 4}, 3, 14),
    ],
)
def test_three_lines_are_one_two_or_three_partition_lanes(
    partitions: int, partition_of: dict[str, int], lanes: int, busiest: int
) -> None:
    figures = kafka_figures(lesson_events(), 4, partitions, LINE)
    assert figures.partition_of == partition_of
    assert (figures.keys, figures.lanes, figures.busiest_lane) == (3, lanes, busiest)


@pytest.mark.parametrize(
    ("partitions", "lanes", "busiest"), [(5, 5, 8), (8, 4, 12)], ids=["5 of 5", "4 of 8"]
)
def test_the_five_tracking_numbers_share_a_partition_only_on_eight(
    partitions: int, lanes: int, busiest: int
) -> None:
    figures = kafka_figures(lesson_events(), 4, partitions, TRACKING_NO)
    assert (figures.keys, figures.lanes, figures.busiest_lane) == (5, lanes, busiest)


def test_growing_from_3_to_5_partitions_moves_three_of_the_five_shipments() -> None:
    before = kafka_figures(lesson_events(), 4, 3, TRACKING_NO).partition_of
    after = kafka_figures(lesson_events(), 4, 5, TRACKING_NO).partition_of
    assert {key: (before[key], after[key]) for key in before} == {
        "TR-4821": (0, 4),
        "TR-9007": (1, 0),
        "TR-5533": (2, 3),
        "TR-2214": (2, 2),
        "TR-7788": (1, 1),
    }


@pytest.mark.parametrize("number", range(120))
def test_a_recorded_trace_has_the_recorded_figures(number: int) -> None:
    trace = TRACES[number]
    events = [decode(json.dumps(event).encode()) for event in trace["events"]]
    model = kafka_model(events, trace["consumers"], trace["partitions"])
    assert {name: figures.to_json() for name, figures in model.items()} == trace["kafka_model"]


def test_the_order_of_the_list_does_not_matter_to_ownership() -> None:
    events = lesson_events()
    assert kafka_model(events[::-1], 4, 5) == kafka_model(events, 4, 5)


def test_librdkafkas_default_rule_puts_the_lines_elsewhere() -> None:
    model = kafka_model(lesson_events(), 4, 5, Partitioner.CRC32)
    assert model["line"].partition_of == {line: zlib.crc32(line.encode()) % 5 for line in ("L1", "L2", "L3")}
    assert model["line"].partition_of != {"L1": 4, "L2": 1, "L3": 1}


def test_records_without_a_key_are_not_predicted() -> None:
    with pytest.raises(ValueError, match="at random"):
        kafka_figures(lesson_events(), 4, 5, KeyChoice.NONE)


@pytest.mark.parametrize(
    ("partitions", "workers", "owner_of"),
    [
        (5, 4, {0: 0, 1: 0, 2: 1, 3: 2, 4: 3}),
        (8, 3, {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1, 6: 2, 7: 2}),
        (2, 3, {0: 0, 1: 1}),
        (3, 1, {0: 0, 1: 0, 2: 0}),
    ],
)
def test_range_assignment_gives_the_first_workers_one_more(
    partitions: int, workers: int, owner_of: dict[int, int]
) -> None:
    assert range_assignment(partitions, workers) == owner_of


def test_a_member_that_owns_every_partition_takes_32_ticks() -> None:
    queues: dict[int, list[StateEvent]] = defaultdict(list)
    for event in lesson_events():
        queues[Partitioner.MURMUR2.partition_of(event.tracking_no.encode(), 5) or 0].append(event)
    assert ticks(kafka_ownership(queues, dict.fromkeys(range(5), 0))) == 32


def test_a_worker_takes_the_lowest_arrival_order_among_its_heads_only() -> None:
    a0, a3 = state_event(0, duration=2), state_event(3)
    b1, b2 = state_event(1), state_event(2)
    late_head = state_event(9)
    hidden = state_event(4)
    schedule = kafka_ownership({0: [a0, a3], 1: [b1, b2], 2: [late_head, hidden]}, {0: 0, 1: 0, 2: 0})
    assert schedule == [
        Work(a0, 0, 0, 2),
        Work(b1, 0, 2, 3),
        Work(b2, 0, 3, 4),
        Work(a3, 0, 4, 5),
        Work(late_head, 0, 5, 6),
        Work(hidden, 0, 6, 7),
    ]


def test_a_partition_without_events_costs_its_owner_nothing() -> None:
    event = state_event()
    assert kafka_ownership({0: [], 1: [event]}, {0: 0, 1: 1}) == [Work(event, 1, 0, 1)]


@pytest.mark.parametrize("partitions", [48, 480])
def test_more_partitions_do_not_help_a_key_that_60_of_100_events_share(partitions: int) -> None:
    countries = ["DE"] * 60 + [f"C{number % 11}" for number in range(40)]
    events = [state_event(n, shipment=f"TR-{n}", line=country) for n, country in enumerate(countries)]
    figures = kafka_figures(events, 8, partitions, LINE)
    assert figures.keys == 12
    assert figures.busiest_lane >= 60
    assert figures.tick >= 60


@given(streams(rising=True), WORKERS, PARTITIONS)
def test_ownership_never_writes_backward_when_versions_rise_in_arrival_order(
    events: list[StateEvent], workers: int, partitions: int
) -> None:
    for figures in kafka_model(events, workers, partitions).values():
        assert (figures.backward_writes, figures.wrong) == (0, [])


@given(streams(), WORKERS, PARTITIONS)
def test_ownership_is_no_faster_than_its_workers_or_its_busiest_lane(
    events: list[StateEvent], workers: int, partitions: int
) -> None:
    workload = sum(event.duration for event in events)
    for figures in kafka_model(events, workers, partitions).values():
        assert figures.tick >= -(-workload // workers)
        assert figures.tick >= figures.busiest_lane
        assert figures.lanes <= min(figures.keys, partitions)


@given(streams(), PARTITIONS)
def test_one_worker_takes_the_whole_workload(events: list[StateEvent], partitions: int) -> None:
    workload = sum(event.duration for event in events)
    assert {f.tick for f in kafka_model(events, 1, partitions).values()} == {workload}


@given(streams(), WORKERS, PARTITIONS)
def test_an_event_never_starts_before_its_partition_predecessor_finished(
    events: list[StateEvent], workers: int, partitions: int
) -> None:
    queues = queues_of(events, partitions)
    work_of = {w.event.order: w for w in kafka_schedule(queues, partitions, workers)}
    assert len(work_of) == len(events)
    for queue in queues.values():
        lane = [work_of[event.order] for event in queue]
        assert all(before.finish <= after.start for before, after in pairwise(lane))


@given(streams(), WORKERS, PARTITIONS)
def test_a_worker_never_does_two_things_at_once_and_never_waits(
    events: list[StateEvent], workers: int, partitions: int
) -> None:
    schedule = kafka_schedule(queues_of(events, partitions), partitions, workers)
    for worker in {w.worker for w in schedule}:
        mine = [(w.start, w.finish) for w in schedule if w.worker == worker]
        assert mine[0][0] == 0
        assert all(finish == start for (_, finish), (start, _) in pairwise(mine))


@given(streams(), WORKERS, PARTITIONS)
def test_a_partition_is_worked_on_by_its_owner_alone(
    events: list[StateEvent], workers: int, partitions: int
) -> None:
    owner_of = range_assignment(partitions, workers)
    schedule = kafka_schedule(queues_of(events, partitions), partitions, workers)
    assert all(w.worker == owner_of[ord(w.event.tracking_no) % partitions] for w in schedule)


@given(PARTITIONS, WORKERS)
def test_range_assignment_deals_every_partition_and_is_even(partitions: int, workers: int) -> None:
    owner_of = range_assignment(partitions, workers)
    assert sorted(owner_of) == list(range(partitions))
    loads = [list(owner_of.values()).count(worker) for worker in range(workers)]
    assert max(loads) - min(loads) <= 1
    assert list(owner_of.values()) == sorted(owner_of.values())
