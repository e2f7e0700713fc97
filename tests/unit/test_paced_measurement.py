"""What a paced run measured, in ticks of its own clock, from the times that it stored."""

import pytest
from observations import Scene
from streams import state_event

from analysis.paced import event_of, last_paced_run, measured_work
from lanes.event import HistoryEvent
from lanes.schedule import Work

ZERO_US = 1_700_000_000_000_000
TICK_US = 100_000


def paced(**changes: object) -> Scene:
    return Scene(workers=2, **{"tick_us": TICK_US, "zero_us": ZERO_US, **changes})  # type: ignore[arg-type]


def measured(started_us: int, finished_us: int) -> tuple[int, int]:
    """Start and finish tick of an event with these times since tick 0."""
    scene = paced()
    record = scene.write(state_event(0))
    scene.apply(record, started_us=ZERO_US + started_us, finished_us=ZERO_US + finished_us)
    (work,) = measured_work(scene.history, scene.run)
    return work.start, work.finish


@pytest.mark.parametrize(
    ("started_us", "finished_us", "ticks"),
    [
        (0, 100_000, (0, 1)),
        (85_000, 100_300, (0, 1)),
        (99_999, 199_000, (0, 2)),
        (100_000, 449_999, (1, 4)),
        (100_000, 450_001, (1, 5)),
        (700_040, 1_300_900, (7, 13)),
    ],
    ids=["on time", "begun late", "begun very late", "a little late", "half a tick late", "a long one"],
)
def test_work_began_in_the_tick_of_its_start_and_was_done_at_the_boundary_nearest_to_its_finish(
    started_us: int, finished_us: int, ticks: tuple[int, int]
) -> None:
    assert measured(started_us, finished_us) == ticks


def test_a_run_that_fell_behind_shows_it_though_the_event_says_one_tick() -> None:
    assert measured(0, 930_000) == (0, 9)


def test_work_comes_in_the_order_applied_with_its_event_and_its_worker() -> None:
    scene = paced(partitions=2)
    late, early = state_event(5, shipment="B", version=2, duration=2), state_event(1, duration=1)
    for event, worker, partition in ((late, 1, 1), (early, 0, 0)):
        record = scene.write(event, partition)
        scene.apply(record, worker=worker, started_us=ZERO_US, finished_us=ZERO_US + 200_000)
    assert measured_work(scene.history, scene.run) == [Work(late, 1, 0, 2), Work(early, 0, 0, 2)]


def test_rows_of_other_runs_and_rows_without_times_are_not_its_work() -> None:
    scene = paced()
    times = {"started_us": ZERO_US, "finished_us": ZERO_US + TICK_US}
    scene.apply(scene.write(state_event(0)), run=7, **times)
    scene.apply(scene.write(state_event(1)))
    scene.apply(scene.write(state_event(2)), **times)
    assert [work.event.order for work in measured_work(scene.history, scene.run)] == [2]


def test_a_history_row_tells_of_the_event_that_was_applied() -> None:
    scene = paced()
    events = [
        state_event(4, shipment="X", version=3, duration=9, line="L7"),
        HistoryEvent(tracking_no="X", line="L7", duration=2, order=5, scan="gate 4"),
    ]
    assert [event_of(scene.write_and_apply(event)) for event in events] == events


def test_the_last_run_is_measured_if_it_was_paced_and_has_begun() -> None:
    assert last_paced_run(paced().seen()) == paced().run
    assert last_paced_run(paced(zero_us=None).seen()) is None
    assert last_paced_run(paced(tick_us=None).seen()) is None
    assert last_paced_run(paced().seen(runs=[])) is None


def test_a_paced_run_before_one_at_full_speed_is_not_measured() -> None:
    assert last_paced_run(paced().seen(runs=[paced().run, Scene().run])) is None
