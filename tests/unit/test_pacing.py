"""The clock of a paced run: when work begins and ends, and how writes of one tick are spread."""

from collections.abc import Callable

import pytest
from streams import state_event

from consumer.pacing import Pace, Pacer
from state.records import Timing

ZERO_US = 1_000_000_000
TICK_US = 100_000


class Clock:
    """A wall clock that moves only when somebody waits on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_us = ZERO_US
        self.looks_s: list[float] = []
        self.sleeps_s: list[float] = []
        monkeypatch.setattr("consumer.pacing.now_us", lambda: self.now_us)
        monkeypatch.setattr("consumer.pacing.time.sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.sleeps_s.append(seconds)
        self.now_us += round(seconds * 1e6)

    def look(self, seconds: float) -> None:
        """What a worker does meanwhile, as long as it may."""
        self.looks_s.append(seconds)
        self.now_us += round(seconds * 1e6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def pacer(
    clock: Clock,
    *,
    meanwhile: Callable[[float], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    events: int = 20,
) -> Pacer:
    return Pacer(ZERO_US, Pace(TICK_US, events), meanwhile or clock.look, stopped)


def test_work_lasts_from_one_tick_boundary_to_another(clock: Clock) -> None:
    timing = pacer(clock).take_time(state_event(0, duration=3))
    assert timing == Timing(started_us=ZERO_US, finished_us=ZERO_US + 300_000)
    assert clock.now_us == ZERO_US + 300_000


def test_the_write_follows_the_finish_by_the_events_offset(clock: Clock) -> None:
    timing = pacer(clock).take_time(state_event(3, duration=1))
    assert timing == Timing(ZERO_US, ZERO_US + 100_000)
    assert clock.now_us == ZERO_US + 107_500


def test_before_tick_zero_work_waits_for_it(clock: Clock) -> None:
    clock.now_us = ZERO_US - 250_001
    timing = pacer(clock).take_time(state_event(0, duration=1))
    assert timing == Timing(ZERO_US, ZERO_US + 100_000)


@pytest.mark.parametrize(
    ("ready_us", "started_us", "finished_us"),
    [
        (0, 0, 100_000),
        (85_000, 85_000, 100_000),
        (85_001, 100_000, 200_000),
        (99_999, 100_000, 200_000),
        (200_000, 200_000, 300_000),
        (250_000, 250_000, 300_000),
    ],
    ids=["on time", "just in time", "too late", "a moment before", "later tick", "late in a later tick"],
)
def test_work_that_is_ready_late_in_a_tick_begins_in_the_next(
    clock: Clock, ready_us: int, started_us: int, finished_us: int
) -> None:
    clock.now_us = ZERO_US + ready_us
    timing = pacer(clock).take_time(state_event(0, duration=1))
    assert timing == Timing(ZERO_US + started_us, ZERO_US + finished_us)


def test_events_one_after_the_other_take_the_sum_of_their_ticks(clock: Clock) -> None:
    worker = pacer(clock)
    timings = [worker.take_time(state_event(order, duration=2)) for order in (1, 5, 19)]
    ticks = [((t.started_us or 0) - ZERO_US) // TICK_US if t is not None else None for t in timings]
    assert ticks == [0, 2, 4]
    assert timings[-1] is not None
    assert timings[-1].finished_us == ZERO_US + 600_000


def test_what_takes_too_long_meanwhile_shows_in_the_measured_finish(clock: Clock) -> None:
    def too_long(_seconds: float) -> None:
        clock.now_us += 270_000

    timing = pacer(clock, meanwhile=too_long).take_time(state_event(0, duration=1))
    assert timing == Timing(ZERO_US, ZERO_US + 270_000)


def test_looks_are_short_and_the_last_stretch_before_a_boundary_is_slept_through(clock: Clock) -> None:
    pacer(clock).take_time(state_event(0, duration=5))
    assert len(clock.looks_s) >= 5
    assert max(clock.looks_s) <= 0.1
    assert clock.sleeps_s == [0.003]


@pytest.mark.parametrize("stop_at_us", [-10_000, 50_000, 101_000], ids=["start", "work", "write"])
def test_told_to_stop_it_returns_nothing_whatever_it_waits_for(clock: Clock, stop_at_us: int) -> None:
    clock.now_us = ZERO_US - 20_000
    stopped = pacer(clock, stopped=lambda: clock.now_us >= ZERO_US + stop_at_us)
    assert stopped.take_time(state_event(19, duration=1)) is None
    assert clock.now_us < ZERO_US + 147_500


def test_writes_of_one_tick_are_in_arrival_order_over_half_of_it() -> None:
    pace = Pace(tick_us=100_000, events=20)
    assert [pace.offset_us(order) for order in range(4)] == [0, 2_500, 5_000, 7_500]
    assert pace.offset_us(19) == 47_500
    assert pace.offset_us(20) == 0


@pytest.mark.parametrize(
    ("tick_us", "events", "offsets_us"),
    [
        (100_000, 1_000_000, [0, 1515, 3030]),
        (10_000, 20, [0, 1666, 3333]),
        (100_000, 2, [0, 25_000, 0]),
        (100_000, 0, [0, 0, 0]),
    ],
)
def test_neighbours_in_arrival_order_are_never_too_close_to_be_told_apart(
    tick_us: int, events: int, offsets_us: list[int]
) -> None:
    pace = Pace(tick_us, events)
    assert [pace.offset_us(order) for order in range(3)] == offsets_us


def test_a_seed_draws_an_order_of_its_own_and_always_the_same() -> None:
    drawn = [Pace(100_000, 20, ties_seed=7).offset_us(order) for order in range(20)]
    assert drawn == [Pace(100_000, 20, ties_seed=7).offset_us(order) for order in range(20)]
    assert drawn != [Pace(100_000, 20, ties_seed=8).offset_us(order) for order in range(20)]
    assert drawn != sorted(drawn)
    assert all(0 <= offset < 50_000 for offset in drawn)
